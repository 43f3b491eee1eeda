// Text of the kernels that write one row's keys and values of one head into a page; compiled once
// for each instruction set by ops_<isa>.cpp. Same bits as backends/reference/attention.cpp.
#pragma once

#include "backends/cpu/elementwise.h"

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
    // The page may end behind the last value of its last slot.
    Value encoded[L::kCount];
    encode_some<L>(args.v + d, count, encoded);
    for (int32_t i = 0; i < count; ++i) values[d + i] = encoded[i];
  });
}

}  // namespace
}  // namespace cairn
