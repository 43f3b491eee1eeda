// The stored numbers of the most used block formats, read straight from their bytes in the order of
// the weights: what Type::integers gives plus the form's bias, without a detour over scales. A test
// compares the two for every format.
#include <bit>
#include <cstring>

#include "backends/cpu/pack/pack.h"

namespace cairn::cpu {
namespace {

const uint8_t* bytes_at(const std::byte* block, int offset) {
  return reinterpret_cast<const uint8_t*>(block) + offset;
}

// Codes are written to local arrays first: the compiler then knows that nothing overlaps.
template <int kCount>
void nibble_halves(const uint8_t* nibbles, uint8_t* low, uint8_t* high) {
  uint8_t bytes[kCount];
  std::memcpy(bytes, nibbles, kCount);
  for (int i = 0; i < kCount; ++i) {
    low[i] = bytes[i] & 15;
    high[i] = bytes[i] >> 4;
  }
}

// f16 scale, u8 nibbles[16]: the low ones come first. Also IQ4_NL.
void q4_0_codes(const std::byte* block, uint8_t* codes) {
  nibble_halves<16>(bytes_at(block, 2), codes, codes + 16);
}

// The same after a scale and a minimum.
void q4_1_codes(const std::byte* block, uint8_t* codes) {
  nibble_halves<16>(bytes_at(block, 4), codes, codes + 16);
}

// u8 high[4], nibbles[16]: bit i of `high` is the fifth bit of weight i.
void fifth_bit_codes(const uint8_t* at, uint8_t* codes) {
  uint8_t local[32];
  nibble_halves<16>(at + 4, local, local + 16);
  for (int byte = 0; byte < 4; ++byte) {
    // Each bit of the byte to a byte of its own: copies of it, masked one bit each, not zero.
    const uint64_t copies = at[byte] * 0x0101010101010101u & 0x8040201008040201u;
    const uint64_t ones = ((copies + 0x7f7f7f7f7f7f7f7fu) | copies) >> 7 & 0x0101010101010101u;
    uint64_t low;
    std::memcpy(&low, local + 8 * byte, 8);
    low |= ones << 4;
    std::memcpy(local + 8 * byte, &low, 8);
  }
  std::memcpy(codes, local, 32);
}

void q5_0_codes(const std::byte* block, uint8_t* codes) {
  fifth_bit_codes(bytes_at(block, 2), codes);
}

void q5_1_codes(const std::byte* block, uint8_t* codes) {
  fifth_bit_codes(bytes_at(block, 4), codes);
}

void q8_0_codes(const std::byte* block, uint8_t* codes) {
  std::memcpy(codes, block + 2, 32);
}

// 16 bytes of scales, u8 nibbles[128]: 32 bytes hold the low and the high ones of 32 weights each.
void q4_k_codes(const std::byte* block, uint8_t* codes) {
  uint8_t local[256];
  for (int chunk = 0; chunk < 4; ++chunk) {
    uint8_t* to = local + 64 * chunk;
    nibble_halves<32>(bytes_at(block, 16 + 32 * chunk), to, to + 32);
  }
  std::memcpy(codes, local, sizeof local);
}

// 16 bytes of scales, u8 high[32], nibbles[128]: bit u of high[i] belongs to weight i of unit u.
void q5_k_codes(const std::byte* block, uint8_t* codes) {
  uint8_t high[32], local[256];
  std::memcpy(high, bytes_at(block, 16), sizeof high);
  for (int chunk = 0; chunk < 4; ++chunk) {
    uint8_t* to = local + 64 * chunk;
    nibble_halves<32>(bytes_at(block, 48 + 32 * chunk), to, to + 32);
    for (int i = 0; i < 32; ++i) to[i] |= uint8_t((high[i] >> (2 * chunk) & 1) << 4);
    for (int i = 0; i < 32; ++i) to[32 + i] |= uint8_t((high[i] >> (2 * chunk + 1) & 1) << 4);
  }
  std::memcpy(codes, local, sizeof local);
}

// u8 nibbles[128], high[64]; in each half, 32 weights at a time: low nibbles of two runs of 32
// bytes, then their high ones; pairs of upper bits from 32 bytes.
void q6_k_codes(const std::byte* block, uint8_t* codes) {
  uint8_t local[256];
  for (int half = 0; half < 2; ++half) {
    uint8_t high[32];
    std::memcpy(high, bytes_at(block, 128 + 32 * half), sizeof high);
    uint8_t* to = local + 128 * half;
    nibble_halves<64>(bytes_at(block, 64 * half), to, to + 64);
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int i = 0; i < 32; ++i) {
        to[32 * quarter + i] |= uint8_t((high[i] >> (2 * quarter) & 3) << 4);
      }
    }
  }
  std::memcpy(codes, local, sizeof local);
}

// 8 bytes of scales, u8 nibbles[128]: 16 bytes a unit, the low ones first.
void iq4_xs_codes(const std::byte* block, uint8_t* codes) {
  for (int unit = 0; unit < 8; ++unit) {
    nibble_halves<16>(bytes_at(block, 8 + 16 * unit), codes + 32 * unit, codes + 32 * unit + 16);
  }
}

// Both zeros of E2M1 are one level: the first that has the value.
template <int kCount>
void merge_zeros(uint8_t* codes) {
  for (int i = 0; i < kCount; ++i) codes[i] = codes[i] == 8 ? uint8_t{0} : codes[i];
}

// u8 exponent, nibbles[16]: the low ones come first.
void mxfp4_codes(const std::byte* block, uint8_t* codes) {
  uint8_t local[32];
  nibble_halves<16>(bytes_at(block, 1), local, local + 16);
  merge_zeros<32>(local);
  std::memcpy(codes, local, sizeof local);
}

// 2^(exponent - 128): 0 and 1 set a bit of the fraction of a subnormal number.
void mxfp4_scale(const std::byte* block, float* scale) {
  const uint32_t exponent = *bytes_at(block, 0);
  *scale = std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
}

struct NamedCodes {
  std::string_view name;
  CodeReader reader;
};

constexpr NamedCodes kCodes[] = {
    {"Q4_0", {q4_0_codes}},
    {"Q4_1", {q4_1_codes}},
    {"Q5_0", {q5_0_codes}},
    {"Q5_1", {q5_1_codes}},
    {"Q8_0", {q8_0_codes}},
    {"IQ4_NL", {q4_0_codes}},
    {"Q4_K", {q4_k_codes}},
    {"Q5_K", {q5_k_codes}},
    {"Q6_K", {q6_k_codes}},
    {"IQ4_XS", {iq4_xs_codes}},
    {"MXFP4", {mxfp4_codes, mxfp4_scale}},
};

}  // namespace

CodeReader code_reader(const quant::Type& type) {
  for (const NamedCodes& named : kCodes) {
    if (named.name == type.name) return named.reader;
  }
  return {};
}

}  // namespace cairn::cpu
