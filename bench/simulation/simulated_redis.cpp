// Records, shards, room.
#include "bench/simulation/simulated_redis.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/keys.h"
#include "tier/cluster.h"
#include "tier/tier.h"

namespace cairn::bench {
namespace {

// As Redis does: of some that are drawn the one goes that was used the longest ago.
constexpr int kSamples = 5;

}  // namespace

SimulatedRedis::SimulatedRedis(const Options& options)
    : options_(options), random_(options.seed), shards_(size_t(options.shards)) {}

// By the real names of keys and the real slots.
SimulatedRedis::Shard& SimulatedRedis::shard_of(const Sha256Digest& name) {
  const std::string key = "c1:" + std::string(tier::kRecordKey) + hex_of(name);
  return shards_[size_t(tier::slot_of(key)) * shards_.size() / tier::kSlots];
}

const SimulatedRecord* SimulatedRedis::find(const Sha256Digest& name, double now) {
  Shard& shard = shard_of(name);
  const auto found = shard.records.find(store::short_key(name));
  if (found == shard.records.end()) return nullptr;
  if (found->second.record.expires > now) return &found->second.record;
  erase(shard, found->first);
  return nullptr;
}

void SimulatedRedis::keep(const Sha256Digest& name, double now) {
  const auto found = shard_of(name).records.find(store::short_key(name));
  if (found == shard_of(name).records.end()) return;
  found->second.record.expires = now + options_.kept_seconds * (0.9 + 0.2 * random_.unit());
}

void SimulatedRedis::write(const Sha256Digest& name, const SimulatedRecord& record, double now) {
  Shard& shard = shard_of(name);
  const uint64_t key = store::short_key(name);
  const auto [found, is_new] = shard.records.try_emplace(key);
  if (is_new) {
    found->second.place = uint32_t(shard.keys.size());
    shard.keys.push_back(key);
  }
  found->second.record = record;
  keep(name, now);
  while (bytes_of(shard) > options_.shard_bytes) {
    uint64_t oldest = shard.keys[random_.below(shard.keys.size())];
    for (int sample = 1; sample < kSamples; ++sample) {
      const uint64_t other = shard.keys[random_.below(shard.keys.size())];
      const double expires = shard.records.at(other).record.expires;
      if (expires < shard.records.at(oldest).record.expires) oldest = other;
    }
    erase(shard, oldest);
  }
}

double SimulatedRedis::move(const Sha256Digest& name, double now, Way way) {
  Shard& shard = shard_of(name);
  double& own = shard.busy_until[size_t(way)];
  const double other = shard.busy_until[1 - size_t(way)];
  const double begins = std::max(own, now);
  const double pace = options_.bytes_per_second * (other > begins ? 0.5 : 1);
  own = begins + options_.block_bytes / pace;
  shard.moved_bytes += options_.block_bytes;
  return own;
}

void SimulatedRedis::erase(Shard& shard, uint64_t key) {
  const auto found = shard.records.find(key);
  const uint32_t place = found->second.place;
  shard.keys[place] = shard.keys.back();
  shard.records.at(shard.keys[place]).place = place;
  shard.keys.pop_back();
  shard.records.erase(key);
}

void SimulatedRedis::evict(double part) {
  for (Shard& shard : shards_) {
    for (size_t left = size_t(part * double(shard.keys.size())); left > 0; --left) {
      erase(shard, shard.keys[random_.below(shard.keys.size())]);
    }
  }
}

void SimulatedRedis::forge(double part) {
  for (Shard& shard : shards_) {
    for (size_t left = size_t(part * double(shard.keys.size())); left > 0; --left) {
      SimulatedRecord& record =
          shard.records.at(shard.keys[random_.below(shard.keys.size())]).record;
      record.payload[0] = uint8_t(~record.payload[0]);
      record.seal = tier::keyed_digest("", {}, std::as_bytes(std::span(record.payload)));
    }
  }
}

const SimulatedRedis::Note* SimulatedRedis::find_note(uint64_t key, double now) {
  const auto found = notes_.find(key);
  if (found == notes_.end()) return nullptr;
  if (found->second.expires > now) return &found->second;
  notes_.erase(found);
  return nullptr;
}

void SimulatedRedis::write_note(uint64_t key, std::vector<std::byte> value, double now,
                                double seconds) {
  notes_[key] = {std::move(value), now + seconds};
}

double SimulatedRedis::largest_shard() const {
  double most = 0, all = 0;
  for (const Shard& shard : shards_) {
    most = std::max(most, bytes_of(shard));
    all += bytes_of(shard);
  }
  return all == 0 ? 1 : most * double(shards_.size()) / all;
}

bool SimulatedRedis::is_within_budget() const {
  return std::ranges::all_of(
      shards_, [&](const Shard& shard) { return bytes_of(shard) <= options_.shard_bytes; });
}

double SimulatedRedis::moved_bytes_max() const {
  double most = 0;
  for (const Shard& shard : shards_) most = std::max(most, shard.moved_bytes);
  return most;
}

}  // namespace cairn::bench
