// A place in the prediction, and how it moves.
#include "draft/prediction_drafter.h"

#include <algorithm>

namespace cairn::draft {

namespace {

// A match of so many tokens is where the answer goes on.
constexpr int32_t kFoundAgain = 3;
// The first token is expected as if so many before it had been right.
constexpr int32_t kFirstTrust = 6;
// After a rewind the place is found by so many tokens.
constexpr size_t kContextTokens = 64;

}  // namespace

PredictionDrafter::PredictionDrafter(std::span<const Token> prediction, size_t answer_begin)
    : answer_begin_(answer_begin), place_(0, kFirstTrust) {
  for (const Token token : prediction) prediction_.append(token);
}

void PredictionDrafter::restart(std::span<const Token> answer) {
  cursor_ = {};
  // As if the answer had followed it until there.
  const auto context = answer.last(std::min(answer.size(), kContextTokens));
  place_ = TextPlace(answer.size() - context.size(), kFirstTrust);
  for (const Token token : context) advance(token);
}

void PredictionDrafter::advance(Token token) {
  prediction_.advance(cursor_, token);
  place_.advance(prediction_.tokens(), token);
  if (cursor_.length > place_.right() && cursor_.length >= kFoundAgain) {
    place_ = TextPlace(prediction_.end_of(cursor_), cursor_.length);
  }
}

void PredictionDrafter::propose(const View& view, Draft& draft) {
  if (view.text.size() < answer_begin_) return;
  const std::span<const Token> answer = view.text.subspan(answer_begin_);
  const bool is_rewound =
      answer.size() < followed_ || (followed_ > 0 && answer[followed_ - 1] != last_token_);
  if (is_rewound) {
    restart(answer);
  } else {
    for (const Token token : answer.subspan(followed_)) advance(token);
  }
  followed_ = answer.size();
  if (!answer.empty()) last_token_ = answer.back();

  const std::span<const Token> tokens = prediction_.tokens();
  for (size_t i = place_.next(); i < tokens.size(); ++i) {
    const int32_t depth = int32_t(i - place_.next());
    if (depth == view.count_max) break;
    draft.add(tokens[i], place_.chance(depth));
  }
}

}  // namespace cairn::draft
