// Executes a plan by the threads of a pool, round by round. Each thread has a contiguous share of a
// round's tasks, so that it reads contiguous memory. Threads that are done early steal from the
// others.
#include "backends/host/host.h"

#include <algorithm>
#include <utility>

namespace cairn::host {
namespace {

size_t whole_lines(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

HostBackend::HostBackend(ThreadPool* threads, KernelChoice choice, KernelChoice fallback,
                         AfterKernel after_kernel)
    : threads_(threads),
      choice_(choice),
      fallback_(fallback),
      after_kernel_(after_kernel),
      claims_(size_t(threads->thread_count())) {}

Status HostBackend::load(Weight&) {
  return Ok{};
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
  prepared.rounds.emplace(plan, prepared.kernels);
  prepared.task_ends.assign(prepared.rounds->units().size(), 0);
  prepared.cuts.assign(prepared.task_ends.size(), {});
  place_shared(prepared);
  CAIRN_TRY(make_room());
  release(plan);
  prepared_.push_back(std::move(prepared));
  return Ok{};
}

void HostBackend::release(const Plan& plan) {
  std::erase_if(prepared_, [&](const Prepared& other) { return other.plan == &plan; });
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

void HostBackend::count_tasks(Prepared& prepared, const std::vector<Round>& rounds,
                              const Step& step) {
  const Plan& plan = *prepared.plan;
  std::byte* const notes = room_of(0).notes;
  for (const Round& round : rounds) {
    int64_t end = 0;
    for (int32_t i = round.first_unit; i < round.first_unit + round.unit_count; ++i) {
      const Unit& unit = prepared.rounds->units()[size_t(i)];
      const size_t op = size_t(unit.first_op);
      const HostKernel& kernel = prepared.kernels[op];
      if (unit.fused >= 0) {
        prepared.cuts[size_t(i)] = Rounds::cut(unit, plan, prepared.kernels, step);
        end += prepared.cuts[size_t(i)].count();
      } else if (kernel.joint != nullptr) {
        end += kernel.joint->cut(plan.ops[op], step, notes + prepared.notes[op]);
      } else {
        end += kernel.task_count(plan.ops[op], step);
      }
      prepared.task_ends[size_t(i)] = end;
    }
  }
}

void HostBackend::run_task(const Prepared& prepared, const Step& step, size_t unit, int64_t task,
                           const SharedRoom& room) const {
  const Unit& tasks = prepared.rounds->units()[unit];
  if (tasks.fused >= 0) return run_pieces(prepared, step, unit, task, room.scratch);
  const size_t op = size_t(tasks.first_op);
  const HostKernel& kernel = prepared.kernels[op];
  const Op& fields = prepared.plan->ops[op];
  if (kernel.joint == nullptr) {
    kernel.run(fields, step, task, room.scratch);
  } else {
    kernel.joint->run(
        fields, step, task,
        {room.scratch, room.notes + prepared.notes[op], room.shared + prepared.shared[op]});
  }
  if (after_kernel_ != nullptr) after_kernel_();
}

// A piece through all ops of the unit.
void HostBackend::run_pieces(const Prepared& prepared, const Step& step, size_t unit, int64_t task,
                             std::byte* scratch) const {
  const Unit& ops = prepared.rounds->units()[unit];
  const PieceCut& cut = prepared.cuts[unit];
  const Piece piece = cut.piece(task);
  const bool whole = cut.columns == cut.width;
  for (int32_t i = ops.first_op; i < ops.first_op + ops.op_count; ++i) {
    const PieceOfOp& own = prepared.plan->pieces[size_t(i)];
    Piece part = piece;
    part.first_column = whole ? 0 : std::max(0, piece.first_column - own.first_column);
    part.end_column =
        whole ? own.column_count : std::min(own.column_count, piece.end_column - own.first_column);
    if (part.first_column >= part.end_column) continue;
    prepared.kernels[size_t(i)].run_piece(prepared.plan->ops[size_t(i)], step, part, scratch);
    if (after_kernel_ != nullptr) after_kernel_();
  }
}

// For the round after this one, in which nobody claims yet. Who does not take part has a share as
// well, for others to take.
void HostBackend::reset_claims(int worker, size_t parity) {
  claims_[size_t(worker)].of_round[parity].reset();
  if (worker != 0) return;
  for (int other = 1; other < threads_->thread_count(); ++other) {
    if (!threads_->takes_part(other)) claims_[size_t(other)].of_round[parity].reset();
  }
}

void HostBackend::work(const Prepared& prepared, const std::vector<Round>& rounds, const Step& step,
                       int worker) {
  const SharedRoom room = room_of(worker);
  const int thread_count = threads_->thread_count();
  for (size_t index = 0; index < rounds.size(); ++index) {
    reset_claims(worker, (index + 1) % 2);
    if (worker == 0 && step.is_given_up) is_given_up_[index % 2] = (*step.is_given_up)();
    const Round& round = rounds[index];
    const int64_t count = prepared.task_ends[size_t(round.first_unit + round.unit_count - 1)];
    for (int turn = 0; turn < thread_count; ++turn) {
      const int owner = (worker + turn) % thread_count;
      TaskCounter& claims = claims_[size_t(owner)].of_round[index % 2];
      const int64_t begin = count * owner / thread_count;
      const int64_t end = count * (owner + 1) / thread_count;
      size_t unit = size_t(round.first_unit);
      int64_t unit_begin = 0;
      for (int64_t task; (task = begin + claims.claim(1)) < end;) {
        while (task >= prepared.task_ends[unit]) unit_begin = prepared.task_ends[unit++];
        run_task(prepared, step, unit, task - unit_begin, room);
      }
    }
    threads_->barrier(worker);
    // Behind the same barrier all hear the same. What is said of the next round goes elsewhere.
    if (is_given_up_[index % 2]) return;
  }
}

bool HostBackend::execute(const Plan& plan, const Step& given) {
  Prepared& prepared = prepared_for(plan);
  Step step = given;
  step.thread_count = threads_->thread_count();
  const std::vector<Round>& rounds = prepared.rounds->choose(step);
  count_tasks(prepared, rounds, step);
  for (Claims& claims : claims_) claims.of_round[0].reset();
  is_given_up_ = {};
  threads_->run_skipping_busy_workers([&](int worker) { work(prepared, rounds, step, worker); });
  return !is_given_up_[0] && !is_given_up_[1];
}

}  // namespace cairn::host
