// A compiled grammar, a pushdown automaton: each rule is an automaton over bytes, whose states may
// also call rules and accept whole tokens; nested calls need stacks (grammar/stacks.h). Regular
// parts are deterministic wherever that is affordable. Knows no vocabulary. Invariants: from every
// state the end of its rule can be reached; no rule calls itself without a byte before.
// Thread-safe: constant once built.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "grammar/expression.h"
#include "grammar/limits.h"

namespace cairn::grammar {

constexpr uint32_t kNone = UINT32_MAX;

struct Automaton {
  struct ByteEdge {
    uint8_t first, last;
    uint32_t target;
  };
  struct Call {
    uint32_t start;   // The called rule's first state.
    uint32_t repeat;  // kNone, or which of `repeats`: then `start` is its body's.
    uint32_t target;  // The state after it.
  };
  struct TokenEdge {
    uint32_t pattern;
    uint32_t target;
  };
  // A repetition {min,max} that is too large to be unrolled: counted on the stack.
  struct Repeat {
    uint32_t start;  // Of the body.
    int32_t min, max;
    bool has_empty_body;  // The body may be empty; min is 0 then.
  };
  // Each kind of edge of state s: from [s] to [s + 1].
  struct Begins {
    uint32_t edges, calls, tokens;
    bool is_final;
    bool is_end = false;  // Final, and nothing else.
  };

  std::span<const ByteEdge> edges_of(uint32_t state) const {
    return std::span(edges).subspan(states[state].edges,
                                    states[state + 1].edges - states[state].edges);
  }
  std::span<const Call> calls_of(uint32_t state) const {
    return std::span(calls).subspan(states[state].calls,
                                    states[state + 1].calls - states[state].calls);
  }
  std::span<const TokenEdge> tokens_of(uint32_t state) const {
    return std::span(tokens).subspan(states[state].tokens,
                                     states[state + 1].tokens - states[state].tokens);
  }
  size_t state_count() const { return states.size() - 1; }
  size_t byte_size() const;

  uint32_t start = 0;
  std::vector<Begins> states;  // And one more.
  std::vector<ByteEdge> edges;
  std::vector<Call> calls;
  std::vector<TokenEdge> tokens;
  std::vector<Repeat> repeats;
  std::vector<TokenPattern> patterns;
  // Bytes that no edge tells apart are one class.
  std::array<uint8_t, 256> class_of{};
  std::vector<uint8_t> class_bytes;  // One byte of each class.
};

// REQUIRES: every rule that can be reached is defined.
// Errors: invalid_argument where a rule calls itself before anything else or `root` can never end;
// no_room over `limits`.
Result<Automaton> compile(const Expressions& expressions, Rule root, const Limits& limits);

}  // namespace cairn::grammar
