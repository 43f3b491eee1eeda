// Four rules, and what the last one knows.
#include "bench/simulation/router.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cairn::bench {
namespace {

constexpr uint64_t kPointsOfNode = 100;
constexpr double kBound = 1.25;
constexpr size_t kKnownMax = 500'000;  // Of each generation.
constexpr double kWeight = 0.1;

// A mixer of 64 bits, of which each depends on all.
uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

std::string_view name_of(Policy policy) {
  constexpr std::array<std::string_view, 4> kNames = {"random", "two choices", "bounded hash",
                                                      "cost"};
  return kNames[size_t(policy)];
}

Router::Router(const Options& options)
    : options_(options), random_(options.seed), nodes_(size_t(options.nodes)) {
  for (Node& node : nodes_) node.block_seconds = options.block_seconds;
  for (uint64_t node = 0; node < nodes_.size(); ++node) {
    for (uint64_t point = 0; point < kPointsOfNode; ++point) {
      ring_.emplace(mixed((node << 20) + point + 1), size_t(node));
    }
  }
}

std::optional<Router::Choice> Router::choose(const Ask& ask, const store::Chain& chain) {
  if (std::ranges::none_of(nodes_, &Node::is_up)) return std::nullopt;
  Choice choice;
  if (options_.policy == Policy::cost) {
    choice = cheapest(ask, chain);
    learn(chain, choice.node);
  } else {
    choice.node = options_.policy == Policy::random        ? any_node()
                  : options_.policy == Policy::two_choices ? lighter_of_two()
                                                           : bounded(ask);
    choice.expected_seconds = ask.blocks * nodes_[choice.node].block_seconds;
  }
  ++nodes_[choice.node].asked;
  nodes_[choice.node].work_seconds += choice.expected_seconds;
  return choice;
}

void Router::note_done(const Choice& choice, double computed_blocks, double seconds) {
  Node& node = nodes_[choice.node];
  --node.asked;
  node.work_seconds = std::max(0.0, node.work_seconds - choice.expected_seconds);
  if (computed_blocks < 1) return;
  node.block_seconds += kWeight * (seconds / computed_blocks - node.block_seconds);
}

void Router::forget() {
  newest_.clear();
  older_.clear();
}

size_t Router::any_node() {
  for (;;) {
    const size_t node = random_.below(nodes_.size());
    if (nodes_[node].is_up) return node;
  }
}

size_t Router::lighter_of_two() {
  const size_t first = any_node(), second = any_node();
  return nodes_[first].work_seconds <= nodes_[second].work_seconds ? first : second;
}

// The first one behind the conversation's place on a ring that has no more than its part.
size_t Router::bounded(const Ask& ask) {
  int32_t all = 1, up = 0;
  for (const Node& node : nodes_) {
    all += node.asked;
    up += int32_t(node.is_up);
  }
  const double most = std::ceil(kBound * all / up);
  auto point = ring_.lower_bound(mixed(ask.conversation + (uint64_t(1) << 40)));
  for (;; ++point) {
    if (point == ring_.end()) point = ring_.begin();
    const Node& node = nodes_[point->second];
    if (node.is_up && node.asked + 1 <= most) return point->second;
  }
}

Router::Known* Router::find(uint64_t key) {
  if (const auto found = newest_.find(key); found != newest_.end()) return &found->second;
  const auto found = older_.find(key);
  return found == older_.end() ? nullptr : &found->second;
}

// What is left to compute, what is to be fetched, and what the node has to do before; of those who
// are likely to have the longest beginning, of the one that hashing says, and of two others.
Router::Choice Router::cheapest(const Ask& ask, const store::Chain& chain) {
  std::vector<std::pair<size_t, int32_t>> depths;
  int32_t in_tier = 0, deepest = 0;
  for (int32_t link = 1; link <= chain.link_count(); ++link) {
    const Known* const known = find(store::short_key(chain.link(link)));
    if (known == nullptr) break;
    if (options_.uses_in_tier > 0 && known->uses >= options_.uses_in_tier) in_tier = link;
    for (size_t index = 0; index < known->node_count; ++index) {
      const size_t node = known->nodes[index];
      const auto found = std::ranges::find(depths, node, &std::pair<size_t, int32_t>::first);
      if (found == depths.end()) {
        depths.emplace_back(node, link);
      } else {
        found->second = link;
      }
      deepest = link;
    }
  }
  std::erase_if(depths,
                [&](const auto& one) { return one.second < deepest || !nodes_[one.first].is_up; });
  // Who knows nothing of a conversation finds it where one that knew nothing either has put it.
  depths.emplace_back(bounded(ask), 0);
  for (int other = 0; other < 2; ++other) depths.emplace_back(any_node(), 0);
  Choice best;
  double least = HUGE_VAL;
  for (const auto& [node, depth] : depths) {
    const int32_t fetched = std::max(0, in_tier - depth);
    const double own = (ask.blocks - std::max(depth, in_tier)) * nodes_[node].block_seconds +
                       fetched * options_.fetch_block_seconds;
    const double cost = own + nodes_[node].work_seconds;
    if (cost >= least) continue;
    least = cost;
    best = {.node = node, .expected_seconds = own};
  }
  return best;
}

void Router::learn(const store::Chain& chain, size_t node) {
  for (int32_t link = 1; link <= chain.link_count(); ++link) {
    const uint64_t key = store::short_key(chain.link(link));
    const Known* const before = find(key);
    const Known copy = before == nullptr ? Known() : *before;
    if (newest_.size() >= kKnownMax) older_ = std::exchange(newest_, {});
    Known& known = newest_[key];
    known = copy;
    known.uses = uint8_t(std::min(known.uses + 1, 255));
    const auto end = known.nodes.begin() + known.node_count;
    if (std::find(known.nodes.begin(), end, uint16_t(node)) != end) continue;
    known.nodes[known.next] = uint16_t(node);
    known.next = uint8_t((known.next + 1) % known.nodes.size());
    known.node_count = uint8_t(std::min<size_t>(known.node_count + 1u, known.nodes.size()));
  }
}

}  // namespace cairn::bench
