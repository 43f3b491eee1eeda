// The walk of a plan by the threads of a pool: stage by stage, tasks claimed one by one.
#include "backends/host/host.h"

#include <algorithm>

namespace cairn::host {

HostBackend::HostBackend(ThreadPool* threads, KernelChoice choice, KernelChoice fallback)
    : threads_(threads), choice_(choice), fallback_(fallback) {}

Status HostBackend::load(Weight&) {
  return Ok{};
}

bool HostBackend::supports(const Op& op) const {
  return choice_(op).run != nullptr;
}

HostKernel HostBackend::kernel_for(const Op& op) const {
  const HostKernel kernel = choice_(op);
  return kernel.run != nullptr ? kernel : fallback_(op);
}

Status HostBackend::prepare(const Plan& plan) {
  prepared_ = &plan;
  kernels_.clear();
  scratch_bytes_ = 0;
  for (const Op& op : plan.ops) {
    const HostKernel kernel = kernel_for(op);
    CHECK(kernel.run != nullptr);
    kernels_.push_back(kernel);
    if (kernel.scratch_bytes != nullptr) {
      scratch_bytes_ = std::max(scratch_bytes_, (kernel.scratch_bytes(op) + 63) / 64 * 64);
    }
  }
  task_ends_.assign(plan.ops.size(), 0);
  stages_ = std::vector<StageTasks>(plan.stages.size());
  scratch_.assign(scratch_bytes_ * size_t(threads_->thread_count()) + 64, std::byte{0});
  return Ok{};
}

void HostBackend::count_tasks(const Plan& plan, const Step& step) {
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const Stage& range = plan.stages[stage];
    int64_t end = 0;
    for (int32_t op = range.first_op; op < range.first_op + range.op_count; ++op) {
      end += kernels_[size_t(op)].task_count(plan.ops[size_t(op)], step);
      task_ends_[size_t(op)] = end;
    }
    stages_[stage].next.next.store(0, std::memory_order_relaxed);
    stages_[stage].task_count = end;
  }
}

void HostBackend::work(const Plan& plan, const Step& step, int worker) {
  const auto aligned = (reinterpret_cast<uintptr_t>(scratch_.data()) + 63) / 64 * 64;
  std::byte* scratch = reinterpret_cast<std::byte*>(aligned) + scratch_bytes_ * size_t(worker);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    StageTasks& tasks = stages_[stage];
    size_t op = size_t(plan.stages[stage].first_op);
    int64_t op_begin = 0;
    for (;;) {
      const int64_t task = tasks.next.claim(1);
      if (task >= tasks.task_count) break;
      while (task >= task_ends_[op]) op_begin = task_ends_[op++];
      kernels_[op].run(plan.ops[op], step, task - op_begin, scratch);
    }
    threads_->barrier(worker);
  }
}

void HostBackend::execute(const Plan& plan, const Step& step) {
  CHECK(&plan == prepared_);
  count_tasks(plan, step);
  threads_->run([&](int worker) { work(plan, step, worker); });
}

}  // namespace cairn::host
