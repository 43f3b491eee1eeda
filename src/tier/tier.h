// A store that several machines share (docs/tier.md): what those know together who read it
// (tier/tier_source.h) and who fill it (tier/tier_publisher.h): where it is, how it does, what it
// costs, what was counted. A record is kept under its name with the bytes that its file has in a
// folder, and a digest behind them that only those who know the key can make.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "store/shared_tier.h"
#include "tier/breaker.h"
#include "tier/cluster.h"
#include "tier/costs.h"
#include "tier/secret.h"
#include "tier/tier_address.h"
#include "tier/tier_options.h"

namespace cairn::tier {

class PeerServer;

using Outcome = store::TierOutcome;
using store::TierStats;

class Tier {
 public:
  // Errors: those of TierAddress::find(). Does not connect: a tier that is down is no error.
  static Result<std::unique_ptr<Tier>> open(const TierOptions& options,
                                            std::shared_ptr<PeerServer> peers = nullptr);

  const TierOptions& options() const { return options_; }
  const TierAddress& address() const { return address_; }
  uint64_t node() const { return node_; }  // A number of this process alone.
  const Secret& secret() const { return secret_; }
  // Where it lends what it has; null: it does not, and asks no other machine either.
  PeerServer* peers() const { return peers_.get(); }
  Costs& costs() { return costs_; }
  Costs& peer_costs() { return peer_costs_; }  // Of fetching from other machines.
  Breaker& reads() { return reads_; }
  Breaker& writes() { return writes_; }
  Cluster& cluster() { return cluster_; }

  void count(uint64_t TierStats::*value, uint64_t by = 1);
  void count(Outcome outcome);
  void count_peer(Outcome outcome);
  TierStats stats() const;

  // A record that was wrong. After three of them the tier is not read for ten minutes.
  void note_bad(const Sha256Digest& name, std::string_view reason);
  // Something of it was right by its seal and is not what its tokens compute: an alarm. It is not
  // read for as long.
  void distrust();
  // Whether it is known to be wrong: then it is written again. Asked once.
  bool take_bad(const Sha256Digest& name);

  // So long what is written now is kept: about as long as the options say, so that what came
  // together does not go together.
  std::string kept_ms();

  std::string key_of(std::string_view kind, const Sha256Digest& digest) const {
    return secret_.key_of(kind, digest);
  }
  Sha256Digest seal_of(const Sha256Digest& name,
                       std::span<const std::span<const std::byte>> parts) const {
    return secret_.seal_of(name, parts);
  }

 private:
  Tier(const TierOptions& options, TierAddress address, std::shared_ptr<PeerServer> peers,
       uint64_t seed);

  TierOptions options_;
  TierAddress address_;
  Secret secret_;
  std::shared_ptr<PeerServer> peers_;
  uint64_t node_;
  Costs costs_, peer_costs_;
  Breaker reads_, writes_;
  Cluster cluster_;
  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  TierStats stats_;
  std::set<Sha256Digest> bad_;
};

// Of a record. A state of the largest models takes some 150 MiB; servers take 512 at most.
inline constexpr uint64_t kRecordBytesMax = uint64_t(256) << 20;
inline constexpr uint64_t kManifestRecordBytesMax = uint64_t(16) << 20;

}  // namespace cairn::tier
