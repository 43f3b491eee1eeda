// Names, counts, seals.
#include "tier/tier.h"

#include <cmath>
#include <utility>

#include "base/log.h"

namespace cairn::tier {
namespace {

constexpr size_t kBadMax = 1024;
constexpr size_t kRefusalsMax = 3;
constexpr std::chrono::minutes kBlocked(10);
constexpr double kKeptJitter = 0.1;

// A new secret begins anew: what was written with the old one is not found, and goes by itself.
std::string beginning_of_keys(const std::string& secret) {
  if (secret.empty()) return "c1:";
  const std::string_view purpose = "cairn tier keys";
  return "c1:" + hex_of(keyed_digest(secret, std::as_bytes(std::span(purpose)), {})).substr(0, 8) +
         ":";
}

}  // namespace

std::string Tier::key_of(std::string_view kind, const Sha256Digest& digest) const {
  return fmt::format("{}{}{}", key_beginning_, kind, hex_of(digest));
}

Result<std::unique_ptr<Tier>> Tier::open(const TierOptions& options) {
  CAIRN_TRY(TierAddress address, TierAddress::find(options));
  std::random_device device;
  const uint64_t seed = (uint64_t(device()) << 32) | device();
  return std::unique_ptr<Tier>(new Tier(options, std::move(address), seed));
}

Tier::Tier(const TierOptions& options, TierAddress address, uint64_t seed)
    : options_(options),
      address_(std::move(address)),
      key_beginning_(beginning_of_keys(address_.key)),
      node_(seed),
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

TierStats Tier::stats() const {
  const std::lock_guard lock(mutex_);
  TierStats stats = stats_;
  stats.breaker_openings = reads_.opened() + writes_.opened() + cluster_.opened();
  stats.is_open = reads_.is_open() || cluster_.is_open();
  stats.bytes_per_second = costs_.bytes_per_second();
  return stats;
}

void Tier::note_bad(const Sha256Digest& name, std::string_view reason) {
  log::error("tier: record {} was refused: {}", hex_of(name).substr(0, 12), reason);
  const auto now = Breaker::Clock::now();
  const std::lock_guard lock(mutex_);
  ++stats_.refused_records;
  if (bad_.size() < kBadMax) bad_.insert(name);
  refusals_.push_back(now);
  while (now - refusals_.front() > kBlocked) refusals_.pop_front();
  if (refusals_.size() < kRefusalsMax) return;
  log::error("tier: {} records were refused; it is not read for {} minutes", refusals_.size(),
             kBlocked.count());
  reads_.block(kBlocked, now);
  refusals_.clear();
}

void Tier::distrust() {
  log::error("tier: what was computed again differs; it is not read for {} minutes",
             kBlocked.count());
  reads_.block(kBlocked);
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

// Of the digest of the record, so that its parts need not lie together.
Sha256Digest Tier::seal_of(const Sha256Digest& name,
                           std::span<const std::span<const std::byte>> parts) const {
  Sha256 sha;
  for (const std::span<const std::byte>& part : parts) sha.add(part);
  const Sha256Digest digest = sha.finish();
  return keyed_digest(address_.key, std::as_bytes(std::span(name)),
                      std::as_bytes(std::span(digest)));
}

}  // namespace cairn::tier
