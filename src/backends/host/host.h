// Runs plans on this machine's threads. A host backend is a table of kernels; this file has what
// all of them share: cutting a round into tasks, distributing tasks over threads, and the barriers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "backends/host/kernel.h"
#include "backends/host/kv_page.h"
#include "backends/host/rounds.h"
#include "base/arena.h"
#include "base/cpu_features.h"
#include "base/threads.h"
#include "device/backend.h"
#include "device/host_memory.h"

namespace cairn::host {

// The kernel that computes an op; a kernel that does not exist means that this backend has none.
using KernelChoice = HostKernel (*)(const Op& op);

// Runs each op on choice(op) or, if that has no kernel, on fallback(op), which must have one.
class HostBackend : public Backend {
 public:
  // `after_kernel` may be null.
  HostBackend(ThreadPool* threads, KernelChoice choice, KernelChoice fallback,
              AfterKernel after_kernel = nullptr);

  DeviceMemory& memory() override { return memory_; }
  PageFormat page_format() const override { return kPageFormat; }
  PieceAlignment piece_alignment() const override { return {}; }
  std::string_view isa() const override { return name(IsaLevel::scalar); }
  Status load(Weight& weight) override;  // Nothing to do: kernels read the file's blocks.
  Status prepare(const Plan& plan) override;
  void release(const Plan& plan) override;
  bool execute(const Plan& plan, const Step& given) override;

 private:
  // How many tasks of a thread's share are claimed: of this round and, by turns, the next.
  struct Claims {
    TaskCounter of_round[2];
  };
  struct Prepared {
    const Plan* plan = nullptr;
    std::vector<HostKernel> kernels;  // One for each op.
    std::optional<Rounds> rounds;
    std::vector<int64_t> task_ends;  // Of each unit, counted from its round's first task.
    std::vector<PieceCut> cuts;      // Of each unit of fused ops.
    std::vector<size_t> notes;       // Of each op: where they begin in notes_.
    std::vector<size_t> shared;      // Of each op, likewise in shared_.
  };

  HostKernel kernel_for(const Op& op) const;
  Prepared& prepared_for(const Plan& plan);
  void place_shared(Prepared& prepared);
  Status make_room();
  SharedRoom room_of(int worker) const;
  void count_tasks(Prepared& prepared, const std::vector<Round>& rounds, const Step& step);
  void run_task(const Prepared& prepared, const Step& step, size_t unit, int64_t task,
                const SharedRoom& room) const;
  void run_pieces(const Prepared& prepared, const Step& step, size_t unit, int64_t task,
                  std::byte* scratch) const;
  void reset_claims(int worker, size_t parity);
  void work(const Prepared& prepared, const std::vector<Round>& rounds, const Step& step,
            int worker);

  HostMemory memory_;
  ThreadPool* threads_;
  KernelChoice choice_;
  KernelChoice fallback_;
  AfterKernel after_kernel_;
  std::vector<Prepared> prepared_;  // A few.
  std::vector<Claims> claims_;      // Of each thread.
  // What the step said when a round began: of this round and, by turns, the next.
  std::array<bool, 2> is_given_up_{};
  std::optional<Arena> room_;  // Each thread's scratch, then what tasks share, then the notes.
  size_t scratch_bytes_ = 0;   // Of each thread, for any of the plans.
  size_t shared_bytes_ = 0;    // Of a stage's ops, for any stage of any plan.
  size_t notes_bytes_ = 0;     // Of all ops of a plan, for any of them.
};

}  // namespace cairn::host
