// Block formats of quantized weights. A format is one file in this folder; all of them stand in a
// generated table. A row is a run of whole blocks: `block_weights` consecutive weights in
// `block_bytes` bytes, little-endian, at any alignment. Two views with the same meaning:
//   decode    weights as f32: what the file says they are (bit for bit the usual decoders');
//   integers  small integers with scales, which exact-1 multiplies (docs/numerics.md): in f32,
//             rounded after the product and after the sum, scale * q + offset equals decode.
// Thread-safe: everything here is constant data and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace cairn::quant {

// 32 consecutive weights as integers. Halves of 16 may have scales of their own; where the format
// has one scale for all 32, both entries of the pair are equal and `halves` below is false.
struct Unit {
  int8_t q[32];     // Only a Q8_0 file may hold -128; the others stay within -127 … 127.
  float scale[2];   // Rounded once to f32 from its exact product (K types: d * sc).
  float offset[2];  // 0 unless `offsets` below; Q4_1, Q5_1: m; Q2_K, Q4_K, Q5_K: -(dmin * m).
};

struct Type {
  std::string_view name;  // As GGUF tools print it: "Q4_K".
  uint32_t gguf_id;       // The type number in a GGUF file.
  int32_t block_weights;  // Weights in a block: 1, 32, 64 or 256.
  int32_t block_bytes;    // Bytes of a block.
  bool halves;            // Scales belong to 16 weights, not 32: two integer sums a unit.
  bool offsets;           // Weights have an additive part.
  void (*decode)(const std::byte* block, float* weights);  // One block.
  void (*integers)(const std::byte* block, Unit* units);   // One block; null for F32/F16/BF16.
  // Encodes one block; null for types without an encoder. `importance` may be null, else it has one
  // factor a weight by which squared errors count; factors that are negative or not finite are 0,
  // and factors that are all 0 are none. Weights that are not finite count as 0 and weights beyond
  // the format's reach are cut, but for F32, F16 and BF16, which hold infinities and NaN. The same
  // weights give the same bytes on every machine.
  void (*encode)(const float* weights, const float* importance, std::byte* block);
  // The worst RMS error of encode relative to the RMS of gaussian weights; a test reads it. 0 where
  // nothing is lost or there is no encoder.
  float rms_error_max;

  bool is_float() const { return integers == nullptr; }
};

std::span<const Type* const> all();
const Type* find(uint32_t gguf_id);       // Null if unknown.
const Type* find(std::string_view name);  // Null if unknown; upper case as in `name`.

// Bytes of a row. REQUIRES: weight_count is a multiple of the type's block_weights.
size_t row_bytes(const Type& type, int64_t weight_count);

// Decodes a run of whole blocks. REQUIRES: the sizes agree.
void decode_row(const Type& type, std::span<const std::byte> row, std::span<float> weights);
// Encodes a run of whole blocks. `importance` is empty or has one factor a weight.
// REQUIRES: the type has an encoder; the sizes agree.
void encode_row(const Type& type, std::span<const float> weights, std::span<std::byte> row,
                std::span<const float> importance = {});

}  // namespace cairn::quant
