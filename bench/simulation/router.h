// Which node gets a prompt: three rules to compare with, and the policy of `cairn route`. Knows of
// nodes what a router is told: how much it has given them, what became of it, and who is up.
// Virtual time. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/simulation/traffic.h"
#include "route/policy.h"
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
    double block_seconds = 1;  // Until the rules to compare with know better.
    uint64_t seed = 1;
  };
  explicit Router(const Options& options);

  struct Choice {
    size_t node = 0;
    double expected_seconds = 0;  // Which it is told to forget when the prompt is done.
    uint64_t request = 0;         // Of the policy …
    uint32_t life = 0;            // … that there was then.
  };
  // None: nobody is up.
  std::optional<Choice> choose(const Ask& ask, const store::Chain& chain, double now);
  // So many blocks it had, so many it computed; and so long that took.
  void note_done(const Choice& choice, int32_t reused, int32_t computed, double seconds,
                 double now);
  void note_failed(const Choice& choice);
  void set_up(size_t node, bool is_up);
  // What a node's metrics say of all routers' prompts.
  void set_told(size_t node, int32_t waiting, int32_t running);
  void forget();  // As one that starts again.

 private:
  struct Node {
    bool is_up = true;
    int32_t asked = 0;         // Prompts that it has.
    double work_seconds = 0;   // Of these.
    double block_seconds = 0;  // As its replies show.
  };
  size_t any_node();
  size_t lighter_of_two();
  size_t bounded(const Ask& ask);
  void note_end(const Choice& choice);
  void make_policy();

  Options options_;
  Random random_;
  std::vector<Node> nodes_;
  int32_t asked_ = 0, up_ = 0;                     // Of all nodes.
  std::vector<std::pair<uint64_t, size_t>> ring_;  // Points of nodes, in order.
  std::optional<route::Policy> policy_;
  uint32_t life_ = 0;
};

}  // namespace cairn::bench
