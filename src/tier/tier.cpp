// Names, counts, seals.
#include "tier/tier.h"

#include <cmath>
#include <utility>

#include "base/log.h"
#include "tier/peers/peer_server.h"

namespace cairn::tier {
namespace {

constexpr size_t kBadMax = 1024;
constexpr double kKeptJitter = 0.1;

}  // namespace

Result<std::unique_ptr<Tier>> Tier::open(const TierOptions& options,
                                         std::shared_ptr<PeerServer> peers) {
  CAIRN_TRY(TierAddress address, TierAddress::find(options));
  std::random_device device;
  const uint64_t seed = (uint64_t(device()) << 32) | device();
  return std::unique_ptr<Tier>(new Tier(options, std::move(address), std::move(peers), seed));
}

Tier::Tier(const TierOptions& options, TierAddress address, std::shared_ptr<PeerServer> peers,
           uint64_t seed)
    : options_(options),
      address_(std::move(address)),
      secret_(address_.key),
      peers_(std::move(peers)),
      node_(peers_ != nullptr ? peers_->node() : seed),
      reads_(seed + 1),
      writes_(seed + 2),
      cluster_(&address_, seed + 4),
      random_(seed + 3) {}

void Tier::count(uint64_t TierStats::*value, uint64_t by) {
  const std::lock_guard lock(mutex_);
  stats_.*value += by;
}

void Tier::count(Outcome outcome) {
  const std::lock_guard lock(mutex_);
  ++stats_.outcomes[size_t(outcome)];
}

void Tier::count_peer(Outcome outcome) {
  const std::lock_guard lock(mutex_);
  ++stats_.peers[size_t(outcome)];
}

TierStats Tier::stats() const {
  const std::lock_guard lock(mutex_);
  TierStats stats = stats_;
  stats.breaker_openings = reads_.opened() + writes_.opened() + cluster_.opened();
  stats.has_peers = peers_ != nullptr;
  stats.is_open = reads_.is_open() || cluster_.is_open();
  stats.bytes_per_second = costs_.bytes_per_second();
  return stats;
}

void Tier::note_bad(const Sha256Digest& name, std::string_view reason) {
  log::error("tier: record {} was refused: {}", hex_of(name).substr(0, 12), reason);
  const std::lock_guard lock(mutex_);
  ++stats_.refused_records;
  if (bad_.size() < kBadMax) bad_.insert(name);
  if (!reads_.note_refusal()) return;
  log::error("tier: {} records were refused; it is not read for {} minutes", Breaker::kRefusals,
             Breaker::kBlocked.count());
}

void Tier::distrust() {
  log::error("tier: what was computed again differs; it is not read for {} minutes",
             Breaker::kBlocked.count());
  reads_.block(Breaker::kBlocked);
}

bool Tier::take_bad(const Sha256Digest& name) {
  const std::lock_guard lock(mutex_);
  return bad_.erase(name) > 0;
}

std::string Tier::kept_ms() {
  const std::chrono::duration<double, std::milli> kept = options_.times.kept;
  std::uniform_real_distribution<double> part(1 - kKeptJitter, 1 + kKeptJitter);
  const std::lock_guard lock(mutex_);
  return fmt::format("{}", std::lround(kept.count() * part(random_)));
}

}  // namespace cairn::tier
