// What one simulated node has: blocks in memory, prompts that wait, and the real parts of a tier's
// member. Not thread-safe.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "bench/simulation/router.h"
#include "bench/simulation/simulated_redis.h"
#include "tier/breaker.h"
#include "tier/costs.h"
#include "tier/room.h"
#include "tier/use_counts.h"

namespace cairn::bench {

// Blocks in the order of their last use: a ring of slots, by their indices.
class BlockMemory {
 public:
  explicit BlockMemory(size_t most);

  // So many of a prompt's first blocks are here.
  int32_t common(const store::Chain& chain) const;
  // These are used now, the first one last: what others begin with as well stays longest. What has
  // to go for them is added to `gone`.
  void use(const store::Chain& chain, std::vector<Sha256Digest>& gone);
  void clear();
  bool has(uint64_t key) const { return indices_.contains(key); }
  size_t size() const { return indices_.size(); }

 private:
  struct Slot {
    Sha256Digest key{};
    uint32_t newer = 0, older = 0;
  };
  void unlink(uint32_t slot);
  void link_newest(uint32_t slot);

  size_t most_;
  std::vector<Slot> slots_;      // The first one is the ring's beginning: newest, …, oldest.
  std::vector<uint32_t> empty_;  // Of them.
  boost::unordered_flat_map<uint64_t, uint32_t> indices_;
};

// A prompt on its way through a node.
struct Work {
  Ask ask;
  Router::Choice choice;
  std::shared_ptr<const store::Chain> chain;
  std::vector<SimulatedRedis::Place> places;  // In the tier, of its first blocks.
  double first_looked = -1;                   // When it was looked for the first time.
  double began = 0;
  int32_t computed = 0;
  double computing_seconds = 0, reading_seconds = 0;  // With what was fetched.
};

struct Node {
  Node(size_t blocks, uint64_t seed)
      : memory(blocks),
        reads(seed),
        writes(seed + 1),
        counts(size_t(1) << 13),
        room(tier::TierTimes().kept, seed + 2),
        own_seed(seed) {}
  // Who failed once is left alone at once, as tier/place_reader.cpp has it.
  tier::Breaker& breaker_of(uint64_t peer) {
    std::unique_ptr<tier::Breaker>& breaker = peers[peer];
    if (breaker == nullptr) breaker = std::make_unique<tier::Breaker>(own_seed, 1);
    return *breaker;
  }

  BlockMemory memory;
  tier::Costs costs, peer_costs;
  tier::Breaker reads, writes;
  tier::UseCounts counts;
  tier::Room room;
  uint64_t own_seed;
  std::map<uint64_t, std::unique_ptr<tier::Breaker>> peers;  // By their numbers.
  std::deque<std::shared_ptr<Work>> waiting;
  std::shared_ptr<Work> at_work;
  uint32_t life = 0;  // One more each time that it is gone.
  bool is_up = true, is_cut_off = false;
  double slowness = 1;
  double sends_until = 0, busy_part = 0, work_seconds = 0;
  std::set<uint64_t> bad;  // Records that were wrong.
  double sent_at = 0;
};

}  // namespace cairn::bench
