// Expands packed weights to the signed bytes that AMX tiles multiply.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "backends/cpu/product/matrix_vectors_avx512.h"
#include "backends/cpu/product/product_quantized.h"

namespace cairn::amx {
namespace {

// AVX-512's vectors, but signed planes stay as they are.
struct TileVectors : avx512::MatrixVectors {
  static constexpr bool kSignedBytes = true;
  static constexpr int kChunkRows = cpu::kTileChunkRows, kPanels = cpu::kTileGroups;
  static Bytes load_table(const int8_t* table) {
    return flip_sign(avx512::MatrixVectors::load_table(table));
  }
};

// Bytes of a plane as the signed weights that they stand for.
template <class F>
__m512i as_signed(__m512i bytes, __m512i bias) {
  return cpu::has_start<TileVectors, F::kPlane>() ? _mm512_sub_epi8(bytes, bias) : bytes;
}

}  // namespace
}  // namespace cairn::amx
