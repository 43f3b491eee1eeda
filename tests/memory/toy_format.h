// A page format that no backend has, for tests that compute nothing in pages: memory asks for sizes
// and does not know them.
#pragma once

#include "device/page_format.h"

namespace cairn::memory::toy {

// As many bytes as the numbers have; in q8_0 two more for each token.
constexpr size_t toy_head_bytes(KvType type, int32_t dim) {
  const size_t number_bytes = type == KvType::f32 ? 4 : type == KvType::q8_0 ? 1 : 2;
  const size_t scale_bytes = type == KvType::q8_0 ? 2 : 0;
  return (number_bytes * size_t(dim) + scale_bytes) * kPageTokens;
}

inline constexpr PageFormat kToyFormat{
    .head_bytes = &toy_head_bytes, .alignment = 64, .unit_bytes = 4096};

}  // namespace cairn::memory::toy
