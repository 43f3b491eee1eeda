// CRC-32C (Castagnoli; RFC 3720, B.4): finds accidental damage in what a store reads. In a block of
// 64 KiB it detects every error of up to three bits and every burst of up to 32. Not for strangers
// who choose the bytes. The value is part of file formats. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cairn::store {

// Runs of bytes can be chained: the value of one is `before` of the next. Uses the machine's
// instruction where it has one.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);
// The same by tables, on every machine.
uint32_t crc32c_by_table(std::span<const std::byte> bytes, uint32_t before = 0);

inline constexpr size_t kCrcBlockBytes = 65536;

// One value for each 64 KiB of a stream whose parts come one after another.
class BlockChecksums {
 public:
  void add(std::span<const std::byte> bytes);
  // Of all that was added; the last block may be short.
  std::vector<uint32_t> finish();

 private:
  std::vector<uint32_t> finished_;
  uint32_t current_ = 0;
  size_t filled_ = 0;
};

}  // namespace cairn::store
