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

SimulatedRedis::Place SimulatedRedis::place_of(const Sha256Digest& name) const {
  const std::string key = "c1:" + std::string(tier::kRecordKey) + hex_of(name);
  return {.key = store::short_key(name),
          .shard = uint32_t(size_t(tier::slot_of(key)) * shards_.size() / tier::kSlots)};
}

const SimulatedRecord* SimulatedRedis::find(const Place& place, double now) {
  Shard& shard = shards_[place.shard];
  const auto found = shard.indices.find(place.key);
  if (found == shard.indices.end()) return nullptr;
  const SimulatedRecord& record = shard.kept[found->second].record;
  if (record.expires > now) return &record;
  erase(shard, found->second);
  return nullptr;
}

void SimulatedRedis::keep(const Place& place, double now) {
  Shard& shard = shards_[place.shard];
  const auto found = shard.indices.find(place.key);
  if (found != shard.indices.end()) shard.kept[found->second].record.expires = next_expiry(now);
}

void SimulatedRedis::write(const Place& place, const SimulatedRecord& record, double now) {
  Shard& shard = shards_[place.shard];
  const auto [found, is_new] = shard.indices.try_emplace(place.key, uint32_t(shard.kept.size()));
  if (is_new) shard.kept.push_back({.key = place.key});
  SimulatedRecord& kept = shard.kept[found->second].record;
  kept = record;
  kept.expires = next_expiry(now);
  while (bytes_of(shard) > options_.shard_bytes) {
    size_t oldest = random_.below(shard.kept.size());
    for (int sample = 1; sample < kSamples; ++sample) {
      const size_t other = random_.below(shard.kept.size());
      if (shard.kept[other].record.expires < shard.kept[oldest].record.expires) oldest = other;
    }
    erase(shard, oldest);
  }
  is_within_budget_ = is_within_budget_ && bytes_of(shard) <= options_.shard_bytes;
}

double SimulatedRedis::move(const Place& place, double now, Way way) {
  Shard& shard = shards_[place.shard];
  double& own = shard.busy_until[size_t(way)];
  const double other = shard.busy_until[1 - size_t(way)];
  const double begins = std::max(own, now);
  const double pace = options_.bytes_per_second * (other > begins ? 0.5 : 1);
  own = begins + options_.block_bytes / pace;
  shard.moved_bytes += options_.block_bytes;
  return own;
}

// The last one takes its place.
void SimulatedRedis::erase(Shard& shard, size_t index) {
  shard.indices.erase(shard.kept[index].key);
  if (index + 1 < shard.kept.size()) {
    shard.kept[index] = shard.kept.back();
    shard.indices[shard.kept[index].key] = uint32_t(index);
  }
  shard.kept.pop_back();
}

void SimulatedRedis::evict(double part) {
  for (Shard& shard : shards_) {
    for (size_t left = size_t(part * double(shard.kept.size())); left > 0; --left) {
      erase(shard, random_.below(shard.kept.size()));
    }
  }
}

void SimulatedRedis::forge(double part) {
  for (Shard& shard : shards_) {
    for (size_t left = size_t(part * double(shard.kept.size())); left > 0; --left) {
      SimulatedRecord& record = shard.kept[random_.below(shard.kept.size())].record;
      record.payload[0] = uint8_t(~record.payload[0]);
      record.seal = tier::keyed_digest("", {}, std::as_bytes(std::span(record.payload)));
    }
  }
  holders.forge(part, random_);
}

const SimulatedRedis::Notes::Note* SimulatedRedis::Notes::find(uint64_t key, double now) const {
  const auto found = notes_.find(key);
  return found != notes_.end() && found->second.expires > now ? &found->second : nullptr;
}

// What has expired goes, if nothing that was written before is there still.
void SimulatedRedis::Notes::write(uint64_t key, std::vector<std::byte> value, double now,
                                  double seconds) {
  for (; !written_.empty() && written_.front().first <= now; written_.pop_front()) {
    const auto found = notes_.find(written_.front().second);
    if (found != notes_.end() && found->second.expires <= now) notes_.erase(found);
  }
  notes_[key] = {std::move(value), now + seconds};
  written_.emplace_back(now + seconds, key);
}

void SimulatedRedis::Notes::forge(double part, Random& random) {
  for (auto& [key, note] : notes_) {
    if (random.unit() >= part) continue;
    note.value[random.below(note.value.size())] ^= std::byte(0xff);
  }
}

double SimulatedRedis::largest_shard() const {
  double most = 0, all = 0;
  for (const Shard& shard : shards_) {
    most = std::max(most, bytes_of(shard));
    all += bytes_of(shard);
  }
  return all == 0 ? 1 : most * double(shards_.size()) / all;
}

double SimulatedRedis::moved_bytes_max() const {
  double most = 0;
  for (const Shard& shard : shards_) most = std::max(most, shard.moved_bytes);
  return most;
}

}  // namespace cairn::bench
