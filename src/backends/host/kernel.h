// What a host backend's kernels look like: functions that compute one task of an op, or a piece of
// it. A task is a part of an op's outputs that no other task writes, so which thread runs it, and
// when, cannot change a bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/step.h"

namespace cairn::host {

// What an op's tasks share, for ops whose tasks work together. All pieces are 64-byte aligned.
struct SharedRoom {
  std::byte* scratch;  // Belongs to the calling thread.
  std::byte* notes;    // Belongs to the op: what its cut() wrote for the tasks of this step.
  std::byte* shared;   // Belongs to the op while its stage runs; its bytes are arbitrary before.
};

struct JointKernel {
  size_t (*scratch_bytes)(const Op& op);
  size_t (*notes_bytes)(const Op& op);
  size_t (*shared_bytes)(const Op& op);
  // Cuts the op into tasks for this step and says how many; 0 is allowed.
  int64_t (*cut)(const Op& op, const Step& step, std::byte* notes);
  void (*run)(const Op& op, const Step& step, int64_t task, const SharedRoom& room);
};

// Some rows and some of an op's columns (device/plan.h: Chain).
struct Piece {
  int32_t first_row = 0, end_row = 0;
  int32_t first_column = 0, end_column = 0;

  int32_t column_count() const { return end_column - first_column; }
};

struct HostKernel {
  // How many tasks the op is cut into for this step; 0 is allowed.
  int64_t (*task_count)(const Op& op, const Step& step) = nullptr;
  // Runs one task. `scratch` belongs to the calling thread: scratch_bytes long, 64-byte aligned.
  void (*run)(const Op& op, const Step& step, int64_t task, std::byte* scratch) = nullptr;
  // Scratch that a task or a piece needs at most; null means none.
  size_t (*scratch_bytes)(const Op& op) = nullptr;
  // Computes a piece, for ops in chains; null: the op is only cut into tasks.
  void (*run_piece)(const Op& op, const Step& step, const Piece& piece,
                    std::byte* scratch) = nullptr;
  // How many columns of few rows are a good piece; null: the op is so light that it does not
  // matter.
  int32_t (*piece_columns)(const Op& op, const Step& step) = nullptr;
  // Instead of all of the above.
  const JointKernel* joint = nullptr;

  bool exists() const { return run != nullptr || joint != nullptr; }
};

}  // namespace cairn::host
