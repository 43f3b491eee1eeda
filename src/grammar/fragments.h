// The first half of compiling: expressions become nondeterministic automata with epsilon edges, one
// for each rule that is called. Small rules without recursion are inlined; counted repetitions are
// unrolled or become bodies of their own. One thread.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "grammar/automaton.h"
#include "grammar/expression.h"
#include "grammar/limits.h"

namespace cairn::grammar {

struct Fragments {
  enum class EdgeKind : uint8_t { nothing, bytes, call, repeat, token };
  struct Edge {
    EdgeKind kind;
    uint8_t first = 0, last = 0;  // Bytes.
    uint32_t value = 0;           // Piece, repeat or pattern.
    uint32_t target = 0;
    uint32_t next = kNone;  // The next edge of the same state.
  };
  // What is called: a rule or the body of a repetition.
  struct Piece {
    Node node;
    uint32_t name;  // The rule that it is, or is in.
    uint32_t start = 0, end = 0;
  };
  struct Repeat {
    uint32_t body;  // A piece.
    int32_t min, max;
  };

  std::vector<uint32_t> first_edge;  // Of each state.
  std::vector<Edge> edges;
  std::vector<Piece> pieces;  // The first is the root.
  std::vector<Repeat> repeats;
  // The states of a piece have numbers in a row.
  std::vector<uint32_t> piece_begin;
};

// `work` is what is left of Limits::work, and is taken from.
Result<Fragments> make_fragments(const Expressions& expressions, Rule root, const Limits& limits,
                                 int64_t& work);

}  // namespace cairn::grammar
