// How the backends of this machine's processors lay out a page of keys and values: the sizes of one
// head's keys, or values, for every form that they are stored in. A page holds the heads one after
// another; a head in q8_0 or q4_0 has its codes first, then its scales.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device/page_format.h"

namespace cairn::host {

// Keys lie [dim][slot], so that scores of neighbouring positions are neighbours, values
// [slot][dim]. The q types: blocks of 32 dims of one token with an f16 scale; scales lie
// [block][slot] for keys, [slot][block] for values; q4_0 has two dims of one token in a byte. A
// last block may be shorter.
inline constexpr int32_t kKvBlock = 32;  // Dims that share a scale.

constexpr bool has_scales(KvType type) {
  return type == KvType::q8_0 || type == KvType::q4_0;
}

// Bytes of the codes of one token's dims.
constexpr size_t kv_row_bytes(KvType type, int32_t dim) {
  switch (type) {
    case KvType::f32:
      return size_t(dim) * 4;
    case KvType::f16:
    case KvType::bf16:
      return size_t(dim) * 2;
    case KvType::q8_0:
      return size_t(dim);
    case KvType::q4_0:
      return (size_t(dim) + 1) / 2;
  }
  return 0;
}

constexpr int32_t kv_block_count(int32_t dim) {
  return (dim + kKvBlock - 1) / kKvBlock;
}

constexpr size_t kv_codes_bytes(KvType type, int32_t dim) {
  return kv_row_bytes(type, dim) * kPageTokens;
}

constexpr size_t kv_head_bytes(KvType type, int32_t dim) {
  const size_t scales = has_scales(type) ? size_t(kv_block_count(dim)) * kPageTokens * 2 : 0;
  return kv_codes_bytes(type, dim) + scales;
}

// Cache lines, and the pages of the system.
inline constexpr PageFormat kPageFormat{
    .head_bytes = &kv_head_bytes, .alignment = 64, .unit_bytes = 4096};

}  // namespace cairn::host
