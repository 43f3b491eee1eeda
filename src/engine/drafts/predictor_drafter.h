// Drafts by the model's own layer for that (multi-token prediction): from the hidden row of the
// last token and the token behind it the one after that, and so on from what the layer itself
// gives. Reads the hidden rows of an answer's tokens as they are computed; those of the prompt it
// does not see. An error ends its drafts, never the answer. Thread rule: that of drafters.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "draft/draft.h"
#include "engine/drafts/draft_chooser.h"
#include "engine/drafts/predictor.h"
#include "engine/drafts/row_reader.h"
#include "memory/memory.h"
#include "sample/sampler.h"

namespace cairn {

class PredictorDrafter final : public draft::Drafter, public RowReader {
 public:
  // All of them outlive the drafter; the sampler is the answer's.
  PredictorDrafter(Predictor* predictor, const sample::Sampler* sampler,
                   const tokenize::Tokenizer* tokenizer);

  std::string_view name() const override { return "mtp"; }
  void propose(const draft::View& view, draft::Draft& draft) override;
  bool is_costly() const override { return true; }
  std::string_view off_reason() const override { return off_reason_; }

  void take(int32_t position, const StepOutputs& rows, int32_t count) override;
  using draft::Drafter::take;

 private:
  Status try_propose(const draft::View& view, draft::Draft& draft);
  Status read(std::span<const Token> text);
  Status compute(std::span<const Token> tokens, std::span<const float> rows);
  void restart(int32_t position);
  int32_t known_end() const;

  Predictor* predictor_;
  DraftChooser chooser_;
  // Of the text from begin_ + 1 on: each token beside the hidden row of the one before it.
  memory::Sequence sequence_;
  int32_t begin_ = 0;
  std::vector<float> rows_;  // Those behind the sequence's end, which are not read yet.
  std::vector<float> next_row_;
  std::span<const float> logits_;
  std::string_view off_reason_;
};

}  // namespace cairn
