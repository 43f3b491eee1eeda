// The walk of a plan by the threads of a pool: stage by stage, tasks claimed one by one.
#include "backends/host/host.h"

#include <algorithm>
#include <utility>

namespace cairn::host {
namespace {

size_t whole_lines(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

HostBackend::HostBackend(ThreadPool* threads, KernelChoice choice, KernelChoice fallback)
    : threads_(threads), choice_(choice), fallback_(fallback) {}

Status HostBackend::load(Weight&) {
  return Ok{};
}

bool HostBackend::supports(const Op& op) const {
  return choice_(op).exists();
}

HostKernel HostBackend::kernel_for(const Op& op) const {
  const HostKernel kernel = choice_(op);
  return kernel.exists() ? kernel : fallback_(op);
}

Status HostBackend::prepare(const Plan& plan) {
  Prepared prepared{.plan = &plan};
  for (const Op& op : plan.ops) {
    const HostKernel kernel = kernel_for(op);
    CHECK(kernel.exists());
    prepared.kernels.push_back(kernel);
    const auto bytes = kernel.joint != nullptr ? kernel.joint->scratch_bytes : kernel.scratch_bytes;
    if (bytes != nullptr) scratch_bytes_ = std::max(scratch_bytes_, whole_lines(bytes(op)));
  }
  prepared.task_ends.assign(plan.ops.size(), 0);
  prepared.stages = std::vector<StageTasks>(plan.stages.size());
  place_shared(prepared);
  CAIRN_TRY(make_room());
  std::erase_if(prepared_, [&](const Prepared& other) { return other.plan == &plan; });
  prepared_.push_back(std::move(prepared));
  return Ok{};
}

// Stages run one after another, so their ops may share in the same bytes; notes are written before
// the first stage and read until the last.
void HostBackend::place_shared(Prepared& prepared) {
  const Plan& plan = *prepared.plan;
  prepared.notes.assign(plan.ops.size(), 0);
  prepared.shared.assign(plan.ops.size(), 0);
  size_t notes_bytes = 0;
  for (const Stage& stage : plan.stages) {
    size_t shared_bytes = 0;
    for (int32_t i = stage.first_op; i < stage.first_op + stage.op_count; ++i) {
      const size_t op = size_t(i);
      const JointKernel* joint = prepared.kernels[op].joint;
      if (joint == nullptr) continue;
      prepared.notes[op] = notes_bytes;
      prepared.shared[op] = shared_bytes;
      notes_bytes += whole_lines(joint->notes_bytes(plan.ops[op]));
      shared_bytes += whole_lines(joint->shared_bytes(plan.ops[op]));
    }
    shared_bytes_ = std::max(shared_bytes_, shared_bytes);
  }
  notes_bytes_ = std::max(notes_bytes_, notes_bytes);
}

// Touched only where it is used, so it may be ample.
Status HostBackend::make_room() {
  const size_t bytes =
      scratch_bytes_ * size_t(threads_->thread_count()) + shared_bytes_ + notes_bytes_;
  if (bytes == 0) return Ok{};
  CAIRN_TRY(room_, Arena::reserve(bytes));
  return Ok{};
}

HostBackend::Prepared& HostBackend::prepared_for(const Plan& plan) {
  for (Prepared& prepared : prepared_) {
    if (prepared.plan == &plan) return prepared;
  }
  CHECK(false);
  return prepared_.front();
}

SharedRoom HostBackend::room_of(int worker) const {
  std::byte* scratch = room_.has_value() ? room_->data() : nullptr;
  std::byte* shared = scratch + scratch_bytes_ * size_t(threads_->thread_count());
  return {scratch + scratch_bytes_ * size_t(worker), shared + shared_bytes_, shared};
}

void HostBackend::count_tasks(Prepared& prepared, const Step& step) {
  const Plan& plan = *prepared.plan;
  std::byte* const notes = room_of(0).notes;
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    const Stage& range = plan.stages[stage];
    int64_t end = 0;
    for (int32_t op = range.first_op; op < range.first_op + range.op_count; ++op) {
      const HostKernel& kernel = prepared.kernels[size_t(op)];
      end += kernel.joint != nullptr
                 ? kernel.joint->cut(plan.ops[size_t(op)], step, notes + prepared.notes[size_t(op)])
                 : kernel.task_count(plan.ops[size_t(op)], step);
      prepared.task_ends[size_t(op)] = end;
    }
    prepared.stages[stage].next.reset();
    prepared.stages[stage].task_count = end;
  }
}

void HostBackend::work(Prepared& prepared, const Step& step, int worker) {
  const Plan& plan = *prepared.plan;
  const SharedRoom room = room_of(worker);
  for (size_t stage = 0; stage < plan.stages.size(); ++stage) {
    StageTasks& tasks = prepared.stages[stage];
    size_t op = size_t(plan.stages[stage].first_op);
    int64_t op_begin = 0;
    for (;;) {
      const int64_t task = tasks.next.claim(1);
      if (task >= tasks.task_count) break;
      while (task >= prepared.task_ends[op]) op_begin = prepared.task_ends[op++];
      const HostKernel& kernel = prepared.kernels[op];
      if (kernel.joint == nullptr) {
        kernel.run(plan.ops[op], step, task - op_begin, room.scratch);
      } else {
        kernel.joint->run(
            plan.ops[op], step, task - op_begin,
            {room.scratch, room.notes + prepared.notes[op], room.shared + prepared.shared[op]});
      }
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
