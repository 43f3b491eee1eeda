// A page's keys or values of one head as plain floats, in the same order as in the page. Where many
// queries read a page, it is widened once for all of them; the same place of the page `ahead` is
// asked for. A template, instantiated per instruction set by ops_<isa>.cpp.
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

// Values of N vectors of dims from `dim` on, in all slots.
template <class L, class Value, int32_t N>
void widen_dims(const cpu::KvHeadArgs& head, const std::byte* page, const std::byte* ahead,
                int32_t dim, int32_t count, float* tile) {
  ValueReader<L, Value, N> values(head, page, 0, dim);
  for (int32_t slot = 0; slot < cpu::kPageSlots; ++slot) {
    L value[N];
    ask_for(ahead + values.read(count, value));
    values.next();
    float* to = tile + slot * head.value_dim + dim;
    if constexpr (N == 1) {
      store_some(to, value[0], count);
    } else {
      repeat<N>([&](auto i) { store(to + i * L::kCount, value[i]); });
    }
  }
}

template <class L, class Value>
void widen_values(const cpu::KvHeadArgs& head, const std::byte* page, const std::byte* ahead,
                  float* tile) {
  constexpr int32_t kVectors = kScaleDims / L::kCount;
  int32_t dim = 0;
  for (; dim + kScaleDims <= head.value_dim; dim += kScaleDims) {
    widen_dims<L, Value, kVectors>(head, page, ahead, dim, L::kCount, tile);
  }
  for (; dim < head.value_dim; dim += L::kCount) {
    const int32_t left = head.value_dim - dim;
    widen_dims<L, Value, 1>(head, page, ahead, dim, left < L::kCount ? left : L::kCount, tile);
  }
}

// Values of all slots from the keys that they are the beginnings of: sixteen numbers at a time turn
// from [dim][slot] to [slot][dim].
template <class L, class Key>
void widen_keys_as_values(const cpu::KvHeadArgs& head, const std::byte* page,
                          const std::byte* ahead, float* tile) {
  constexpr int32_t kVectors = 2, kSlots = kVectors * L::kCount;
  for (int32_t slot = 0; slot < cpu::kPageSlots; slot += kSlots) {
    KeyReader<L, Key, kVectors> keys(head, page, slot);
    for (int32_t block = 0; block < head.value_dim; block += kScaleDims) {
      keys.begin(block);
      const int32_t left = head.value_dim - block;
      const int32_t count = left < kScaleDims ? left : kScaleDims;
      alignas(64) float wide[kScaleDims][kSlots];
      for (int32_t d = 0; d < count; ++d) {
        L key[kVectors];
        ask_for(ahead + keys.read(block + d, key));
        repeat<kVectors>([&](auto i) { store(&wide[d][i * L::kCount], key[i]); });
      }
      float* to = tile + slot * head.value_dim + block;
      for (int32_t i = 0; i < kSlots; i += 4, to += 4 * head.value_dim) {
        int32_t d = 0;
        for (; d + 4 <= count; d += 4) {
          const auto row = [&](int32_t j) { return reinterpret_cast<std::byte*>(wide[d + j]); };
          const std::byte* rows[4] = {row(0), row(1), row(2), row(3)};
          cpu::transpose_words32(rows, int64_t(sizeof(float)) * i,
                                 reinterpret_cast<uint8_t*>(to + d),
                                 int64_t(sizeof(float)) * head.value_dim);
        }
        for (; d < count; ++d) {
          for (int32_t j = 0; j < 4; ++j) to[j * head.value_dim + d] = wide[d][i + j];
        }
      }
    }
  }
}

using Widen = void (*)(const cpu::KvHeadArgs& head, const std::byte* page, const std::byte* ahead,
                       float* tile);

// By KvType.
template <class L>
constexpr Widen kWidenKeys[] = {widen_keys<L, F32Bits>, widen_keys<L, F16Bits>,
                                widen_keys<L, BF16Bits>, widen_keys<L, Q8Bits>,
                                widen_keys<L, Q4Bits>};
template <class L>
constexpr Widen kWidenValues[] = {widen_values<L, F32Bits>, widen_values<L, F16Bits>,
                                  widen_values<L, BF16Bits>, widen_values<L, Q8Bits>,
                                  widen_values<L, Q4Bits>};
template <class L>
constexpr Widen kWidenKeysAsValues[] = {
    widen_keys_as_values<L, F32Bits>, widen_keys_as_values<L, F16Bits>,
    widen_keys_as_values<L, BF16Bits>, widen_keys_as_values<L, Q8Bits>,
    widen_keys_as_values<L, Q4Bits>};

}  // namespace
}  // namespace cairn
