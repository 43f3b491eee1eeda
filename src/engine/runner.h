// Computes steps: transactions in, logits out. Decides nothing. Owns the recorded plan and the
// workspace, both made once; a step allocates nothing.
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
#include "models/model.h"

namespace cairn {

// The rows of one sequence in a step.
struct BatchPart {
  memory::Transaction* transaction = nullptr;
  // Tokens whose logits are wanted, by their index in the transaction, ascending.
  std::span<const int32_t> outputs;
};

class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(const models::Model& model,
                                                const memory::Layout& layout, Backend* backend,
                                                Graph::Limits limits);

  // REQUIRES: the parts' tokens and outputs together are within the limits.
  void run(std::span<const BatchPart> parts);

  // [vocabulary] of the last step's output, counted over all parts in order. Valid until the next
  // run.
  std::span<const float> logits(int32_t output) const;

  int32_t row_count_max() const { return plan_.row_count_max; }
  int32_t output_count_max() const { return plan_.output_count_max; }
  const Plan& plan() const { return plan_; }

 private:
  Runner(Plan plan, const memory::Layout& layout, Backend* backend, Arena workspace);

  Plan plan_;
  const memory::Layout& layout_;
  Backend* backend_;
  Arena workspace_;
  std::vector<Token> tokens_;
  std::vector<int32_t> positions_, slice_of_row_, output_rows_;
  std::vector<Slice> slices_;
};

}  // namespace cairn
