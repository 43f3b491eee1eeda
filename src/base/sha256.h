// SHA-256 (FIPS 180-4): a digest that nobody can construct two inputs for, where strangers choose
// what is digested. Slower than base/digest.h, which is for accidents. Thread-safe: one object, one
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cairn {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256& add(std::span<const std::byte> bytes);
  Sha256& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  Sha256& add(uint64_t number);  // Its eight bytes, lowest first.
  // Of all that was added. Nothing may be added after it.
  Sha256Digest finish();

 private:
  void take_block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};  // The bytes of a block that is not full yet.
  size_t filled_ = 0;
  uint64_t byte_count_ = 0;
};

std::string hex_of(const Sha256Digest& digest);

}  // namespace cairn
