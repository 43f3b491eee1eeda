// The last step's guesses, and the pool's behind them.
#include "engine/drafts/lookahead_drafter.h"

#include <algorithm>
#include <cstdint>
#include <span>

#include "sample/candidates.h"

namespace cairn {

namespace {

constexpr int32_t kCountMax = 8;
// Claimed chances, to be calibrated: of what a row has said, and of anything else. What is not
// known is the last token again: any token makes a row say something.
constexpr float kSaid = 0.3f, kOther = 0.15f;

}  // namespace

void LookaheadDrafter::take(int32_t position, const StepOutputs& rows, int32_t count) {
  guesses_.clear();
  guesses_begin_ = size_t(position + count) + 1;
  Token before = Token(-1);
  for (int32_t row = 0; row < rows.count(); ++row) {
    const Token said = sample::likeliest(rows.logits(row));
    if (row > 0) pool_.learn(before, said);
    before = said;
    if (row >= count) guesses_.push_back(said);
  }
}

void LookaheadDrafter::propose(const draft::View& view, draft::Draft& draft) {
  if (view.text.empty()) return;
  Token last = view.text.back();
  const bool has_guesses = guesses_begin_ == view.text.size();
  for (int32_t i = 0; i < std::min(view.count_max, kCountMax); ++i) {
    const bool is_said = has_guesses && size_t(i) < guesses_.size();
    const Token next = is_said ? guesses_[size_t(i)] : pool_.best(last).token;
    if (index_of(next) >= 0) last = next;
    draft.add(last, is_said ? kSaid : kOther);
  }
}

}  // namespace cairn
