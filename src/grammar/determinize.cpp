// Sets of states are kept sorted; only states with a byte, a call or a token, and the end, count.
#include "grammar/determinize.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace cairn::grammar {

namespace {

using EdgeKind = Fragments::EdgeKind;
using StateSet = std::vector<uint32_t>;

struct SetHash {
  size_t operator()(const StateSet& set) const {
    uint64_t hash = set.size();
    for (const uint32_t state : set) {
      hash = (hash ^ state) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 29;
    }
    return size_t(hash);
  }
};

class Determinizer {
 public:
  Determinizer(const Fragments& fragments, const std::vector<bool>& is_living, const Limits& limits,
               int64_t& work, Automaton& out)
      : fragments_(fragments),
        is_living_(is_living),
        limits_(limits),
        work_(work),
        out_(out),
        seen_(fragments.first_edge.size(), 0) {}

  Result<uint32_t> add(uint32_t piece) {
    const auto begin = uint32_t(out_.states.size());
    const size_t edges = out_.edges.size(), calls = out_.calls.size(), tokens = out_.tokens.size();
    const size_t size = fragments_.piece_begin[piece + 1] - fragments_.piece_begin[piece];
    CAIRN_TRY(const bool is_done, add_sets(piece, true, std::max<size_t>(256, 4 * size)));
    if (is_done) return begin;
    out_.states.resize(begin);
    out_.edges.resize(edges);
    out_.calls.resize(calls);
    out_.tokens.resize(tokens);
    CAIRN_TRY(const bool fits, add_sets(piece, false, SIZE_MAX));
    CHECK(fits);
    return begin;
  }

 private:
  // False where more than `state_count_max` states would be needed. Not joined: every target is a
  // state of its own.
  Result<bool> add_sets(uint32_t piece, bool joins, size_t state_count_max) {
    numbers_.clear();
    sets_.clear();
    begin_ = uint32_t(out_.states.size());
    end_ = fragments_.pieces[piece].end;
    number_of(closure({fragments_.pieces[piece].start}));
    for (size_t i = 0; i < sets_.size(); ++i) {
      const StateSet& set = *sets_[i];
      out_.states.push_back({.edges = uint32_t(out_.edges.size()),
                             .calls = uint32_t(out_.calls.size()),
                             .tokens = uint32_t(out_.tokens.size()),
                             .is_final = std::binary_search(set.begin(), set.end(), end_)});
      if (joins) {
        add_joined_bytes(set);
      } else {
        add_bytes(set);
      }
      add_others(set, joins);
      if (sets_.size() > state_count_max) return false;
      if (work_ < 0 || out_.states.size() > limits_.state_count ||
          out_.edges.size() > limits_.edge_count) {
        return fail(ErrorCode::no_room,
                    "grammar: expected an automaton of at most {} states, found a larger one",
                    limits_.state_count);
      }
    }
    return true;
  }

  StateSet closure(const StateSet& states) {
    ++round_;
    waiting_ = states;
    StateSet set;
    for (const uint32_t state : states) seen_[state] = round_;
    while (!waiting_.empty()) {
      const uint32_t state = waiting_.back();
      waiting_.pop_back();
      bool counts = state == end_;
      for (uint32_t e = fragments_.first_edge[state]; e != kNone; e = fragments_.edges[e].next) {
        --work_;
        const Fragments::Edge& edge = fragments_.edges[e];
        if (edge.kind != EdgeKind::nothing) {
          counts = true;
        } else if (is_living_[edge.target] && seen_[edge.target] != round_) {
          seen_[edge.target] = round_;
          waiting_.push_back(edge.target);
        }
      }
      if (counts) set.push_back(state);
    }
    std::sort(set.begin(), set.end());
    work_ -= int64_t(set.size());
    return set;
  }

  uint32_t number_of(StateSet set) {
    const auto [known, is_new] = numbers_.try_emplace(std::move(set), uint32_t(sets_.size()));
    if (is_new) sets_.push_back(&known->first);
    return begin_ + known->second;
  }

  bool is_usable(const Fragments::Edge& edge) const {
    if (!is_living_[edge.target]) return false;
    if (edge.kind == EdgeKind::call) return is_living_[fragments_.pieces[edge.value].start];
    if (edge.kind != EdgeKind::repeat) return true;
    const Fragments::Repeat& repeat = fragments_.repeats[edge.value];
    return repeat.min == 0 || is_living_[fragments_.pieces[repeat.body].start];
  }

  template <class Sink>
  void for_edges(const StateSet& set, const Sink& sink) {
    for (const uint32_t state : set) {
      for (uint32_t e = fragments_.first_edge[state]; e != kNone; e = fragments_.edges[e].next) {
        const Fragments::Edge& edge = fragments_.edges[e];
        if (edge.kind != EdgeKind::nothing && is_usable(edge)) sink(edge);
      }
    }
  }

  void add_joined_bytes(const StateSet& set) {
    for (StateSet& targets : by_byte_) targets.clear();
    for_edges(set, [&](const Fragments::Edge& edge) {
      if (edge.kind != EdgeKind::bytes) return;
      work_ -= edge.last - edge.first + 1;
      for (int byte = edge.first; byte <= edge.last; ++byte) {
        by_byte_[size_t(byte)].push_back(edge.target);
      }
    });
    for (int byte = 0; byte < 256;) {
      const int first = byte;
      const StateSet& targets = by_byte_[size_t(first)];
      while (++byte < 256 && by_byte_[size_t(byte)] == targets) {
      }
      if (targets.empty()) continue;
      out_.edges.push_back({.first = uint8_t(first),
                            .last = uint8_t(byte - 1),
                            .target = number_of(closure(targets))});
    }
  }

  void add_bytes(const StateSet& set) {
    for_edges(set, [&](const Fragments::Edge& edge) {
      if (edge.kind != EdgeKind::bytes) return;
      out_.edges.push_back(
          {.first = edge.first, .last = edge.last, .target = number_of(closure({edge.target}))});
    });
  }

  void add_others(const StateSet& set, bool joins) {
    std::map<std::pair<EdgeKind, uint32_t>, StateSet> targets;
    std::vector<std::pair<std::pair<EdgeKind, uint32_t>, StateSet>> apart;
    for_edges(set, [&](const Fragments::Edge& edge) {
      if (edge.kind == EdgeKind::bytes) return;
      const auto what = std::pair(edge.kind, edge.value);
      if (joins) {
        targets[what].push_back(edge.target);
      } else {
        apart.push_back({what, {edge.target}});
      }
    });
    apart.insert(apart.end(), targets.begin(), targets.end());
    for (const auto& [what, states] : apart) {
      const uint32_t target = number_of(closure(states));
      if (what.first == EdgeKind::token) {
        out_.tokens.push_back({.pattern = what.second, .target = target});
      } else {
        const bool is_call = what.first == EdgeKind::call;
        out_.calls.push_back({.start = is_call ? what.second : fragments_.repeats[what.second].body,
                              .repeat = is_call ? kNone : what.second,
                              .target = target});
      }
    }
  }

  const Fragments& fragments_;
  const std::vector<bool>& is_living_;
  const Limits& limits_;
  int64_t& work_;
  Automaton& out_;
  std::unordered_map<StateSet, uint32_t, SetHash> numbers_;  // Of this piece, from 0.
  std::vector<const StateSet*> sets_;
  std::array<StateSet, 256> by_byte_;
  std::vector<uint32_t> seen_;  // In which round a state was last seen.
  uint32_t round_ = 0;
  StateSet waiting_;
  uint32_t begin_ = 0;
  uint32_t end_ = 0;
};

// Edges by where they lead to, and calls by what they call.
struct Backwards {
  explicit Backwards(const Fragments& fragments)
      : into(fragments.first_edge.size()), callers(fragments.pieces.size()) {
    for (uint32_t state = 0; state < into.size(); ++state) {
      for (uint32_t e = fragments.first_edge[state]; e != kNone; e = fragments.edges[e].next) {
        const Fragments::Edge& edge = fragments.edges[e];
        into[edge.target].emplace_back(state, e);
        if (edge.kind == EdgeKind::call) callers[edge.value].emplace_back(state, e);
        if (edge.kind == EdgeKind::repeat) {
          callers[fragments.repeats[edge.value].body].emplace_back(state, e);
        }
      }
    }
  }

  using From = std::pair<uint32_t, uint32_t>;  // A state and its edge.
  std::vector<std::vector<From>> into, callers;
};

}  // namespace

std::vector<bool> find_living(const Fragments& fragments) {
  const Backwards backwards(fragments);
  std::vector<bool> is_living(fragments.first_edge.size(), false);
  std::vector<uint32_t> piece_of_start(fragments.first_edge.size(), kNone);
  std::vector<uint32_t> waiting;
  const auto wake = [&](uint32_t state) {
    if (is_living[state]) return;
    is_living[state] = true;
    waiting.push_back(state);
  };
  for (uint32_t piece = 0; piece < fragments.pieces.size(); ++piece) {
    piece_of_start[fragments.pieces[piece].start] = piece;
    wake(fragments.pieces[piece].end);
  }
  const auto can_pass = [&](const Fragments::Edge& edge) {
    if (edge.kind == EdgeKind::call) return bool(is_living[fragments.pieces[edge.value].start]);
    if (edge.kind != EdgeKind::repeat) return true;
    const Fragments::Repeat& repeat = fragments.repeats[edge.value];
    return repeat.min == 0 || is_living[fragments.pieces[repeat.body].start];
  };
  while (!waiting.empty()) {
    const uint32_t state = waiting.back();
    waiting.pop_back();
    for (const auto& [source, edge] : backwards.into[state]) {
      if (can_pass(fragments.edges[edge])) wake(source);
    }
    if (piece_of_start[state] == kNone) continue;
    for (const auto& [source, edge] : backwards.callers[piece_of_start[state]]) {
      if (is_living[fragments.edges[edge].target]) wake(source);
    }
  }
  return is_living;
}

Status determinize(const Fragments& fragments, const std::vector<bool>& is_living,
                   const Limits& limits, int64_t& work, Automaton& out,
                   std::vector<uint32_t>& starts) {
  Determinizer determinizer(fragments, is_living, limits, work, out);
  for (uint32_t piece = 0; piece < fragments.pieces.size(); ++piece) {
    CAIRN_TRY(const uint32_t start, determinizer.add(piece));
    starts.push_back(start);
  }
  out.states.push_back({.edges = uint32_t(out.edges.size()),
                        .calls = uint32_t(out.calls.size()),
                        .tokens = uint32_t(out.tokens.size()),
                        .is_final = false});
  return Ok{};
}

}  // namespace cairn::grammar
