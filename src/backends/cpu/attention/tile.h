// A page's keys of one head, or some dims of its values, as plain floats, in the same order as in
// the page. Where many queries read a page, it is widened once for all of them; the same place of
// the page `ahead` is asked for. A template, instantiated per instruction set by ops_<isa>.cpp.
#pragma once

#include "backends/cpu/attention/walks.h"
#include "backends/cpu/lanes/transpose_rows.h"

namespace cairn {
namespace {

template <class L, class Key>
void widen_keys(const cpu::KvHeadArgs& head, const std::byte* page, const std::byte* ahead,
                float* tile) {
  constexpr int32_t kVectors = 2;
  for (int32_t slot = 0; slot < cpu::kPageSlots; slot += kVectors * L::kCount) {
    KeyReader<L, Key, kVectors> keys(head, page, slot);
    for (int32_t block = 0; block < head.key_dim; block += kScaleDims) {
      keys.begin(block);
      const int32_t left = head.key_dim - block;
      const int32_t end = block + (left < kScaleDims ? left : kScaleDims);
      for (int32_t d = block; d < end; ++d) {
        L key[kVectors];
        ask_for(ahead + keys.read(d, key));
        repeat<kVectors>(
            [&](auto i) { store(tile + d * cpu::kPageSlots + slot + i * L::kCount, key[i]); });
      }
    }
  }
}

static_assert(kScaleDims == cpu::kValueTileDims);

// Values of all slots: some dims from `dim` on, a multiple of kScaleDims, become [slot][count].
struct TileDims {
  int32_t dim, count;  // 1..kScaleDims.
};

// N vectors of them, from `first` on.
template <class L, class Value, int32_t N>
void widen_vectors(const cpu::KvHeadArgs& head, const std::byte* page, const std::byte* ahead,
                   TileDims dims, int32_t first, float* tile) {
  const int32_t left = dims.count - first, count = left < L::kCount ? left : L::kCount;
  ValueReader<L, Value, N> values(head, page, 0, dims.dim + first);
  for (int32_t slot = 0; slot < cpu::kPageSlots; ++slot) {
    L value[N];
    ask_for(ahead + values.read(count, value));
    values.next();
    float* to = tile + slot * dims.count + first;
    if constexpr (N == 1) {
      store_some(to, value[0], count);
    } else {
      repeat<N>([&](auto i) { store(to + i * L::kCount, value[i]); });
    }
  }
}

template <class L, class Value>
void widen_values(const cpu::KvHeadArgs& head, const std::byte* page, const std::byte* ahead,
                  TileDims dims, float* tile) {
  if (dims.count == kScaleDims) {
    return widen_vectors<L, Value, kScaleDims / L::kCount>(head, page, ahead, dims, 0, tile);
  }
  for (int32_t first = 0; first < dims.count; first += L::kCount) {
    widen_vectors<L, Value, 1>(head, page, ahead, dims, first, tile);
  }
}

// Values from the keys that they are the beginnings of: sixteen numbers at a time turn from
// [dim][slot] to [slot][dim].
template <class L, class Key>
void widen_keys_as_values(const cpu::KvHeadArgs& head, const std::byte* page,
                          const std::byte* ahead, TileDims dims, float* tile) {
  constexpr int32_t kVectors = 2, kSlots = kVectors * L::kCount;
  for (int32_t slot = 0; slot < cpu::kPageSlots; slot += kSlots) {
    KeyReader<L, Key, kVectors> keys(head, page, slot);
    keys.begin(dims.dim);
    alignas(64) float wide[kScaleDims][kSlots];
    for (int32_t d = 0; d < dims.count; ++d) {
      L key[kVectors];
      ask_for(ahead + keys.read(dims.dim + d, key));
      repeat<kVectors>([&](auto i) { store(&wide[d][i * L::kCount], key[i]); });
    }
    float* to = tile + slot * dims.count;
    for (int32_t i = 0; i < kSlots; i += 4, to += 4 * dims.count) {
      int32_t d = 0;
      for (; d + 4 <= dims.count; d += 4) {
        const auto row = [&](int32_t j) { return reinterpret_cast<std::byte*>(wide[d + j]); };
        const std::byte* rows[4] = {row(0), row(1), row(2), row(3)};
        cpu::transpose_words32(rows, int64_t(sizeof(float)) * i, reinterpret_cast<uint8_t*>(to + d),
                               int64_t(sizeof(float)) * dims.count);
      }
      for (; d < dims.count; ++d) {
        for (int32_t j = 0; j < 4; ++j) to[j * dims.count + d] = wide[d][i + j];
      }
    }
  }
}

using WidenKeys = void (*)(const cpu::KvHeadArgs& head, const std::byte* page,
                           const std::byte* ahead, float* tile);
using WidenValues = void (*)(const cpu::KvHeadArgs& head, const std::byte* page,
                             const std::byte* ahead, TileDims dims, float* tile);

// By KvType.
template <class L>
constexpr WidenKeys kWidenKeys[] = {widen_keys<L, F32Bits>, widen_keys<L, F16Bits>,
                                    widen_keys<L, BF16Bits>, widen_keys<L, Q8Bits>,
                                    widen_keys<L, Q4Bits>};
template <class L>
constexpr WidenValues kWidenValues[] = {widen_values<L, F32Bits>, widen_values<L, F16Bits>,
                                        widen_values<L, BF16Bits>, widen_values<L, Q8Bits>,
                                        widen_values<L, Q4Bits>};
template <class L>
constexpr WidenValues kWidenKeysAsValues[] = {
    widen_keys_as_values<L, F32Bits>, widen_keys_as_values<L, F16Bits>,
    widen_keys_as_values<L, BF16Bits>, widen_keys_as_values<L, Q8Bits>,
    widen_keys_as_values<L, Q4Bits>};

}  // namespace
}  // namespace cairn
