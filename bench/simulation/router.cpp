// Three rules, and what `cairn route` is told.
#include "bench/simulation/router.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace cairn::bench {
namespace {

constexpr uint64_t kPointsOfNode = 100;
constexpr double kBound = 1.25;
constexpr double kWeight = 0.1;
// A block of 512 tokens, of four bytes each. The real router has two keys for it.
constexpr size_t kBlockBytes = 2048, kKeysOfBlock = kBlockBytes / route::kBlockBytes;

// A mixer of 64 bits, of which each depends on all.
uint64_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

uint64_t affinity_of(const Ask& ask) {
  return mixed(ask.conversation + (uint64_t(1) << 40));
}

}  // namespace

std::string_view name_of(Policy policy) {
  constexpr std::array<std::string_view, 4> kNames = {"random", "two choices", "bounded hash",
                                                      "cairn route"};
  return kNames[size_t(policy)];
}

Router::Router(const Options& options)
    : options_(options), random_(options.seed), nodes_(size_t(options.nodes)), up_(options.nodes) {
  for (Node& node : nodes_) node.block_seconds = options.block_seconds;
  for (uint64_t node = 0; node < nodes_.size(); ++node) {
    for (uint64_t point = 0; point < kPointsOfNode; ++point) {
      ring_.emplace_back(mixed((node << 20) + point + 1), size_t(node));
    }
  }
  std::ranges::sort(ring_);
  make_policy();
}

void Router::make_policy() {
  if (options_.policy != Policy::cost) return;
  const route::PolicyOptions usual;
  policy_.emplace(route::PolicyOptions{.entry_count = usual.entry_count / kKeysOfBlock,
                                       .entries_of_node = usual.entries_of_node / kKeysOfBlock,
                                       .table_bytes_max = usual.table_bytes_max / kKeysOfBlock,
                                       .seed = options_.seed + life_});
  for (size_t node = 0; node < nodes_.size(); ++node) {
    policy_->add_node("node " + std::to_string(node));
    policy_->set_up(int32_t(node), nodes_[node].is_up);
  }
}

std::optional<Router::Choice> Router::choose(const Ask& ask, const store::Chain& chain,
                                             double now) {
  if (up_ == 0) return std::nullopt;
  Choice choice{.life = life_};
  if (policy_) {
    route::PromptKeys keys{.affinity = affinity_of(ask)};
    for (int32_t link = 1; link <= chain.link_count(); ++link) {
      keys.prefixes.push_back({store::short_key(chain.link(link)), size_t(link) * kBlockBytes});
    }
    const route::Decision decision = policy_->choose(keys, now * 1000);
    choice.node = size_t(decision.node);
    choice.request = policy_->sent(keys, decision, now * 1000);
  } else {
    choice.node = options_.policy == Policy::random        ? any_node()
                  : options_.policy == Policy::two_choices ? lighter_of_two()
                                                           : bounded(ask);
    choice.expected_seconds = ask.blocks * nodes_[choice.node].block_seconds;
  }
  ++nodes_[choice.node].asked;
  ++asked_;
  nodes_[choice.node].work_seconds += choice.expected_seconds;
  return choice;
}

void Router::note_end(const Choice& choice) {
  Node& node = nodes_[choice.node];
  --node.asked;
  --asked_;
  node.work_seconds = std::max(0.0, node.work_seconds - choice.expected_seconds);
}

void Router::note_done(const Choice& choice, int32_t reused, int32_t computed, double seconds,
                       double now) {
  note_end(choice);
  Node& node = nodes_[choice.node];
  if (computed > 0) node.block_seconds += kWeight * (seconds / computed - node.block_seconds);
  if (!policy_ || choice.life != life_) return;
  policy_->begun(choice.request, now * 1000);
  policy_->ended(
      choice.request,
      route::ReplyFigures{
          .reused_tokens = reused, .computed_tokens = computed, .prompt_ms = seconds * 1000},
      true);
}

void Router::note_failed(const Choice& choice) {
  note_end(choice);
  if (policy_ && choice.life == life_) policy_->ended(choice.request, std::nullopt, false);
}

void Router::set_up(size_t node, bool is_up) {
  up_ += int32_t(is_up) - int32_t(nodes_[node].is_up);
  nodes_[node].is_up = is_up;
  if (policy_) policy_->set_up(int32_t(node), is_up);
}

void Router::set_told(size_t node, int32_t waiting, int32_t running) {
  if (!policy_) return;
  policy_->asked(int32_t(node));
  policy_->told(int32_t(node), waiting, running);
}

void Router::forget() {
  ++life_;
  make_policy();
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
  const double most = std::ceil(kBound * (asked_ + 1) / up_);
  auto point =
      std::ranges::lower_bound(ring_, affinity_of(ask), {}, &std::pair<uint64_t, size_t>::first);
  for (;; ++point) {
    if (point == ring_.end()) point = ring_.begin();
    const Node& node = nodes_[point->second];
    if (node.is_up && node.asked + 1 <= most) return point->second;
  }
}

}  // namespace cairn::bench
