// Eight lanes of 64 bits; each takes in a word by a multiplication whose 128 bits are folded, so
// that one changed bit changes bits all over the lane (a product alone would carry the uppermost
// bit nowhere). Eight chains side by side hide the latency of the multiplications.
#include "base/digest.h"

#include <bit>
#include <cstring>

namespace cairn {
namespace {

// Odd numbers without pattern: the fractional bits of the golden ratio and of the square root of 2.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
constexpr uint64_t kFinish = 0x6a09e667f3bcc909u;
constexpr size_t kLanes = 8;
constexpr size_t kStripeBytes = kLanes * 8;

uint64_t add(uint64_t lane, uint64_t word) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide(lane ^ word) * kStep;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

// Every bit of the input reaches every bit of the result.
uint64_t finish(uint64_t value) {
  value ^= value >> 32;
  value *= kFinish;
  value ^= value >> 29;
  value *= kStep;
  return value ^ value >> 32;
}

}  // namespace

uint64_t digest(std::span<const std::byte> bytes, uint64_t seed) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie");
  uint64_t lanes[kLanes];
  for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = finish(seed + lane * kStep);
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  uint64_t words[kLanes];
  for (; size_t(end - at) >= kStripeBytes; at += kStripeBytes) {
    std::memcpy(words, at, kStripeBytes);
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = add(lanes[lane], words[lane]);
  }
  // The rest, filled up with zeros; the length tells it from real ones.
  if (at != end) {
    std::memset(words, 0, sizeof words);
    std::memcpy(words, at, size_t(end - at));
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = add(lanes[lane], words[lane]);
  }
  uint64_t all = finish(uint64_t(bytes.size()));
  for (const uint64_t lane : lanes) all = add(all, finish(lane));
  return finish(all);
}

}  // namespace cairn
