// Log-probabilities of a prompt's own tokens, each by what stands before it. Rows of logits are
// reduced while a step's outputs are there: none is kept. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/threads.h"
#include "engine/lane.h"
#include "sample/log_probabilities.h"

namespace cairn::session {

// One for each token of the prompt but the first, which nothing stands before.
using PromptProbabilities = std::vector<sample::LogProbabilities>;

class PromptProbabilityReader final : public PromptReader {
 public:
  // Beside each token tells the likeliest `top_count`, at least 1. The prompt and the threads must
  // outlive it.
  PromptProbabilityReader(std::span<const Token> prompt, size_t top_count, ThreadPool* threads)
      : prompt_(prompt),
        top_count_(top_count),
        threads_(threads),
        made_(std::make_shared<PromptProbabilities>(prompt.empty() ? 0 : prompt.size() - 1)) {}

  void take(int32_t position, const StepOutputs& rows) override;
  // REQUIRES: the prompt is read. Errors: invalid_data, where logits are no numbers.
  Result<std::shared_ptr<const PromptProbabilities>> made() const;

 private:
  std::span<const Token> prompt_;
  size_t top_count_;
  ThreadPool* threads_;
  std::shared_ptr<PromptProbabilities> made_;
};

}  // namespace cairn::session
