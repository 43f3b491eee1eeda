// Runs plans on this machine's threads. A host backend is a table of kernels; this file owns what
// all of them share: cutting a stage into tasks, handing tasks to threads, the barriers between.
// A kernel's task is a part of an op's outputs that no other task writes, so which thread runs it,
// and when, cannot change a bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/arena.h"
#include "base/threads.h"
#include "device/backend.h"

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

struct HostKernel {
  // How many tasks the op is cut into for this step; 0 is allowed.
  int64_t (*task_count)(const Op& op, const Step& step) = nullptr;
  // Runs one task. `scratch` belongs to the calling thread: scratch_bytes long, 64-byte aligned.
  void (*run)(const Op& op, const Step& step, int64_t task, std::byte* scratch) = nullptr;
  // Scratch that a task needs at most; null means none.
  size_t (*scratch_bytes)(const Op& op) = nullptr;
  // Instead of all of the above.
  const JointKernel* joint = nullptr;

  bool exists() const { return run != nullptr || joint != nullptr; }
};

// Which kernel computes an op; one that does not exist means: not this backend.
using KernelChoice = HostKernel (*)(const Op& op);

// Runs each op on choice(op) or, where that declines, on fallback(op), which must not.
class HostBackend : public Backend {
 public:
  HostBackend(ThreadPool* threads, KernelChoice choice, KernelChoice fallback);

  Status load(Weight& weight) override;  // Nothing to do: kernels read the file's blocks.
  bool supports(const Op& op) const override;
  Status prepare(const Plan& plan) override;
  void execute(const Plan& plan, const Step& step) override;

 private:
  // How many tasks of a thread's share are claimed: of this stage and, by turns, the next.
  struct Claims {
    TaskCounter of_stage[2];
  };
  struct Prepared {
    const Plan* plan = nullptr;
    std::vector<HostKernel> kernels;  // One for each op.
    std::vector<int64_t> task_ends;   // Of each op, counted from its stage's first task.
    std::vector<size_t> notes;        // Of each op: where they begin in notes_.
    std::vector<size_t> shared;       // Of each op, likewise in shared_.
  };

  HostKernel kernel_for(const Op& op) const;
  Prepared& prepared_for(const Plan& plan);
  void place_shared(Prepared& prepared);
  Status make_room();
  SharedRoom room_of(int worker) const;
  void count_tasks(Prepared& prepared, const Step& step);
  static void run_task(const Prepared& prepared, const Step& step, size_t op, int64_t task,
                       const SharedRoom& room);
  void reset_claims(int worker, size_t parity);
  void work(const Prepared& prepared, const Step& step, int worker);

  ThreadPool* threads_;
  KernelChoice choice_;
  KernelChoice fallback_;
  std::vector<Prepared> prepared_;  // A few.
  std::vector<Claims> claims_;      // Of each thread.
  std::optional<Arena> room_;       // Each thread's scratch, then what tasks share, then the notes.
  size_t scratch_bytes_ = 0;        // Of each thread, for any of the plans.
  size_t shared_bytes_ = 0;         // Of a stage's ops, for any stage of any plan.
  size_t notes_bytes_ = 0;          // Of all ops of a plan, for any of them.
};

}  // namespace cairn::host
