// Putting the halves together: what lives, what may be empty, what calls itself first, and which
// bytes are told apart.
#include "grammar/automaton.h"

#include <algorithm>
#include <bitset>

#include "grammar/determinize.h"
#include "grammar/fragments.h"
#include "unicode/place.h"

namespace cairn::grammar {

namespace {

// Which pieces may be empty, and which pieces a piece may call before it has read anything.
class LeftEdges {
 public:
  LeftEdges(const Automaton& automaton, const std::vector<uint32_t>& starts)
      : automaton_(automaton),
        starts_(starts),
        is_nullable_(starts.size(), false),
        callees_(starts.size()),
        waiting_for_(starts.size()),
        seen_(automaton.state_count(), false) {
    for (const uint32_t start : starts) visit(start);
    while (!waiting_.empty()) {
      const uint32_t state = waiting_.back();
      waiting_.pop_back();
      expand(state);
    }
  }

  bool is_nullable(uint32_t piece) const { return is_nullable_[piece]; }

  // A piece that calls itself first, or kNone.
  uint32_t find_cycle() const {
    enum class Mark : uint8_t { unseen, open, closed };
    std::vector<Mark> marks(callees_.size(), Mark::unseen);
    std::vector<std::pair<uint32_t, size_t>> path;  // A piece and its next callee.
    for (uint32_t piece = 0; piece < callees_.size(); ++piece) {
      if (marks[piece] != Mark::unseen) continue;
      path.emplace_back(piece, 0);
      marks[piece] = Mark::open;
      while (!path.empty()) {
        auto& [at, next] = path.back();
        if (next == callees_[at].size()) {
          marks[at] = Mark::closed;
          path.pop_back();
          continue;
        }
        const uint32_t callee = callees_[at][next++];
        if (marks[callee] == Mark::open) return callee;
        if (marks[callee] == Mark::closed) continue;
        marks[callee] = Mark::open;
        path.emplace_back(callee, 0);
      }
    }
    return kNone;
  }

 private:
  uint32_t piece_of(uint32_t state) const {
    const auto behind = std::upper_bound(starts_.begin(), starts_.end(), state);
    return uint32_t(behind - starts_.begin()) - 1;
  }

  void visit(uint32_t state) {
    if (seen_[state]) return;
    seen_[state] = true;
    waiting_.push_back(state);
  }

  void expand(uint32_t state) {
    const uint32_t piece = piece_of(state);
    if (automaton_.states[state].is_final && !is_nullable_[piece]) {
      is_nullable_[piece] = true;
      for (const uint32_t target : waiting_for_[piece]) visit(target);
    }
    for (const Automaton::Call& call : automaton_.calls_of(state)) {
      const uint32_t callee = call.start;
      callees_[piece].push_back(callee);
      const bool is_optional = call.repeat != kNone && automaton_.repeats[call.repeat].min == 0;
      if (is_nullable_[callee] || is_optional) {
        visit(call.target);
      } else {
        waiting_for_[callee].push_back(call.target);
      }
    }
  }

  const Automaton& automaton_;
  const std::vector<uint32_t>& starts_;
  std::vector<bool> is_nullable_;
  std::vector<std::vector<uint32_t>> callees_;
  std::vector<std::vector<uint32_t>> waiting_for_;  // Targets behind calls of a piece.
  std::vector<bool> seen_;
  std::vector<uint32_t> waiting_;
};

void link_pieces(Automaton& automaton, const std::vector<uint32_t>& starts) {
  automaton.start = starts[0];
  for (Automaton::Repeat& repeat : automaton.repeats) repeat.start = starts[repeat.start];
  for (Automaton::Call& call : automaton.calls) {
    call.start = starts[call.start];
  }
  for (uint32_t state = 0; state < automaton.state_count(); ++state) {
    automaton.states[state].is_end =
        automaton.states[state].is_final && automaton.edges_of(state).empty() &&
        automaton.calls_of(state).empty() && automaton.tokens_of(state).empty();
  }
}

void find_classes(Automaton& automaton) {
  std::bitset<257> begins;
  for (const Automaton::ByteEdge& edge : automaton.edges) {
    begins.set(edge.first);
    begins.set(size_t(edge.last) + 1);
  }
  automaton.class_bytes = {0};
  for (size_t byte = 1; byte < 256; ++byte) {
    if (begins[byte]) automaton.class_bytes.push_back(uint8_t(byte));
    automaton.class_of[byte] = uint8_t(automaton.class_bytes.size() - 1);
  }
}

}  // namespace

size_t Automaton::byte_size() const {
  return states.size() * sizeof(Begins) + edges.size() * sizeof(ByteEdge) +
         calls.size() * sizeof(Call) + tokens.size() * sizeof(TokenEdge) +
         repeats.size() * sizeof(Repeat) + patterns.size() * sizeof(TokenPattern);
}

Result<Automaton> compile(const Expressions& expressions, Rule root, const Limits& limits) {
  int64_t work = limits.work;
  CAIRN_TRY(const Fragments fragments, make_fragments(expressions, root, limits, work));
  const std::vector<bool> is_living = find_living(fragments);
  if (!is_living[fragments.pieces[0].start]) {
    return fail(ErrorCode::invalid_argument,
                "grammar: expected a text that fits, found that rule {} can never end",
                unicode::quote(expressions.name(root)));
  }
  Automaton automaton;
  automaton.patterns.assign(expressions.patterns().begin(), expressions.patterns().end());
  for (const Fragments::Repeat& repeat : fragments.repeats) {
    automaton.repeats.push_back(
        {.start = repeat.body, .min = repeat.min, .max = repeat.max, .has_empty_body = false});
  }
  std::vector<uint32_t> starts;
  CAIRN_TRY(determinize(fragments, is_living, limits, work, automaton, starts));
  const LeftEdges left(automaton, starts);
  if (const uint32_t piece = left.find_cycle(); piece != kNone) {
    return fail(ErrorCode::invalid_argument,
                "grammar: rule {} calls itself before anything else (left recursion)",
                unicode::quote(expressions.name(Rule(fragments.pieces[piece].name))));
  }
  for (size_t i = 0; i < fragments.repeats.size(); ++i) {
    if (!left.is_nullable(fragments.repeats[i].body)) continue;
    automaton.repeats[i].has_empty_body = true;
    automaton.repeats[i].min = 0;
  }
  link_pieces(automaton, starts);
  find_classes(automaton);
  return automaton;
}

}  // namespace cairn::grammar
