// Masks: one walk over the trees of tokens, step by step with the stacks. What counts repetitions
// far from their limits shares its masks (Stacks::nearby).
#include "grammar/matcher.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/automaton.h"
#include "unicode/place.h"

namespace cairn::grammar {

namespace {

// Above, what was only looked at is forgotten; more than half of it kept is an error.
constexpr size_t kStacksBytesMax = 48u << 20;
constexpr size_t kCacheBytes = 16u << 20;
constexpr size_t kStateCountMax = 1u << 24;
// After so many walks through all short tokens it is worth a look which states they cannot tell
// apart.
constexpr int32_t kWalksBeforeMerging = 4;
constexpr std::string_view kSpaces = " \n\r\t";

Error over() {
  return fail(ErrorCode::no_room,
              "grammar: expected at most {} ways to read the text, and {} steps for a token, "
              "found more",
              kLiveStacksMax, kStepWorkMax);
}

void set_bit(std::span<uint64_t> words, int32_t token) {
  words[size_t(token) / 64] |= uint64_t(1) << (token % 64);
}

bool has_bit(std::span<const uint64_t> words, int32_t token) {
  return (words[size_t(token) / 64] >> (token % 64) & 1) != 0;
}

}  // namespace

Matcher::Matcher(Grammar grammar, std::shared_ptr<const TokenTrie> tokens)
    : grammar_(std::move(grammar)), tokens_(std::move(tokens)), stacks_(grammar_.automaton()) {
  const size_t words = (tokens_->token_count() + 63) / 64;
  cache_count_max_ = std::max<size_t>(4, kCacheBytes / (words * sizeof(uint64_t) + 1));
}

Matcher::~Matcher() = default;

Result<std::unique_ptr<Matcher>> Matcher::build(Grammar grammar,
                                                std::shared_ptr<const TokenTrie> tokens) {
  std::unique_ptr<Matcher> matcher(new Matcher(std::move(grammar), std::move(tokens)));
  CAIRN_TRY(matcher->resolve_patterns());
  if (matcher->stacks_.start() == Stacks::kOver) return over();
  CAIRN_TRY(matcher->keep(matcher->stacks_.start()));
  return matcher;
}

Status Matcher::resolve_patterns() {
  for (const TokenPattern& pattern : grammar_.automaton().patterns) {
    int32_t id = pattern.id;
    if (id < 0) {
      const auto found = tokens_->find_any(pattern.text);
      if (!found) {
        return fail(ErrorCode::invalid_argument,
                    "grammar: expected a token of the vocabulary, found {}",
                    unicode::quote(pattern.text));
      }
      id = *found;
    } else if (size_t(id) >= tokens_->token_count()) {
      return fail(ErrorCode::invalid_argument, "grammar: expected a token below {}, found {}",
                  tokens_->token_count(), id);
    }
    pattern_tokens_.push_back(id);
  }
  return Ok{};
}

Status Matcher::make_room() {
  stacks_.set_work(kStepWorkMax);
  if (stacks_.byte_size() <= kStacksBytesMax && kept_.size() < kStateCountMax) return Ok{};
  stacks_.collect(kept_);
  state_of_.clear();
  for (uint32_t state = 0; state < kept_.size(); ++state) state_of_.emplace(kept_[state], state);
  cache_.clear();
  cache_index_.clear();
  stacks_.set_work(kStepWorkMax);
  if (stacks_.byte_size() <= kStacksBytesMax / 2 && kept_.size() < kStateCountMax) return Ok{};
  return fail(ErrorCode::no_room, "grammar: expected at most {} bytes of states, found {}",
              kStacksBytesMax / 2, stacks_.byte_size());
}

Result<State> Matcher::keep(Set set) {
  const auto [known, is_new] = state_of_.try_emplace(set, uint32_t(kept_.size()));
  if (is_new) kept_.push_back(set);
  return State(known->second);
}

Matcher::Set Matcher::walk_bytes(Set set, std::string_view bytes) {
  for (const char byte : bytes) {
    if (set == Stacks::kDead || set == Stacks::kOver) break;
    set = stacks_.step(set, uint8_t(byte));
  }
  return set;
}

bool Matcher::pattern_takes(size_t pattern, Token token) const {
  const bool is_named = pattern_tokens_[pattern] == index_of(token);
  if (!grammar_.automaton().patterns[pattern].is_inverse) return is_named;
  return !is_named && !tokens_->is_end(token);
}

Result<State> Matcher::advance(State state, Token token) {
  CAIRN_TRY(make_room());
  if (index_of(token) < 0 || size_t(index_of(token)) >= tokens_->token_count()) {
    return fail(ErrorCode::invalid_argument, "grammar: expected a token below {}, found {}",
                tokens_->token_count(), index_of(token));
  }
  Set set = Stacks::kDead;
  if (!pattern_tokens_.empty()) {
    std::vector<uint32_t> patterns;
    for (uint32_t pattern = 0; pattern < pattern_tokens_.size(); ++pattern) {
      if (pattern_takes(pattern, token)) patterns.push_back(pattern);
    }
    if (!patterns.empty()) set = stacks_.step_token(set_of(state), patterns);
  }
  if (tokens_->is_text(token)) {
    set = stacks_.join(set, walk_bytes(set_of(state), tokens_->bytes_of(token)));
  }
  if (set == Stacks::kOver) return over();
  if (set != Stacks::kDead) return keep(set);
  if (tokens_->is_end(token) && is_complete(state)) return state;
  return fail(ErrorCode::invalid_argument, "grammar: expected a token that fits, found {}",
              unicode::quote(tokens_->bytes_of(token)));
}

Result<State> Matcher::advance(State state, std::string_view bytes) {
  CAIRN_TRY(make_room());
  const Set set = walk_bytes(set_of(state), bytes);
  if (set == Stacks::kOver) return over();
  if (set != Stacks::kDead) return keep(set);
  return fail(ErrorCode::invalid_argument, "grammar: expected a text that fits, found {}",
              unicode::quote(bytes));
}

Status Matcher::fill(Set set, std::span<const TokenTrie::Node> nodes, std::span<uint64_t> words) {
  std::array<Set, TokenTrie::kBytesMax + 1> path;
  path[0] = set;
  for (size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const Set to = stacks_.step(path[node.depth - 1u], node.byte);
    if (to == Stacks::kDead) {
      i = node.behind;
      continue;
    }
    if (to == Stacks::kOver) return over();
    path[node.depth] = to;
    if (node.token >= 0) set_bit(words, node.token);
    ++i;
  }
  return Ok{};
}

// What follows one character of plain text, if it is the same for each of them, at least as far as
// short tokens go; else kDead.
Matcher::Set Matcher::behind_plain_text(Set set) {
  const Automaton& automaton = grammar_.automaton();
  const CharacterSet plain = {{' ', '!'}, {'#', '['}, {']', '~'}, {0x80, kCharacterMax}};
  Set behind = kNone;
  std::vector<Set> reached, next;
  const auto follow = [&](std::span<const ByteRange> bytes) {
    reached.assign(1, set);
    for (const ByteRange& range : bytes) {
      next.clear();
      for (int byte = range.first; byte <= range.last; ++byte) {
        const auto at = size_t(byte);
        const bool is_seen =
            byte > range.first && automaton.class_of[at] == automaton.class_of[at - 1];
        for (size_t i = 0; !is_seen && i < reached.size(); ++i) {
          const Set to = stacks_.step(reached[i], uint8_t(byte));
          if (to == Stacks::kDead || to == Stacks::kOver) return false;
          if (std::find(next.begin(), next.end(), to) == next.end()) next.push_back(to);
        }
      }
      reached.swap(next);
    }
    for (const Set one : reached) {
      const Set near = stacks_.nearby(one, TokenTrie::kShortBytesMax);
      if (behind == kNone) behind = near;
      if (behind != near) return false;
    }
    return true;
  };
  bool is_one = true;
  for (const CharacterRange& range : plain.ranges()) {
    for_utf8_sequences(range,
                       [&](std::span<const ByteRange> bytes) { is_one = is_one && follow(bytes); });
  }
  return is_one ? behind : Stacks::kDead;
}

Status Matcher::fill_short(Set set, std::span<uint64_t> words) {
  // Where a character of plain text leads back to where it was, any number of them may follow.
  const Set behind = behind_plain_text(set);
  if (behind != Stacks::kDead && (behind == set || behind_plain_text(behind) == behind)) {
    const std::span<const uint64_t> plain = tokens_->plain_mask();
    std::copy(plain.begin(), plain.end(), words.begin());
  } else {
    if (++walk_count_ == kWalksBeforeMerging) stacks_.merge_states(TokenTrie::kShortBytesMax);
    CAIRN_TRY(fill(set, tokens_->plain_nodes(), words));
  }
  return fill(set, tokens_->other_nodes(), words);
}

void Matcher::add_twins(std::span<uint64_t> words) const {
  for (const auto& [twin, token] : tokens_->twins()) {
    if (has_bit(words, token)) set_bit(words, twin);
  }
}

void Matcher::add_pattern_tokens(Set set, std::span<uint64_t> words) const {
  if (pattern_tokens_.empty()) return;
  std::vector<bool> is_seen(pattern_tokens_.size(), false);
  for (const Stacks::Item& item : stacks_.items(set)) {
    for (const Automaton::TokenEdge& edge : grammar_.automaton().tokens_of(item.state)) {
      if (is_seen[edge.pattern]) continue;
      is_seen[edge.pattern] = true;
      if (!grammar_.automaton().patterns[edge.pattern].is_inverse) {
        set_bit(words, pattern_tokens_[edge.pattern]);
        continue;
      }
      for (int32_t token = 0; size_t(token) < tokens_->token_count(); ++token) {
        if (pattern_takes(edge.pattern, Token(token))) set_bit(words, token);
      }
    }
  }
}

// The whole mask of a set, or that of its short tokens.
Result<TokenMask> Matcher::cached(Set key, bool is_short_only) {
  const uint64_t index = uint64_t(key) << 1 | uint64_t(is_short_only);
  if (const auto known = cache_index_.find(index); known != cache_index_.end()) {
    cache_.splice(cache_.begin(), cache_, known->second);
    return TokenMask(cache_.front().words);
  }
  std::vector<uint64_t> words;
  if (cache_.size() >= cache_count_max_) {
    const CachedMask& last = cache_.back();
    cache_index_.erase(uint64_t(last.key) << 1 | uint64_t(last.is_short_only));
    words = std::move(cache_.back().words);
    cache_.pop_back();
  }
  words.assign((tokens_->token_count() + 63) / 64, 0);
  const Set nearby = is_short_only ? key : stacks_.nearby(key, TokenTrie::kShortBytesMax);
  if (nearby == key) {
    CAIRN_TRY(fill_short(key, words));
  } else {
    CAIRN_TRY(const TokenMask of_short, cached(nearby, true));
    std::copy(of_short.begin(), of_short.end(), words.begin());
  }
  if (!is_short_only) {
    CAIRN_TRY(fill(key, tokens_->long_nodes(), words));
    add_twins(words);
    add_pattern_tokens(key, words);
    if (stacks_.is_accepting(key)) {
      for (const int32_t token : tokens_->ends()) set_bit(words, token);
    }
  }
  cache_.push_front({key, is_short_only, std::move(words)});
  cache_index_[index] = cache_.begin();
  return TokenMask(cache_.front().words);
}

Result<TokenMask> Matcher::mask(State state) {
  CAIRN_TRY(make_room());
  return cached(stacks_.nearby(set_of(state), uint32_t(tokens_->longest())), false);
}

Matcher::NextBytes Matcher::next_bytes(Set set) {
  NextBytes next;
  for (int byte = 0; byte < 256 && next.other_count < 2; ++byte) {
    const Set to = stacks_.step(set, uint8_t(byte));
    if (to == Stacks::kDead) continue;
    if (to == Stacks::kOver) return {.other_count = 2};
    const bool is_space = kSpaces.find(char(byte)) != std::string_view::npos;
    char& first = is_space ? next.space : next.other;
    if ((is_space ? next.space_count : next.other_count)++ == 0) first = char(byte);
  }
  return next;
}

// REQUIRES: no byte can follow.
std::optional<Token> Matcher::only_pattern_token(Set set) const {
  std::optional<Token> only;
  for (const Stacks::Item& item : stacks_.items(set)) {
    for (const Automaton::TokenEdge& edge : grammar_.automaton().tokens_of(item.state)) {
      const bool is_named = !grammar_.automaton().patterns[edge.pattern].is_inverse;
      const Token token{is_named ? pattern_tokens_[edge.pattern] : -1};
      if (index_of(token) < 0 || (only && *only != token)) return std::nullopt;
      only = token;
    }
  }
  return only;
}

Matcher::Forced Matcher::forced(State state, size_t bytes_max, Layout layout) {
  Forced forced;
  if (!make_room()) return forced;
  Set set = set_of(state);
  char before = 0;
  bool is_laid_out = false;
  while (forced.bytes.size() < bytes_max && !stacks_.is_accepting(set)) {
    const NextBytes next = next_bytes(set);
    if (next.other_count + next.space_count == 0) {
      forced.token = only_pattern_token(set);
      break;
    }
    const bool is_space = next.other_count == 0 && next.space_count == 1;
    if (next.other_count != 1 && !is_space) break;
    if (next.other_count == 1 && next.space_count > 0 && !std::exchange(is_laid_out, true)) {
      const std::string_view spaces = layout(before);
      const Set behind = walk_bytes(set, spaces);
      if (behind != Stacks::kDead && behind != Stacks::kOver) {
        forced.bytes += spaces;
        set = behind;
        continue;
      }
    }
    // Behind spaces that may go on for ever, the other byte is as good as forced.
    before = is_space ? next.space : next.other;
    set = stacks_.step(set, uint8_t(before));
    forced.bytes += before;
    is_laid_out = false;
  }
  return forced;
}

bool Matcher::is_complete(State state) const {
  return stacks_.is_accepting(set_of(state));
}

bool Matcher::is_finished(State state) const {
  return is_complete(state) && stacks_.items(set_of(state)).empty();
}

size_t Matcher::byte_size() const {
  return stacks_.byte_size() + cache_.size() * ((tokens_->token_count() + 63) / 64) * 8;
}

}  // namespace cairn::grammar
