// Drafts from a text that the request expects as the answer, with changes here and there (OpenAI's
// `prediction`): in step with the answer as long as that follows it, found again after a change.
// Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "draft/draft.h"
#include "draft/suffix_automaton.h"
#include "draft/text_place.h"

namespace cairn::draft {

class PredictionDrafter : public Drafter {
 public:
  // `answer_begin`: where in the text the answer begins.
  PredictionDrafter(std::span<const Token> prediction, size_t answer_begin);

  std::string_view name() const override { return "prediction"; }
  void propose(const View& view, Draft& draft) override;

 private:
  void restart(std::span<const Token> answer);
  void advance(Token token);

  SuffixAutomaton prediction_;
  size_t answer_begin_;
  SuffixAutomaton::Cursor cursor_;
  TextPlace place_;      // Where in the prediction the answer is.
  size_t followed_ = 0;  // Tokens of the answer.
  Token last_token_ = Token(0);
};

}  // namespace cairn::draft
