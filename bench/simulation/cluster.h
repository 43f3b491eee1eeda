// Many nodes, a tier and a router on one thread and a virtual clock. What nodes decide is decided
// by the real code: when fetching is cheaper and how long it may take (tier/costs.h), when the tier
// is left alone (tier/breaker.h), what is sent (tier/use_counts.h, tier/room.h), who computes what
// (tier/lease.h), whom to believe (seals), where keys lie (tier/cluster.h), who is said to lend
// what (tier/peers/directory.h), which node gets a prompt (route/policy.h). Simulated are the time
// that things take, the network, the servers of the tier, and what goes wrong. One seed, one course
// of events.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "bench/simulation/router.h"
#include "bench/simulation/traffic.h"
#include "tier/tier_options.h"

namespace cairn::bench {

struct Fault {
  enum class Kind : uint8_t {
    crash_cold,      // A part of the nodes is gone for a while, and has forgotten everything.
    crash_warm,      // They have their folders still.
    tier_down,       // Nobody reaches the tier.
    partition,       // A part of the nodes does not.
    slow,            // A part of the nodes computes at a tenth of its pace.
    eviction,        // A part of all records goes.
    flips,           // Of so many records that are read one bit is another.
    forgery,         // A part of all records is overwritten by somebody without the key.
    router_restart,  // It knows nothing any more.
  };
  Kind kind = Kind::tier_down;
  double at = 0, until = 0;
  double part = 0;
};
// Each once, one after another: none in the first quarter nor in the last third.
std::vector<Fault> all_faults(double seconds);

struct ClusterOptions {
  int32_t nodes = 16;
  Policy policy = Policy::cost;
  tier::Publishing publishing = tier::Publishing::second_use;
  bool has_tier = true;
  int32_t node_blocks = 2000;  // What a node remembers: a million tokens.
  double load = 0.6;           // Of nodes that compute no more than one machine would.
  double shard_bytes = 64e9;   // Of each server of the tier.
  // Nodes lend each other what was read last, of a quarter of their memory at most, and what is in
  // their folders, of 20 GiB each; so many bytes a second at most.
  bool has_peers = false;
  int32_t shelf_blocks = 500, folder_blocks = 1280;
  double lent_per_second = double(tier::PeerOptions().bytes_per_second);
  uint64_t seed = 1;
  std::vector<Fault> faults;
  double watched_from = 0, watched_until = 0;  // Seconds of which reuse is told apart.
};

struct ClusterFigures {
  int64_t asks = 0, answered = 0, failed = 0;          // Failed: their node was gone.
  double ideal_reuse = 0, local_reuse = 0, reuse = 0;  // In parts of all blocks.
  double wait_p50 = 0, wait_p99 = 0;                   // Until a node begins with a prompt.
  double first_p99 = 0;                                // Until the prompt is read.
  double goodput = 0;      // Answers whose wait was five seconds at most.
  double machine_p99 = 0;  // Of one machine as fast as all of them, which forgets nothing.
  double work_max = 0;     // Of the busiest node, in parts of the mean.
  double written_bytes = 0, read_bytes = 0, reused_bytes = 0;
  double lent_bytes = 0, directory_bytes = 0;   // From node to node; of the tier, for that.
  double largest_shard = 0, busiest_shard = 0;  // In parts of the mean: bytes, bytes per second.
  int64_t fetched = 0, slower = 0, late = 0, paused = 0, unreachable = 0, refused = 0,
          lease_waits = 0;
  int64_t borrowed = 0, lenders_busy = 0, lenders_gone = 0, lenders_lost = 0;
  int64_t wrong = 0;             // Blocks that were used and are not what was asked for.
  bool is_within_budget = true;  // Of nodes and shards, at every moment.
  double watched_reuse = 0;      // Of the seconds that were watched, in parts of one machine's.
  Sha256Digest events{};         // Of all that happened, and when.
};

ClusterFigures simulate(const std::vector<Ask>& asks, const ClusterOptions& options);

}  // namespace cairn::bench
