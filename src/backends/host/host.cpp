// The walk of a plan by the threads of a pool: stage by stage, tasks claimed one by one.
#include "backends/host/host.h"

#include <algorithm>
#include <utility>

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
  Prepared prepared{.plan = &plan};
  for (const Op& op : plan.ops) {
    const HostKernel kernel = kernel_for(op);
    CHECK(kernel.run != nullptr);
    prepared.kernels.push_back(kernel);
    if (kernel.scratch_bytes != nullptr) {
      scratch_bytes_ = std::max(scratch_bytes_, (kernel.scratch_bytes(op) + 63) / 64 * 64);
    }
  }
  prepared.task_ends.assign(plan.ops.size(), 0);
  prepared.stages = std::vector<StageTasks>(plan.stages.size());
  scratch_.assign(scratch_bytes_ * size_t(threads_->thread_count()) + 64, std::byte{0});
  std::erase_if(prepared_, [&](const Prepared& other) { return other.plan == &plan; });
  prepared_.push_back(std::move(prepared));
  return Ok{};
}

HostBackend::Prepared& HostBackend::prepared_for(const Plan& plan) {
  for (Prepared& prepared : prepared_) {
    if (prepared.plan == &plan) return prepared;
  }
  CHECK(false);
  return prepared_.front();
}

void HostBackend::count_tasks(Prepared& prepared, const Step& step) {
  const Plan& plan = *prepared.plan;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const Stage& range = plan.stages[stage];
    int64_t end = 0;
    for (int32_t op = range.first_op; op < range.first_op + range.op_count; ++op) {
      end += prepared.kernels[size_t(op)].task_count(plan.ops[size_t(op)], step);
      prepared.task_ends[size_t(op)] = end;
    }
    prepared.stages[stage].next.reset();
    prepared.stages[stage].task_count = end;
  }
}

void HostBackend::work(Prepared& prepared, const Step& step, int worker) {
  const Plan& plan = *prepared.plan;
  const auto aligned = (reinterpret_cast<uintptr_t>(scratch_.data()) + 63) / 64 * 64;
  std::byte* scratch = reinterpret_cast<std::byte*>(aligned) + scratch_bytes_ * size_t(worker);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    StageTasks& tasks = prepared.stages[stage];
    size_t op = size_t(plan.stages[stage].first_op);
    int64_t op_begin = 0;
    for (;;) {
      const int64_t task = tasks.next.claim(1);
      if (task >= tasks.task_count) break;
      while (task >= prepared.task_ends[op]) op_begin = prepared.task_ends[op++];
      prepared.kernels[op].run(plan.ops[op], step, task - op_begin, scratch);
    }
    threads_->barrier(worker);
  }
}

void HostBackend::execute(const Plan& plan, const Step& step) {
  Prepared& prepared = prepared_for(plan);
  count_tasks(prepared, step);
  threads_->run([&](int worker) { work(prepared, step, worker); });
}

}  // namespace cairn::host
