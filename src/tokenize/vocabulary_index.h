// From bytes to the token that has them: an open hash table whose slots hold short keys whole, so
// that most look-ups touch one cache line. Knows nothing of kinds of tokens; the vocabulary that
// owns it compares long keys. Thread-safe: constant once built.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace cairn::tokenize {

constexpr int32_t kNoToken = -1;

// A random number for each process, so that a model file cannot contain keys that collide.
uint64_t hash_seed();

inline uint64_t mix(uint64_t value) {
  value ^= value >> 32;
  value *= 0x9E3779B97F4A7C15u;  // 2^64 over the golden ratio.
  value ^= value >> 29;
  value *= 0xBF58476D1CE4E5B9u;
  return value ^ (value >> 32);
}

inline uint64_t hash_bytes(std::string_view bytes, uint64_t seed) {
  uint64_t hash = seed ^ (bytes.size() * 0x9E3779B97F4A7C15u);
  while (bytes.size() >= 8) {
    uint64_t part;
    std::memcpy(&part, bytes.data(), 8);
    hash = mix(hash ^ part);
    bytes.remove_prefix(8);
  }
  uint64_t part = 0;
  std::memcpy(&part, bytes.data(), bytes.size());
  return mix(hash ^ part);
}

class VocabularyIndex {
 public:
  // Room for so many keys.
  void reserve(size_t key_count) {
    seed_ = hash_seed();
    slots_.assign(std::bit_ceil(key_count * 2 + 2), Slot{});
  }

  // Keeps the first token of equal keys and returns whether this was it. REQUIRES: room.
  template <class Pieces>
  bool insert(std::string_view key, int32_t token, const Pieces& pieces) {
    Slot& slot = const_cast<Slot&>(locate(key, pieces));
    if (slot.token != kNoToken) return false;
    slot = {packed(key), uint32_t(key.size()), token};
    return true;
  }

  template <class Pieces>
  int32_t find(std::string_view key, const Pieces& pieces) const {
    return slots_.empty() ? kNoToken : locate(key, pieces).token;
  }

 private:
  struct Slot {
    uint64_t key = 0;     // Up to 8 bytes: the key itself; else its hash.
    uint32_t length = 0;  // Of the key.
    int32_t token = kNoToken;
  };

  uint64_t packed(std::string_view key) const {
    if (key.size() > 8) return hash_bytes(key, seed_);
    uint64_t bytes = 0;
    std::memcpy(&bytes, key.data(), key.size());
    return bytes;
  }

  template <class Pieces>
  const Slot& locate(std::string_view key, const Pieces& pieces) const {
    const uint64_t wanted = packed(key);
    const size_t mask = slots_.size() - 1;
    for (size_t at = mix(wanted ^ seed_ ^ key.size()) & mask;; at = (at + 1) & mask) {
      const Slot& slot = slots_[at];
      if (slot.token == kNoToken) return slot;
      if (slot.key != wanted || slot.length != key.size()) continue;
      if (key.size() <= 8 || pieces.text_of(slot.token) == key) return slot;
    }
  }

  uint64_t seed_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace cairn::tokenize
