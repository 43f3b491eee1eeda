// The compression function, block by block. Its constants are the first 32 bits of the fractional
// parts of the cube roots of the first 64 primes; those of the state, of the square roots of the
// first eight.
#include "base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace cairn {
namespace {

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const uint8_t* bytes) {
  return uint32_t(bytes[0]) << 24 | uint32_t(bytes[1]) << 16 | uint32_t(bytes[2]) << 8 | bytes[3];
}

}  // namespace

void Sha256::take_block(const uint8_t* block) {
  uint32_t w[64];
  for (size_t i = 0; i < 16; ++i) w[i] = big_endian(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    const uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3;
    const uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t chosen = (e & f) ^ (~e & g);
    const uint32_t t1 = h + s1 + chosen + kRounds[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < added.size(); ++i) state_[i] += added[i];
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
