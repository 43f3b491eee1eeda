// The polynomial 0x1EDC6F41, bits reversed: by the SSE 4.2 instruction, eight bytes at a time and
// in three streams at once, or by a table, byte by byte.
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
// The instruction takes three cycles, and a processor begins one in each: three streams of this
// many bytes are computed side by side.
constexpr size_t kStreamBytes = 1024;
using SkipTable = std::array<std::array<uint32_t, 256>, 4>;

// What a value becomes when kStreamBytes zeros follow, by each of its bytes: the step over a zero
// is linear, so that a value's step is the sum (exclusive or) of its bits' steps.
constexpr SkipTable make_skip_table() {
  std::array<uint32_t, 32> of_bit{};
  for (size_t bit = 0; bit < of_bit.size(); ++bit) {
    uint32_t value = uint32_t{1} << bit;
    for (size_t i = 0; i < kStreamBytes; ++i) value = value >> 8 ^ kTable[value & 255];
    of_bit[bit] = value;
  }
  SkipTable table{};
  for (size_t place = 0; place < table.size(); ++place) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if (byte >> bit & 1) table[place][byte] ^= of_bit[8 * place + bit];
      }
    }
  }
  return table;
}

constexpr SkipTable kSkipTable = make_skip_table();

uint64_t skip_stream(uint64_t value) {
  return kSkipTable[0][value & 255] ^ kSkipTable[1][value >> 8 & 255] ^
         kSkipTable[2][value >> 16 & 255] ^ kSkipTable[3][value >> 24 & 255];
}

uint64_t word_at(const std::byte* at) {
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t by_instruction(std::span<const std::byte> bytes,
                                                          uint32_t before) {
  uint64_t value = ~before;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kStreamBytes; at += 3 * kStreamBytes, left -= 3 * kStreamBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kStreamBytes; i += 8) {
      value = _mm_crc32_u64(value, word_at(at + i));
      second = _mm_crc32_u64(second, word_at(at + kStreamBytes + i));
      third = _mm_crc32_u64(third, word_at(at + 2 * kStreamBytes + i));
    }
    value = skip_stream(skip_stream(value) ^ second) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) value = _mm_crc32_u64(value, word_at(at));
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
