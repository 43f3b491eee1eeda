// Which node gets a prompt, by one of four rules. Knows of nodes what a router is told: how much it
// has given them, what became of it, and who is up. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/simulation/traffic.h"
#include "store/keys.h"

namespace cairn::bench {

enum class Policy : uint8_t { random, two_choices, bounded_hash, cost };
inline constexpr Policy kPolicies[] = {Policy::random, Policy::two_choices, Policy::bounded_hash,
                                       Policy::cost};
std::string_view name_of(Policy policy);

class Router {
 public:
  struct Options {
    Policy policy = Policy::cost;
    int32_t nodes = 1;
    double block_seconds = 1, fetch_block_seconds = 0.1;  // Until it knows better.
    int32_t uses_in_tier = 2;  // After so many a block is likely to be in the tier; 0: never.
    uint64_t seed = 1;
  };
  explicit Router(const Options& options);

  struct Choice {
    size_t node = 0;
    double expected_seconds = 0;  // Which it is told to forget when the prompt is done.
  };
  // None: nobody is up.
  std::optional<Choice> choose(const Ask& ask, const store::Chain& chain);
  void note_done(const Choice& choice, double computed_blocks, double seconds);
  void set_up(size_t node, bool is_up) { nodes_[node].is_up = is_up; }
  void forget();  // As one that starts again.

 private:
  struct Node {
    bool is_up = true;
    int32_t asked = 0;         // Prompts that it has.
    double work_seconds = 0;   // Of these.
    double block_seconds = 0;  // As its replies show.
  };
  struct Known {
    std::array<uint16_t, 4> nodes{};
    uint8_t node_count = 0, next = 0, uses = 0;
  };
  size_t any_node();
  size_t lighter_of_two();
  size_t bounded(const Ask& ask);
  Choice cheapest(const Ask& ask, const store::Chain& chain);
  Known* find(uint64_t key);
  void learn(const store::Chain& chain, size_t node);

  Options options_;
  Random random_;
  std::vector<Node> nodes_;
  std::map<uint64_t, size_t> ring_;
  // Two generations: when the newer one is full, the older one goes.
  std::unordered_map<uint64_t, Known> newest_, older_;
};

}  // namespace cairn::bench
