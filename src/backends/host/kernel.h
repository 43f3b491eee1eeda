// The kernels of a host backend: functions that compute one task of an op, or a piece of it. A task
// is a part of an op's outputs that no other task writes, so the results do not depend on which
// thread runs it, or when.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/step.h"

namespace cairn::host {

// The buffers of an op whose tasks work together. All are 64-byte aligned.
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

// Some rows and some of an op's columns (device/plan.h: FusedOps).
struct Piece {
  int32_t first_row = 0, end_row = 0;
  int32_t first_column = 0, end_column = 0;

  int32_t column_count() const { return end_column - first_column; }
};

// Runs behind each kernel, on its thread.
using AfterKernel = void (*)();

struct HostKernel {
  // How many tasks the op is cut into for this step; 0 is allowed.
  int64_t (*task_count)(const Op& op, const Step& step) = nullptr;
  // Runs one task. `scratch` belongs to the calling thread: scratch_bytes long, 64-byte aligned.
  void (*run)(const Op& op, const Step& step, int64_t task, std::byte* scratch) = nullptr;
  // Scratch that a task or a piece needs at most; null means none.
  size_t (*scratch_bytes)(const Op& op) = nullptr;
  // Computes a piece, for fused ops; null: the op is only cut into tasks.
  void (*run_piece)(const Op& op, const Step& step, const Piece& piece,
                    std::byte* scratch) = nullptr;
  // The best number of columns of a piece with few rows; null: the op is so cheap that any will do.
  int32_t (*piece_columns)(const Op& op, const Step& step) = nullptr;
  // Instead of all of the above.
  const JointKernel* joint = nullptr;

  bool exists() const { return run != nullptr || joint != nullptr; }
};

}  // namespace cairn::host
