// Runs plans on this machine's threads. A host backend is a table of kernels; this file owns what
// all of them share: cutting a stage into tasks, handing tasks to threads, the barriers between.
// A kernel's task is a part of an op's outputs that no other task writes, so which thread runs it,
// and when, cannot change a bit.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/threads.h"
#include "device/backend.h"

namespace cairn::host {

struct HostKernel {
  // How many tasks the op is cut into for this step; 0 is allowed.
  int64_t (*task_count)(const Op& op, const Step& step) = nullptr;
  // Runs one task. `scratch` belongs to the calling thread: scratch_bytes long, 64-byte aligned.
  void (*run)(const Op& op, const Step& step, int64_t task, std::byte* scratch) = nullptr;
  // Scratch that a task needs at most; null means none.
  size_t (*scratch_bytes)(const Op& op) = nullptr;
};

// Which kernel computes an op; a kernel without `run` means: not this backend.
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
  struct alignas(64) StageTasks {
    TaskCounter next;
    int64_t task_count = 0;
  };
  struct Prepared {
    const Plan* plan = nullptr;
    std::vector<HostKernel> kernels;  // One for each op.
    std::vector<int64_t> task_ends;   // Of each op, counted from its stage's first task.
    std::vector<StageTasks> stages;
  };

  HostKernel kernel_for(const Op& op) const;
  Prepared& prepared_for(const Plan& plan);
  static void count_tasks(Prepared& prepared, const Step& step);
  void work(Prepared& prepared, const Step& step, int worker);

  ThreadPool* threads_;
  KernelChoice choice_;
  KernelChoice fallback_;
  std::vector<Prepared> prepared_;  // A few.
  std::vector<std::byte> scratch_;
  size_t scratch_bytes_ = 0;  // Of each thread, for any of the plans.
};

}  // namespace cairn::host
