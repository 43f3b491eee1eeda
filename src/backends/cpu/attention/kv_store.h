// Kernel templates that write one row's keys and values of one head into a page, instantiated per
// instruction set by ops_<isa>.cpp. Same bits as backends/reference/attention.cpp.
#pragma once

#include "backends/cpu/elementwise.h"
#include "base/small_blocks.h"

namespace cairn {
namespace {

// Encodes up to L::kCount floats into `bits`, which has room for all lanes.
template <class L, class Bits>
[[gnu::always_inline]] inline void encode_some(const float* x, int32_t count, Bits* bits) {
  store(bits, load_some<L>(x, count));
}

// Keys lie [dim][slot]: neighbours in a row are a page's width apart.
template <class L, class Key>
void store_keys(const cpu::StoreKvArgs& args) {
  const auto page = static_cast<int32_t>(args.head.pages[args.position / cpu::kPageSlots]);
  Key* keys = reinterpret_cast<Key*>(args.head.keys + size_t(page) * args.head.keys_page_bytes) +
              args.position % cpu::kPageSlots;
  for_lanes<L>(args.head.key_dim, [&](int32_t d, int32_t count) {
    Key encoded[L::kCount];
    encode_some<L>(args.k + d, count, encoded);
    for (int32_t i = 0; i < count; ++i) keys[(d + i) * cpu::kPageSlots] = encoded[i];
  });
}

template <class L, class Value>
void store_values(const cpu::StoreKvArgs& args) {
  const auto page = static_cast<int32_t>(args.head.pages[args.position / cpu::kPageSlots]);
  Value* values =
      reinterpret_cast<Value*>(args.head.values + size_t(page) * args.head.values_page_bytes) +
      size_t(args.position % cpu::kPageSlots) * size_t(args.head.value_dim);
  for_lanes<L>(args.head.value_dim, [&](int32_t d, int32_t count) {
    if (count == L::kCount) {
      encode_some<L>(args.v + d, count, values + d);
      return;
    }
    // The page may end right after the last value of its last slot.
    Value encoded[L::kCount];
    encode_some<L>(args.v + d, count, encoded);
    for (int32_t i = 0; i < count; ++i) values[d + i] = encoded[i];
  });
}

// Rounds to f16, and what that is in f32.
template <class L>
[[gnu::always_inline]] inline float round_to_half(float x, F16Bits* half) {
  F16Bits halves[L::kCount];
  float floats[L::kCount];
  store(halves, L(x));
  *half = halves[0];
  store(floats, L::broadcast(half));
  return floats[0];
}

// The head's part of the position's page.
[[gnu::always_inline]] inline uint8_t* codes_at(std::byte* first_page, size_t page_bytes,
                                                const cpu::StoreKvArgs& args) {
  const auto page = static_cast<int32_t>(args.head.pages[args.position / cpu::kPageSlots]);
  return reinterpret_cast<uint8_t*>(first_page + size_t(page) * page_bytes);
}

// Keys in blocks with scales: codes [dim][slot], then scales [block][slot].
template <class L, class Block>
void store_coded_keys(const cpu::StoreKvArgs& args) {
  constexpr int32_t kStep = Block::kDimsPerByte;
  const int32_t dim = args.head.key_dim, slot = args.position % cpu::kPageSlots;
  uint8_t* keys = codes_at(args.head.keys, args.head.keys_page_bytes, args);
  uint8_t* after = keys + (dim + kStep - 1) / kStep * cpu::kPageSlots;
  F16Bits* scales = reinterpret_cast<F16Bits*>(after) + slot;
  keys += slot;
  for (int32_t first = 0; first < dim; first += kSmallBlock) {
    const int32_t count = dim - first < kSmallBlock ? dim - first : kSmallBlock;
    uint8_t codes[kSmallBlock] = {};
    const float scale = round_to_half<L>(Block::scale(args.k + first, count), scales);
    Block::encode(args.k + first, count, scale, codes);
    for (int32_t i = 0; i < count; i += kStep) {
      keys[(first + i) / kStep * cpu::kPageSlots] = Block::pack(codes + i);
    }
    scales += cpu::kPageSlots;
  }
}

// Values in blocks with scales: codes [slot][dim], then scales [slot][block].
template <class L, class Block>
void store_coded_values(const cpu::StoreKvArgs& args) {
  constexpr int32_t kStep = Block::kDimsPerByte;
  const int32_t dim = args.head.value_dim, slot = args.position % cpu::kPageSlots;
  const int32_t row_bytes = (dim + kStep - 1) / kStep;
  const int32_t block_count = (dim + kSmallBlock - 1) / kSmallBlock;
  uint8_t* values = codes_at(args.head.values, args.head.values_page_bytes, args);
  F16Bits* scales =
      reinterpret_cast<F16Bits*>(values + row_bytes * cpu::kPageSlots) + slot * block_count;
  values += slot * row_bytes;
  for (int32_t first = 0; first < dim; first += kSmallBlock) {
    const int32_t count = dim - first < kSmallBlock ? dim - first : kSmallBlock;
    uint8_t codes[kSmallBlock] = {};
    const float scale = round_to_half<L>(Block::scale(args.v + first, count), scales++);
    Block::encode(args.v + first, count, scale, codes);
    for (int32_t i = 0; i < count; i += kStep) {
      values[(first + i) / kStep] = Block::pack(codes + i);
    }
  }
}

}  // namespace
}  // namespace cairn
