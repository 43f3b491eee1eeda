// The polynomial 0x1EDC6F41, bits reversed: by the SSE 4.2 instruction, eight bytes at a time, or
// by a table, byte by byte.
#include "store/crc32c.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace cairn::store {
namespace {

constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t kReversed = 0x82F63B78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? kReversed : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = make_table();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t by_instruction(std::span<const std::byte> bytes,
                                                          uint32_t before) {
  uint64_t value = ~before;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    value = _mm_crc32_u64(value, word);
  }
  uint32_t last = uint32_t(value);
  for (; left > 0; ++at, --left) last = _mm_crc32_u8(last, uint8_t(*at));
  return ~last;
}
#endif

}  // namespace

uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t value = ~before;
  for (const std::byte byte : bytes) value = value >> 8 ^ kTable[(value ^ uint8_t(byte)) & 255];
  return ~value;
}

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2")) return by_instruction(bytes, before);
#endif
  return crc32c_by_table(bytes, before);
}

void BlockChecksums::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kCrcBlockBytes - filled_);
    current_ = crc32c(bytes.first(count), current_);
    filled_ += count;
    bytes = bytes.subspan(count);
    if (filled_ < kCrcBlockBytes) continue;
    finished_.push_back(current_);
    current_ = 0;
    filled_ = 0;
  }
}

std::vector<uint32_t> BlockChecksums::finish() {
  if (filled_ > 0) finished_.push_back(current_);
  current_ = 0;
  filled_ = 0;
  return std::move(finished_);
}

}  // namespace cairn::store
