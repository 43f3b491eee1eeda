// Following the text, and the chain behind the longest match.
#include "draft/lookup_drafter.h"

#include <algorithm>
#include <utility>

namespace cairn::draft {

namespace {

// Of a prompt that is longer, the beginning is not looked at; and so much is followed in one step,
// less than a millisecond.
constexpr size_t kFollowedMost = 65536;
constexpr size_t kFollowedAtOnce = 2048;
// More than this is a prompt, and no answer that goes on.
constexpr size_t kAnswered = 128;

// A text that still has its last tokens was not rewound.
constexpr size_t kCompared = 16;

// A chain ends where nobody would check it.
constexpr float kReachLeast = 0.01f;

// The text copies what it has so many tokens in common with, until so many in a row are others. So
// many tokens of that are remembered.
constexpr int32_t kCopied = 8;
constexpr int32_t kLost = 3;
constexpr size_t kRemembered = 128;

// False: so unlikely that nobody would check it.
bool add(Token token, float chance, float& reach, Draft& draft) {
  reach *= chance;
  if (reach < kReachLeast) return false;
  draft.add(token, chance);
  return true;
}

}  // namespace

LookupDrafter::LookupDrafter(Options options)
    : options_(std::move(options)), own_(options_.own_bytes) {
  if (options_.knowledge == nullptr) own_chances_ = std::make_unique<MatchChances>();
}

MatchChances& LookupDrafter::chances() {
  return own_chances_ != nullptr ? *own_chances_ : options_.knowledge->chances;
}

// Of the last draft, up to its first wrong token.
void LookupDrafter::learn(std::span<const Token> text) {
  for (const MatchChances::Evidence& evidence : drafted_) {
    if (drafted_begin_ >= text.size()) break;
    const bool is_right = text[drafted_begin_++] == evidence.token;
    chances().learn(evidence, is_right);
    if (!is_right) break;
  }
  drafted_.clear();
}

size_t LookupDrafter::kept_count(std::span<const Token> text) const {
  const std::span<const Token> known(text_);
  if (text.size() >= known.size()) {
    const size_t compared = std::min(known.size(), kCompared);
    const auto ours = known.last(compared);
    if (std::ranges::equal(ours, text.subspan(known.size() - compared, compared))) {
      return known.size();
    }
  }
  return size_t(std::ranges::mismatch(known, text).in1 - known.begin());
}

void LookupDrafter::rewind(size_t count) {
  // What is given up was said too.
  own_.append(text_.back());
  own_.end_text();
  text_.resize(count);
  own_cursor_ = {};
  corpus_cursor_ = {};
  copied_.clear();
  drafted_.clear();
  if (count == 0) return;
  own_.follow(own_cursor_, text_, count);
  // What comes now is another text; matches run into it from some tokens before.
  const auto indexed = std::span<const Token>(text_).first(count - 1);
  for (const Token token : indexed.last(std::min(indexed.size(), TextIndex::kContextTokens))) {
    own_.append(token);
  }
}

void LookupDrafter::follow(std::span<const Token> text) {
  if (!is_begun_) {
    is_begun_ = true;
    const size_t known = options_.knowledge == nullptr ? 0 : options_.known_count;
    // With some tokens before, so that matches run into what is new.
    begin_ = known - std::min(known, TextIndex::kContextTokens);
    if (text.size() > kFollowedMost) begin_ = std::max(begin_, text.size() - kFollowedMost);
  }
  // A rewind to before the place where following began: a new beginning.
  if (text.size() < begin_) begin_ = text.size();
  const std::span<const Token> followed = text.subspan(begin_);
  const size_t kept = kept_count(followed);
  if (kept < text_.size()) rewind(kept);
  const size_t end = std::min(followed.size(), text_.size() + kFollowedAtOnce);
  while (text_.size() < end) {
    if (!text_.empty()) own_.append(text_.back());
    text_.push_back(followed[text_.size()]);
    place_.advance(copied_, text_.back());
    own_.follow(own_cursor_, text_, 1);
  }
}

int64_t LookupDrafter::Source::begin(SuffixAutomaton::Cursor at) const {
  const size_t end = match.automaton->end_of(at);
  const bool is_at_end = last != nullptr && end == match.automaton->tokens().size();
  return is_at_end ? int64_t(end) : match.automaton->followed_end_of(at);
}

// Behind the index's end is the token that it lacks, then the draft itself: a text that repeats
// itself goes on doing so.
Token LookupDrafter::Source::token_at(size_t place, const Draft& draft) const {
  const std::span<const Token> tokens = match.automaton->tokens();
  if (place < tokens.size()) return tokens[place];
  if (last == nullptr) return SuffixAutomaton::kNoToken;
  return place == tokens.size() ? *last : draft.tokens[place - tokens.size() - 1];
}

LookupDrafter::Source LookupDrafter::longest(const View& view, size_t followed_before) {
  const bool is_at_end = begin_ + text_.size() == view.text.size();
  Source source;
  if (is_at_end) source.match = own_.longest(own_cursor_);
  if (source.match.is_younger && !text_.empty()) source.last = &text_.back();
  if (options_.knowledge != nullptr) {
    const TextIndex& said = options_.knowledge->said.index();
    const bool is_near = is_at_end && text_.size() >= followed_before;
    const size_t new_count =
        is_near ? text_.size() - followed_before : TextIndex::kContextTokens + 1;
    said.follow(corpus_cursor_, view.text, new_count);
    const TextIndex::Match other = said.longest(corpus_cursor_);
    if (other.length > source.match.length) source = {.match = other};
  }
  return source;
}

void LookupDrafter::remember(const Source& source, size_t begin) {
  copied_.clear();
  place_ = TextPlace(0, source.match.length);
  const std::span<const Token> tokens = source.match.automaton->tokens();
  const size_t end = std::min(tokens.size(), begin + kRemembered);
  for (size_t place = begin; place < end && tokens[place] != SuffixAutomaton::kNoToken; ++place) {
    copied_.push_back(tokens[place]);
  }
}

bool LookupDrafter::is_in_step() const {
  return place_.next() < copied_.size() && place_.wrong() < kLost;
}

void LookupDrafter::go_on(int32_t count_max, Draft& draft) const {
  float reach = 1;
  for (int32_t i = 0; i < count_max && place_.next() + size_t(i) < copied_.size(); ++i) {
    if (!add(copied_[place_.next() + size_t(i)], place_.chance(i), reach, draft)) return;
  }
}

MatchChances::Evidence LookupDrafter::evidence_of(const Source& source, size_t begin,
                                                  Token before) {
  return {.length = source.match.length,
          .is_ambiguous = source.match.automaton->is_ambiguous(source.match.at),
          .before = before,
          .token = source.token_at(begin, {})};
}

void LookupDrafter::copy(const Source& source, size_t begin, MatchChances::Evidence evidence,
                         int32_t count_max, Draft& draft) {
  const SuffixAutomaton& automaton = *source.match.automaton;
  SuffixAutomaton::Cursor at = source.match.at;
  float reach = 1;
  for (int32_t i = 0; i < count_max && evidence.token != SuffixAutomaton::kNoToken; ++i) {
    if (!add(evidence.token, chances().chance(evidence), reach, draft)) return;
    drafted_.push_back(evidence);
    automaton.advance(at, evidence.token);
    evidence.before = evidence.token;
    evidence.token = source.token_at(++begin, draft);
    ++evidence.length;
    // Behind the index's end nothing is known.
    evidence.is_ambiguous = at.length >= evidence.length && automaton.is_ambiguous(at);
  }
}

void LookupDrafter::propose(const View& view, Draft& draft) {
  const int32_t count_max = std::min(view.count_max, kCountMax);
  const size_t followed_before = text_.size();
  follow(view.text);
  learn(view.text);
  drafted_begin_ = view.text.size();
  is_reading_ = text_.size() > followed_before + kAnswered;
  Source source = longest(view, followed_before);
  // Where the match ends its text, a shorter one may not.
  int64_t begin = -1;
  while (source.match.length >= kMatchLeast && (begin = source.begin(source.match.at)) < 0) {
    source.match.at = source.match.automaton->shorter(source.match.at);
    source.match.length = source.match.at.length;
  }
  if (begin < 0) {
    if (is_in_step()) go_on(count_max, draft);
    return;
  }
  const MatchChances::Evidence first = evidence_of(source, size_t(begin), view.text.back());
  if (source.match.length >= kCopied) {
    remember(source, size_t(begin));
  } else if (is_in_step() && place_.chance(0) > chances().chance(first)) {
    return go_on(count_max, draft);
  }
  copy(source, size_t(begin), first, count_max, draft);
}

}  // namespace cairn::draft
