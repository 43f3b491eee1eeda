// A place in the prediction, and how it moves.
#include "draft/prediction_drafter.h"

#include <algorithm>

#include "draft/match_chance.h"

namespace cairn::draft {

namespace {

// A match of so many tokens is where the answer goes on; before it is found, a changed token is
// taken for one that replaced one.
constexpr int32_t kFoundAgain = 3;
// The first token is expected as if so many before it had been right; how likely one behind a
// changed one is.
constexpr int32_t kFirstTrust = 6;
constexpr float kBehindChange = .4f;
// After a rewind the place is found by so many tokens.
constexpr size_t kContextTokens = 64;

}  // namespace

PredictionDrafter::PredictionDrafter(std::span<const Token> prediction, size_t answer_begin)
    : answer_begin_(answer_begin), right_(kFirstTrust) {
  for (const Token token : prediction) prediction_.append(token);
}

void PredictionDrafter::restart(std::span<const Token> answer) {
  cursor_ = {};
  right_ = kFirstTrust;
  wrong_ = 0;
  // As if the answer had followed it until there.
  const auto context = answer.last(std::min(answer.size(), kContextTokens));
  place_ = answer.size() - context.size();
  for (const Token token : context) advance(token);
}

void PredictionDrafter::advance(Token token) {
  const std::span<const Token> tokens = prediction_.tokens();
  prediction_.advance(cursor_, token);
  const bool is_right = place_ < tokens.size() && tokens[place_] == token;
  ++place_;
  right_ = is_right ? right_ + 1 : 0;
  wrong_ = is_right ? 0 : wrong_ + 1;
  if (cursor_.length > right_ && cursor_.length >= kFoundAgain) {
    place_ = prediction_.end_of(cursor_);
    right_ = cursor_.length;
    wrong_ = 0;
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
  for (int32_t i = 0; i < view.count_max && place_ + size_t(i) < tokens.size(); ++i) {
    const float chance = i == 0 && wrong_ > 0 ? kBehindChange / float(wrong_)
                                              : match_chance(right_ + i + kMatchLeast);
    draft.add(tokens[place_ + size_t(i)], chance);
  }
}

}  // namespace cairn::draft
