// Rules for drafts, and the record of those that kept them.
#include "draft/asked_drafter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace cairn::draft {

namespace {

constexpr int32_t kFaultsMax = 3;
// A list that was made longer than this gives its memory back.
constexpr size_t kKeptTokens = 4096;

// The first tokens that may be what they are said to be.
size_t valid_count(const Draft& draft, int32_t vocabulary_count) {
  const size_t count = std::min(draft.tokens.size(), draft.chances.size());
  for (size_t i = 0; i < count; ++i) {
    const int32_t id = index_of(draft.tokens[i]);
    const float chance = draft.chances[i];
    // A chance that is not a number fails both comparisons.
    if (id < 0 || id >= vocabulary_count || !(chance >= 0 && chance <= 1)) return i;
  }
  return count;
}

}  // namespace

AskedDrafter::AskedDrafter(std::unique_ptr<Drafter> drafter, Calibration* shared)
    : drafter_(std::move(drafter)), shared_(shared) {
  CHECK(drafter_ != nullptr);
}

void AskedDrafter::ask(const View& view, int32_t vocabulary_count) {
  // The earlier draft is followed to its end before another one is, so that what is known of deep
  // tokens does not depend on whether they are right.
  if (current_.is_open && !earlier_.is_open) std::swap(current_, earlier_);
  current_.drop();
  Draft& draft = current_.draft;
  drafter_->propose(view, draft);
  if (ask_count_ < 2) ++ask_count_;

  const bool is_even = draft.tokens.size() == draft.chances.size();
  size_t count = valid_count(draft, vocabulary_count);
  const bool is_valid = is_even && count == draft.tokens.size();
  const bool is_short = draft.tokens.size() <= size_t(view.count_max);
  count = std::min(count, size_t(view.count_max));
  draft.tokens.resize(count);
  draft.chances.resize(count);
  if (draft.tokens.capacity() > kKeptTokens) draft.tokens.shrink_to_fit();
  if (draft.chances.capacity() > kKeptTokens) draft.chances.shrink_to_fit();
  if (!is_valid) {
    add_fault("its drafts were not valid");
  } else if (!is_short) {
    add_fault("its drafts were too long");
  }
  current_.begin = view.text.size();
  current_.compared = 0;
  current_.is_open = count > 0;
}

void AskedDrafter::drop_late() {
  current_.drop();
  add_fault("its drafts came too late");
}

void AskedDrafter::add_fault(std::string_view reason) {
  if (++fault_count_ >= kFaultsMax) off_reason_ = reason;
}

float AskedDrafter::expected(int32_t depth, float claimed) const {
  return shared_ != nullptr ? shared_->chance(depth, claimed, claimed) : claimed;
}

float AskedDrafter::chance(int32_t depth) const {
  const float claimed = current_.draft.chances[size_t(depth)];
  return own_.chance(depth, claimed, expected(depth, claimed));
}

void AskedDrafter::follow(std::span<const Token> text) {
  const bool is_rewound =
      text.size() < text_size_ || (text_size_ > 0 && text[text_size_ - 1] != last_token_);
  if (is_rewound) {
    earlier_.drop();
    current_.drop();
  }
  compare(earlier_, text);
  compare(current_, text);
  text_size_ = text.size();
  if (!text.empty()) last_token_ = text.back();
}

void AskedDrafter::compare(Followed& followed, std::span<const Token> text) {
  const Draft& draft = followed.draft;
  while (followed.is_open && followed.begin + followed.compared < text.size()) {
    const size_t depth = followed.compared++;
    const bool is_right = text[followed.begin + depth] == draft.tokens[depth];
    const float claimed = draft.chances[depth];
    own_.count(int32_t(depth), claimed, expected(int32_t(depth), claimed), is_right);
    if (shared_ != nullptr) shared_->count(int32_t(depth), claimed, claimed, is_right);
    followed.is_open = is_right && followed.compared < draft.tokens.size();
    if (followed.watch_count > 0) report_watched(followed, is_right);
  }
}

void AskedDrafter::report_watched(Followed& followed, bool is_right) {
  followed.watch_right += is_right ? 1 : 0;
  if (is_right && followed.watch_right < followed.watch_count) return;
  watched_ = {.count = followed.watch_count, .right = followed.watch_right};
  const size_t rest = followed.is_open ? followed.draft.tokens.size() - followed.compared : 0;
  followed.watch_count = int32_t(std::min(rest, size_t(followed.watch_count)));
  followed.watch_right = 0;
}

void AskedDrafter::watch(int32_t count) {
  DCHECK(count > 0 && size_t(count) <= current_.draft.tokens.size());
  if (earlier_.is_open) return;
  current_.watch_count = count;
}

AskedDrafter::Watched AskedDrafter::take_watched() {
  return std::exchange(watched_, {});
}

}  // namespace cairn::draft
