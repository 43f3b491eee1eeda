// Computes steps: transactions in, logits out. Decides nothing. Owns the recorded plans and the
// workspace, all made once; a step allocates nothing.
// Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/result.h"
#include "device/backend.h"
#include "device/plan.h"
#include "memory/memory.h"

namespace cairn {

// The rows of one sequence in a step.
struct BatchPart {
  memory::Transaction* transaction = nullptr;
  // Tokens whose logits are wanted, by their index in the transaction, ascending.
  std::span<const int32_t> outputs;
};

class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(Plans plans, const memory::Layout& layout,
                                                Backend* backend);

  // REQUIRES: the parts' tokens and outputs together are within the limits; parts of models that
  // see whole texts at once are such.
  void run(std::span<const BatchPart> parts);

  // Of the last step's outputs, counted over all parts in order; valid until the runner computes
  // again.
  std::span<const float> hidden(int32_t output) const;  // [width]: what the logits are made of.
  std::span<const float> logits(int32_t output) const;  // [vocabulary]

  // Copies the hidden row of an output of the last step into the transaction that asked for it.
  void keep_hidden(memory::Transaction& transaction, int32_t output);
  // Makes logits(0) from a hidden row that was kept. REQUIRES: it is as wide as the model.
  void restore_logits(std::span<const float> hidden);

  // Computes all pieces of a replay: afterwards it can be committed. There are no logits then.
  // REQUIRES: a piece has at most row_count_max() rows.
  void replay(memory::Replay& replay);

  // How often it has computed anything: outputs belong to the last time.
  int64_t run_count() const { return run_count_; }

  int32_t row_count_max() const { return plans_.step.row_count_max; }
  int32_t output_count_max() const { return plans_.step.output_count_max; }
  const Plans& plans() const { return plans_; }

 private:
  Runner(Plans plans, const memory::Layout& layout, Backend* backend, Arena workspace);
  void clear();
  void add_slice(const Slice& slice, std::span<const Token> tokens);
  void execute(const Plan& plan);
  std::span<float> output_row(const Rows& rows, int32_t output) const;

  Plans plans_;
  const memory::Layout& layout_;
  Backend* backend_;
  Arena workspace_;
  const Plan* last_plan_ = nullptr;  // Where the outputs lie: the step's or the head's.
  int64_t run_count_ = 0;
  bool needs_whole_texts_ = false;
  std::vector<Token> tokens_;
  std::vector<Token> no_tokens_;  // Replays look at none.
  std::vector<int32_t> positions_, slice_of_row_, output_rows_;
  std::vector<Slice> slices_;
};

}  // namespace cairn
