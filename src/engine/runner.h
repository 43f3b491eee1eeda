// Computes steps: transactions in, logits out. Schedules nothing. Owns the workspace and the
// recorded plans of each variant of the model (such as its adapters), which all tenants share, all
// allocated before they are used; a step allocates nothing. A sequence is always computed by the
// plans of its own variant. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "device/backend.h"
#include "device/plan.h"
#include "memory/memory.h"

namespace cairn {

// The rows of one sequence in a step. All parts of a step are computed by one variant's plans.
struct BatchPart {
  memory::Transaction* transaction = nullptr;
  // Tokens whose logits are wanted, by their index in the transaction, ascending.
  std::span<const int32_t> outputs;
  // The rows that op::Given reads, one for each token; none where no op does.
  std::span<const float> given = {};
  bool is_answer = false;  // Its rows are those of an answer; else of a prompt.
};

size_t recorded_bytes(const Plan& plan);  // Of its lists.
// What the plans of one variant take, with what backends keep for each of their ops.
size_t plan_bytes(const Plans& plans);

class Runner {
 public:
  // With the plans of the plain variant.
  static Result<std::unique_ptr<Runner>> create(Plans plans, const memory::Layout& layout,
                                                Backend* backend);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  // Adds the plans of another variant, for the same memory and as many rows. Invalidates outputs.
  // Errors: memory_full, those of the backend.
  Status add(memory::Variant variant, Plans plans);
  void drop(memory::Variant variant);  // Likewise. REQUIRES: it was added.

  // REQUIRES: the parts' tokens and outputs together are within the limits; the parts are of one
  // computation, whose plans are here, and whole texts where the model sees these at once.
  // False: it was given up (device/step.h): there are no outputs, and nothing may be committed.
  bool run(std::span<const BatchPart> parts,
           std::optional<FunctionRef<bool()>> is_given_up = std::nullopt);

  // Output `output` of the last step, counted over all parts in order; valid until the runner
  // computes again.
  std::span<const float> hidden(int32_t output) const;  // [width]: the head's input.
  std::span<const float> logits(int32_t output) const;  // [vocabulary]

  // Copies the hidden row of an output of the last step into the transaction that asked for it.
  void keep_hidden(memory::Transaction& transaction, int32_t output);
  // Computes logits(0) from a hidden row of a variant. REQUIRES: it is as wide as the model; the
  // variant's plans are here.
  void restore_logits(DeviceBytes hidden, memory::Variant variant);

  // Computes all pieces of replays, those of several sequences side by side: afterwards they can be
  // committed. There are no logits then.
  // REQUIRES: a piece has at most replay_rows_max() rows; its variant's plans are here.
  void replay(std::span<memory::Replay> replays);

  // The number of computations so far; outputs belong to the last one.
  int64_t run_count() const { return run_count_; }

  int32_t row_count_max() const { return plans().step.row_count_max; }
  int32_t replay_rows_max() const { return plans().replay.row_count_max; }
  int32_t output_count_max() const { return plans().step.output_count_max; }
  int32_t variant_count() const { return int32_t(plans_.size()); }
  size_t plan_bytes() const;  // Of all recorded plans.
  // REQUIRES: they are here.
  const Plans& plans(memory::Variant variant = memory::Variant::plain) const;

 private:
  struct VariantPlans {
    memory::Variant variant;
    Plans plans;
  };

  Runner(const memory::Layout& layout, Backend* backend) : layout_(layout), backend_(backend) {}
  void reserve_rows();
  void forget_outputs();
  bool add_pieces(std::span<memory::Replay> replays);
  void clear();
  void add_slice(const Slice& slice, std::span<const Token> tokens);
  bool execute(const Plan& plan, std::optional<FunctionRef<bool()>> is_given_up = std::nullopt);
  DeviceBytes output_row(const Rows& rows, int32_t output) const;
  std::span<const float> seen_by_host(const Rows& rows, int32_t output) const;

  const memory::Layout& layout_;
  Backend* backend_;
  // Few, the plain variant first. Backends identify plans by their addresses.
  std::vector<std::unique_ptr<const VariantPlans>> plans_;
  std::unique_ptr<Buffer> workspace_;  // As large as the largest plan needs.
  size_t workspace_bytes_ = 0;
  const Plan* last_plan_ = nullptr;  // The plan that wrote the outputs: a step's or a head's.
  int64_t run_count_ = 0;
  bool needs_whole_texts_ = false;
  int32_t given_width_ = 0;  // Of the rows that the plans read beside tokens; 0: none.
  std::vector<float> given_;
  std::vector<Token> tokens_;
  std::vector<Token> no_tokens_;  // For replays, which read no tokens.
  std::vector<int32_t> positions_, slice_of_row_, output_rows_;
  std::vector<Slice> slices_;
  std::vector<int32_t> replayed_pieces_;  // Of each replay.
};

}  // namespace cairn
