// Matches a model's tokens against a grammar: which tokens are allowed next, and the state after
// each. A State is a value: any older one stays valid, so a rewind takes an older number. One
// Matcher serves any number of sequences with one grammar and vocabulary; masks are cached.
// Invariant: mask() allows exactly the tokens that advance() takes, and the tokens that end an
// answer where the text so far is complete. One thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "grammar/grammar.h"
#include "grammar/stacks.h"
#include "grammar/token_trie.h"

namespace cairn::grammar {

// A bit for each token of the vocabulary, the lowest first: 1 is allowed.
using TokenMask = std::span<const uint64_t>;

enum class State : uint32_t {};

class Matcher {
 public:
  // Errors: invalid_argument where the grammar names a token that the vocabulary has not; no_room.
  static Result<std::unique_ptr<Matcher>> build(Grammar grammar,
                                                std::shared_ptr<const TokenTrie> tokens);
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  State start() const { return State(0); }

  // Errors (here and below): invalid_argument where the grammar does not allow the token; no_room
  // where a step would cost more than grammar/limits.h says, or all states together.
  // A token that ends the answer leads back to the same state.
  Result<State> advance(State state, Token token);
  Result<State> advance(State state, std::string_view bytes);

  // Valid until the next call of this matcher. No bit is set where the vocabulary cannot go on.
  Result<TokenMask> mask(State state);

  // What has to follow, as far as the grammar leaves no choice: bytes, and behind them a token that
  // is no text, if that is what has to follow then. Where spaces and line ends may stand before the
  // one other byte, or not, `layout` says which do, by the byte before them (0: by none).
  struct Forced {
    std::string bytes;
    std::optional<Token> token;
  };
  using Layout = FunctionRef<std::string_view(char before)>;
  Forced forced(State state, size_t bytes_max, Layout layout);

  // The text so far fits; the answer may end here.
  bool is_complete(State state) const;
  // It is complete and nothing can follow.
  bool is_finished(State state) const;

  size_t byte_size() const;

 private:
  using Set = Stacks::Set;
  struct CachedMask {
    Set key;
    bool is_short_only;
    std::vector<uint64_t> words;
  };
  using Cache = std::list<CachedMask>;

  Matcher(Grammar grammar, std::shared_ptr<const TokenTrie> tokens);

  Status resolve_patterns();
  Status make_room();
  Set set_of(State state) const { return kept_[size_t(state)]; }
  Result<State> keep(Set set);
  Set walk_bytes(Set set, std::string_view bytes);
  Result<Set> walk_patterns(Set set, Token token);
  bool pattern_takes(size_t pattern, Token token) const;
  Result<TokenMask> cached(Set key, bool is_short_only);
  Status fill_short(Set set, std::span<uint64_t> words);
  Set behind_plain_text(Set set);
  Status fill(Set set, std::span<const TokenTrie::Node> nodes, std::span<uint64_t> words);
  void add_pattern_tokens(Set set, std::span<uint64_t> words) const;
  void add_twins(std::span<uint64_t> words) const;
  // Spaces or line ends that may follow, and other bytes; of the latter counted to 2.
  struct NextBytes {
    int space_count = 0, other_count = 0;
    char space = 0, other = 0;  // The first of each.
  };
  NextBytes next_bytes(Set set);
  std::optional<Token> only_pattern_token(Set set) const;

  Grammar grammar_;
  std::shared_ptr<const TokenTrie> tokens_;
  Stacks stacks_;
  std::vector<Set> kept_;  // What each State is.
  std::unordered_map<Set, uint32_t> state_of_;
  std::vector<int32_t> pattern_tokens_;  // What each pattern names; -1: only its bytes count.
  Cache cache_;                          // The most recently used first.
  std::unordered_map<uint64_t, Cache::iterator> cache_index_;
  size_t cache_count_max_;
  int32_t walk_count_ = 0;  // Masks of short tokens that were made.
  std::vector<uint64_t> joined_;
};

}  // namespace cairn::grammar
