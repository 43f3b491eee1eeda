// Bytes become blocks; base/sha256_block.h takes these.
#include "base/sha256.h"

#include <algorithm>
#include <cstring>

#include "base/sha256_block.h"

namespace cairn {

void Sha256::take_block(const uint8_t* block) {
  take_sha256_block(state_, block);
}

Sha256& Sha256::add(std::span<const std::byte> bytes) {
  byte_count_ += bytes.size();
  while (!bytes.empty()) {
    if (filled_ == 0 && bytes.size() >= block_.size()) {
      take_block(reinterpret_cast<const uint8_t*>(bytes.data()));
      bytes = bytes.subspan(block_.size());
      continue;
    }
    const size_t count = std::min(bytes.size(), block_.size() - filled_);
    std::memcpy(block_.data() + filled_, bytes.data(), count);
    filled_ += count;
    bytes = bytes.subspan(count);
    if (filled_ < block_.size()) continue;
    take_block(block_.data());
    filled_ = 0;
  }
  return *this;
}

Sha256& Sha256::add(uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(number >> (8 * i));
  return add(bytes);
}

// A bit of one, zeros up to eight bytes before the end of a block, and the count of bits.
Sha256Digest Sha256::finish() {
  const uint64_t bit_count = byte_count_ * 8;
  const std::byte one{0x80};
  add(std::span(&one, 1));
  const std::byte zero{0};
  while (filled_ != block_.size() - 8) add(std::span(&zero, 1));
  std::array<std::byte, 8> count;
  for (size_t i = 0; i < count.size(); ++i) count[i] = std::byte(bit_count >> (56 - 8 * i));
  add(count);
  Sha256Digest digest;
  for (size_t i = 0; i < digest.size(); ++i) {
    digest[i] = uint8_t(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

std::string hex_of(const Sha256Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace cairn
