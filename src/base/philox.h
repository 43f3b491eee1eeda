// Philox 4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (2011): random bits as a pure function of a counter and a key.
// Nothing is stored, so noise that was drawn once can be drawn again in any order.
// Thread rule: pure.
#pragma once

#include <array>
#include <cstdint>

namespace cairn {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
  // Multipliers from the paper's search; the key moves by the golden ratio and sqrt(3) - 1.
  constexpr uint32_t kMultiplier0 = 0xd2511f53u, kMultiplier1 = 0xcd9e8d57u;
  constexpr uint32_t kWeyl0 = 0x9e3779b9u, kWeyl1 = 0xbb67ae85u;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t(kMultiplier0) * counter[0];
    const uint64_t product1 = uint64_t(kMultiplier1) * counter[2];
    counter = {uint32_t(product1 >> 32) ^ counter[1] ^ key[0], uint32_t(product1),
               uint32_t(product0 >> 32) ^ counter[3] ^ key[1], uint32_t(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

}  // namespace cairn
