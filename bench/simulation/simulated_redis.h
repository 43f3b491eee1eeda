// The servers of a tier, as far as nodes notice them: each has a part of the keys, room for so many
// bytes and a pace. What is old goes, what is full makes room. Virtual time. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
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

  // Null: not there, or not any more.
  const SimulatedRecord* find(const Sha256Digest& name, double now);
  void keep(const Sha256Digest& name, double now);  // For another while.
  void write(const Sha256Digest& name, const SimulatedRecord& record, double now);
  // When a shard that begins now has moved a record. What it has to move already in this direction
  // comes first; what it moves in the other one takes half of its pace.
  enum class Way : uint8_t { out, in };
  double move(const Sha256Digest& name, double now, Way way);

  // Some of all records go, or are overwritten by somebody who has no key.
  void evict(double part);
  void forge(double part);

  // A short value under a key, if there is none; what is left of it otherwise.
  struct Note {
    std::vector<std::byte> value;
    double expires = 0;
  };
  const Note* find_note(uint64_t key, double now);
  void write_note(uint64_t key, std::vector<std::byte> value, double now, double seconds);

  double largest_shard() const;  // Of the bytes that are there, in parts of the mean.
  bool is_within_budget() const;
  double moved_bytes_max() const;  // Of one shard.

 private:
  struct Kept {
    SimulatedRecord record;
    uint32_t place = 0;
  };
  struct Shard {
    std::unordered_map<uint64_t, Kept> records;
    std::vector<uint64_t> keys;          // Of the records, in no order.
    std::array<double, 2> busy_until{};  // By ways.
    double moved_bytes = 0;
  };
  Shard& shard_of(const Sha256Digest& name);
  void erase(Shard& shard, uint64_t key);
  double bytes_of(const Shard& shard) const {
    return double(shard.keys.size()) * options_.block_bytes;
  }

  Options options_;
  Random random_;
  std::vector<Shard> shards_;
  std::unordered_map<uint64_t, Note> notes_;
};

}  // namespace cairn::bench
