// The servers of a tier, as far as nodes notice them: each has a part of the keys, room for so many
// bytes and a pace. What is old goes, what is full makes room. Virtual time. Not thread-safe.
#pragma once

#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "bench/simulation/traffic.h"

namespace cairn::bench {

// The record of a block: of its bytes, 32 stand for all of them.
struct SimulatedRecord {
  Sha256Digest payload{}, seal{};
  double expires = 0;
};

class SimulatedRedis {
 public:
  struct Options {
    int32_t shards = 1;
    double shard_bytes = 64e9;
    double block_bytes = 0;
    double bytes_per_second = 1e9;  // Of a shard.
    double kept_seconds = 1800;
    uint64_t seed = 1;
  };
  explicit SimulatedRedis(const Options& options);

  // Where a record lies, by the real name of its key and the real slots.
  struct Place {
    uint64_t key = 0;
    uint32_t shard = 0;
  };
  Place place_of(const Sha256Digest& name) const;
  // Null: not there, or not any more. Until something is written.
  const SimulatedRecord* find(const Place& place, double now);
  void keep(const Place& place, double now);  // For another while.
  void write(const Place& place, const SimulatedRecord& record, double now);
  // When a shard that begins now has moved a record. What it has to move already in this direction
  // comes first; what it moves in the other one takes half of its pace.
  enum class Way : uint8_t { out, in };
  double move(const Place& place, double now, Way way);

  // Some of all records go, or are overwritten by somebody who has no key.
  void evict(double part);
  void forge(double part);

  // Short values under keys, which expire.
  class Notes {
   public:
    struct Note {
      std::vector<std::byte> value;
      double expires = 0;
    };
    const Note* find(uint64_t key, double now) const;  // Until something is written.
    void write(uint64_t key, std::vector<std::byte> value, double now, double seconds);
    // Some are overwritten by somebody who has no key.
    void forge(double part, Random& random);

   private:
    boost::unordered_flat_map<uint64_t, Note> notes_;
    std::deque<std::pair<double, uint64_t>> written_;  // When they expire, in the order of writing.
  };
  Notes leases, wanted, holders;

  double largest_shard() const;  // Of the bytes that are there, in parts of the mean.
  bool is_within_budget() const { return is_within_budget_; }  // All shards, at all times.
  double moved_bytes_max() const;                              // Of one shard.

 private:
  struct Kept {
    uint64_t key = 0;
    SimulatedRecord record;
  };
  struct Shard {
    std::vector<Kept> kept;                                 // In no order.
    boost::unordered_flat_map<uint64_t, uint32_t> indices;  // In it, by keys.
    std::array<double, 2> busy_until{};                     // By ways.
    double moved_bytes = 0;
  };
  void erase(Shard& shard, size_t index);
  double bytes_of(const Shard& shard) const {
    return double(shard.kept.size()) * options_.block_bytes;
  }
  double next_expiry(double now) {
    return now + options_.kept_seconds * (0.9 + 0.2 * random_.unit());
  }

  Options options_;
  Random random_;
  std::vector<Shard> shards_;
  bool is_within_budget_ = true;
};

}  // namespace cairn::bench
