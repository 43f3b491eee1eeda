// All substrings of some texts, found token by token: a suffix automaton (Blumer et al., 1985) over
// tokens, which grows at its end in constant time (amortized). A state stands for substrings that
// end at the same places. Knows no drafts. Invariants: matches never run from one text into the
// next; nothing is removed. Thread rule: none, it has no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace cairn::draft {

class SuffixAutomaton {
 public:
  SuffixAutomaton();

  void append(Token token);
  // What is appended from now on is another text.
  void end_text();

  // All tokens, texts one after the other; between two of them is a token that is none.
  std::span<const Token> tokens() const { return tokens_; }
  static constexpr Token kNoToken = Token(-1);

  // The longest end of a text that occurs here: where it is, and its length. States stay valid.
  struct Cursor {
    int32_t state = 0;
    int32_t length = 0;
  };
  // The text goes on with this token.
  void advance(Cursor& cursor, Token token) const;
  // The shorter match that occurs at more places; of length 0 at last.
  Cursor shorter(Cursor cursor) const;
  // Different tokens followed the match.
  bool is_ambiguous(Cursor cursor) const {
    return states_[size_t(cursor.state)].more != kNoToken;
  }
  // Behind an occurrence of the match: an index of tokens(), perhaps their end. A late one, mostly
  // the last.
  size_t end_of(Cursor cursor) const { return size_t(states_[size_t(cursor.state)].end); }

  // The same, of an occurrence that a token of its text follows; -1: there is none.
  int64_t followed_end_of(Cursor cursor) const;

  // What it has allocated, and the most that appending some more tokens may need.
  size_t bytes() const;
  size_t bytes_to_append() const;

 private:
  static constexpr int32_t kNone = -1;

  // Most states have one edge, which is here; the table has the others, as a list.
  struct State {
    int32_t length = 0;  // Of its longest substring.
    int32_t link = kNone;
    int32_t end = 0;
    Token token = kNoToken;
    int32_t target = kNone;
    Token more = kNoToken;  // The first of its edges in the table.
  };
  struct Edge {
    int32_t state = kNone;  // kNone: an empty place.
    Token token = kNoToken;
    int32_t target = kNone;
    Token more = kNoToken;  // The next edge of the same state.
  };

  int32_t next(int32_t state, Token token) const;
  void add_edge(int32_t state, Token token, int32_t target);
  void set_target(int32_t state, Token token, int32_t target);
  int32_t add_state(const State& state);
  int32_t split(int32_t state, Token token, int32_t target);
  void mark_end();
  size_t place_of(int32_t state, Token token) const;
  void insert(const Edge& edge);
  void grow_edges();

  std::vector<Token> tokens_;
  std::vector<State> states_;
  std::vector<Edge> edges_;  // Open addressing.
  size_t edge_count_ = 0;
  int32_t last_ = 0;  // The state of the whole current text.
};

}  // namespace cairn::draft
