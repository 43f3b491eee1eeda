// States, their edges, and how both grow.
#include "draft/suffix_automaton.h"

#include <algorithm>

namespace cairn::draft {

namespace {

// So many states are told of a new occurrence, from the longest match down: enough for those that
// drafts are made from, and a bound where one token repeats.
constexpr int32_t kMarkedStates = 8;

// Room is asked for while there is still some for so many states and edges.
constexpr size_t kSlack = 1024;
constexpr size_t kFirstStates = 64;
constexpr size_t kFirstEdges = 64;

// Containers grow by a half: of a budget, less is left unused than by doubling.
size_t grown(size_t count) {
  return count + count / 2;
}

bool is_full(size_t count, size_t capacity) {
  return 4 * count >= 3 * capacity;
}

template <class T>
void push(std::vector<T>& list, const T& value) {
  if (list.size() == list.capacity()) list.reserve(grown(list.capacity()));
  list.push_back(value);
}

}  // namespace

SuffixAutomaton::SuffixAutomaton() : edges_(kFirstEdges) {
  tokens_.reserve(kFirstStates);
  states_.reserve(kFirstStates);
  states_.push_back({});
}

size_t SuffixAutomaton::place_of(int32_t state, Token token) const {
  const uint64_t key = uint64_t(uint32_t(state)) << 32 | uint32_t(index_of(token));
  // Fibonacci hashing, its upper half as a part of the table.
  const uint64_t mixed = (key ^ key >> 29) * 0x9e3779b97f4a7c15u;
  size_t place = size_t((mixed >> 32) * edges_.size() >> 32);
  while (edges_[place].state != kNone &&
         (edges_[place].state != state || edges_[place].token != token)) {
    if (++place == edges_.size()) place = 0;
  }
  return place;
}

int32_t SuffixAutomaton::next(int32_t state, Token token) const {
  const State& from = states_[size_t(state)];
  if (from.token == token) return from.target;
  if (from.more == kNoToken) return kNone;
  return edges_[place_of(state, token)].target;
}

void SuffixAutomaton::insert(const Edge& edge) {
  edges_[place_of(edge.state, edge.token)] = edge;
  ++edge_count_;
}

void SuffixAutomaton::grow_edges() {
  std::vector<Edge> edges(grown(edges_.size()));
  edges.swap(edges_);
  edge_count_ = 0;
  for (const Edge& edge : edges) {
    if (edge.state != kNone) insert(edge);
  }
}

void SuffixAutomaton::add_edge(int32_t state, Token token, int32_t target) {
  State& from = states_[size_t(state)];
  if (from.target == kNone) {
    from.token = token;
    from.target = target;
    return;
  }
  if (is_full(edge_count_, edges_.size())) grow_edges();
  insert({.state = state, .token = token, .target = target, .more = from.more});
  from.more = token;
}

void SuffixAutomaton::set_target(int32_t state, Token token, int32_t target) {
  State& from = states_[size_t(state)];
  if (from.token == token) {
    from.target = target;
  } else {
    edges_[place_of(state, token)].target = target;
  }
}

int32_t SuffixAutomaton::add_state(const State& state) {
  push(states_, state);
  return int32_t(states_.size()) - 1;
}

// The shorter substrings of `target`, which now end at more places than the longer ones, get a
// state of their own, with the same edges.
int32_t SuffixAutomaton::split(int32_t state, Token token, int32_t target) {
  const State old = states_[size_t(target)];
  const int32_t shorter = add_state({.length = states_[size_t(state)].length + 1,
                                     .link = old.link,
                                     .end = old.end,
                                     .token = old.token,
                                     .target = old.target});
  for (Token more = old.more; more != kNoToken;) {
    const Edge edge = edges_[place_of(target, more)];
    add_edge(shorter, more, edge.target);
    more = edge.more;
  }
  states_[size_t(target)].link = shorter;
  for (; state != kNone && next(state, token) == target; state = states_[size_t(state)].link) {
    set_target(state, token, shorter);
  }
  return shorter;
}

void SuffixAutomaton::append(Token token) {
  push(tokens_, token);
  int32_t state = last_;
  const auto length_after = [this](int32_t from) { return states_[size_t(from)].length + 1; };
  const auto whole = [&](int32_t from, int32_t target) {
    const bool is_longest = states_[size_t(target)].length == length_after(from);
    return is_longest ? target : split(from, token, target);
  };
  // A text that begins like another one stays in its states.
  if (const int32_t known = next(state, token); known != kNone) {
    last_ = whole(state, known);
    mark_end();
    return;
  }
  const int32_t added = add_state({.length = length_after(state)});
  while (state != kNone && next(state, token) == kNone) {
    add_edge(state, token, added);
    state = states_[size_t(state)].link;
  }
  const int32_t link = state == kNone ? 0 : whole(state, next(state, token));
  states_[size_t(added)].link = link;
  last_ = added;
  mark_end();
}

void SuffixAutomaton::mark_end() {
  int32_t state = last_;
  for (int32_t i = 0; i < kMarkedStates && state > 0; ++i) {
    states_[size_t(state)].end = int32_t(tokens_.size());
    state = states_[size_t(state)].link;
  }
}

void SuffixAutomaton::end_text() {
  if (tokens_.empty() || tokens_.back() == kNoToken) return;
  push(tokens_, kNoToken);
  last_ = 0;
}

void SuffixAutomaton::advance(Cursor& cursor, Token token) const {
  for (;;) {
    // States that were split since then: the match belongs to the shorter one.
    const State& from = states_[size_t(cursor.state)];
    const bool is_shorter =
        from.link != kNone && states_[size_t(from.link)].length >= cursor.length;
    const int32_t target = is_shorter ? kNone : next(cursor.state, token);
    if (target != kNone) {
      cursor = {.state = target, .length = cursor.length + 1};
      return;
    }
    if (from.link == kNone) break;
    cursor.state = from.link;
    cursor.length = std::min(cursor.length, states_[size_t(from.link)].length);
  }
  cursor = {};
}

SuffixAutomaton::Cursor SuffixAutomaton::shorter(Cursor cursor) const {
  const int32_t link = states_[size_t(cursor.state)].link;
  if (link == kNone) return {};
  return {.state = link, .length = std::min(cursor.length, states_[size_t(link)].length)};
}

int64_t SuffixAutomaton::followed_end_of(Cursor cursor) const {
  const State& state = states_[size_t(cursor.state)];
  const auto end = size_t(state.end);
  if (end < tokens_.size() && tokens_[end] != kNoToken) return int64_t(end);
  // An edge is an occurrence with a token behind it.
  return state.target == kNone ? -1 : states_[size_t(state.target)].end - 1;
}

size_t SuffixAutomaton::bytes() const {
  return sizeof(*this) + tokens_.capacity() * sizeof(Token) + states_.capacity() * sizeof(State) +
         edges_.capacity() * sizeof(Edge);
}

// What grows is there twice for a moment.
size_t SuffixAutomaton::bytes_to_append() const {
  size_t bytes = this->bytes();
  if (tokens_.size() + kSlack >= tokens_.capacity()) {
    bytes += grown(tokens_.capacity()) * sizeof(Token);
  }
  if (states_.size() + kSlack >= states_.capacity()) {
    bytes += grown(states_.capacity()) * sizeof(State);
  }
  if (is_full(edge_count_ + kSlack, edges_.size())) bytes += grown(edges_.size()) * sizeof(Edge);
  return bytes;
}

}  // namespace cairn::draft
