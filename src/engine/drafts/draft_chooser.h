// Which tokens a model proposes as a draft: chosen from its logits as the answer's are, by the same
// chain and the same noise, which belongs to a position and a token; and how many: as long as one
// more is worth the time that it takes, by how often such tokens were right. Knows no engine.
// Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "draft/calibration.h"
#include "draft/draft.h"
#include "sample/sampler.h"

namespace cairn {

class DraftChooser {
 public:
  // A draft's tokens at most: what comes later is hardly ever reached.
  static constexpr int32_t kTokensMost = 16;

  // The sampler is the answer's, and outlives the chooser. `tokenizer`: null: no token is known to
  // end an answer.
  DraftChooser(const sample::Sampler* answers, const tokenize::Tokenizer* tokenizer);

  // Learns what became of the last draft, as far as the text goes, and takes note of the text.
  void follow(std::span<const Token> text);
  size_t text_size() const { return text_size_; }

  // Adds to the draft what may follow the text. `logits`: behind it. `compute`: those behind one
  // token more. Errors: the sampler's, and those of `compute`.
  using Compute = FunctionRef<Result<std::span<const float>>(Token)>;
  Status choose(const draft::View& view, std::span<const float> logits, Compute compute,
                draft::Draft& draft);

 private:
  bool pays(double reach, double expected, int32_t count, double step_seconds) const;

  const sample::Sampler* answers_;
  const tokenize::Tokenizer* tokenizer_;
  sample::Sampler sampler_;
  std::vector<Token> text_;  // With the last draft behind it.
  size_t text_size_ = 0;     // Without.
  draft::Calibration calibration_{draft::Calibration::kSequence};
  std::vector<float> claimed_;  // Of each token of the last draft, by the model that drafts.
  double token_seconds_ = 0;    // What one more token takes, a moving average; 0: not known.
};

}  // namespace cairn
