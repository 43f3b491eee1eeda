// The packer: 16 rows at a time, through the formats' own integers, so that what is packed is by
// construction what the reference multiplies. A block of every row is decoded side by side; then
// the bytes are transposed, and the rest is done on whole vectors of the packed form.
#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/lanes/transpose_rows.h"
#include "backends/cpu/pack/pack.h"
#include "base/check.h"

namespace cairn::cpu {
namespace {

constexpr int kVectorBytes = 64;    // Packed.h: sixteen rows times four columns.
constexpr int kBlockWeights = 256;  // Of the longest blocks.
using Vector = uint8_t[kVectorBytes];

// The stored numbers of a unit's 32 weights.
class Coder {
 public:
  explicit Coder(const PackedForm& form) : form_(form) {
    std::fill(std::begin(codes_), std::end(codes_), uint8_t{255});
    for (int code = 15; code >= 0; --code) codes_[uint8_t(form.table[code])] = uint8_t(code);
  }

  void encode(const int8_t* q, uint8_t* codes) const {
    if (form_.plane == Plane::bytes) {
      std::memcpy(codes, q, 32);
      return;
    }
    // Two plain loops over local arrays: the first one becomes vectors.
    uint8_t local[32];
    if (form_.plane == Plane::table) {
      for (int i = 0; i < 32; ++i) local[i] = codes_[uint8_t(q[i])];
    } else {
      const uint8_t bias = uint8_t(form_.bias);
      for (int i = 0; i < 32; ++i) local[i] = uint8_t(uint8_t(q[i]) + bias);
    }
    uint8_t all_bits = 0;
    for (const uint8_t code : local) all_bits |= code;
    std::memcpy(codes, local, 32);
    const int bits = form_.plane == Plane::bits6 ? 6 : form_.plane == Plane::bits5 ? 5 : 4;
    CHECK(all_bits >> bits == 0);  // A rule of pack_rules.cpp is wrong.
  }

 private:
  const PackedForm& form_;
  uint8_t codes_[256];
};

// Vectors 2i and 2i + 1 as one of nibbles.
void put_nibbles(const Vector* vectors, uint8_t* out) {
  for (int i = 0; i < 4; ++i) {
    for (int byte = 0; byte < kVectorBytes; ++byte) {
      out[64 * i + byte] =
          uint8_t((vectors[2 * i][byte] & 15) | (vectors[2 * i + 1][byte] & 15) << 4);
    }
  }
}

// The bits above the lowest four of kCount vectors, kBits each, in one.
template <int kCount, int kBits>
void put_high_bits(const Vector* vectors, uint8_t* out) {
  for (int byte = 0; byte < kVectorBytes; ++byte) {
    unsigned bits = 0;
    for (int i = 0; i < kCount; ++i) bits |= unsigned(vectors[i][byte] >> 4) << (kBits * i);
    out[byte] = uint8_t(bits);
  }
}

// All rows' 32 numbers, which begin `first` bytes on, into a unit's plane.
void put_plane(Plane plane, const std::byte* const* codes, int first, uint8_t* unit) {
  alignas(64) Vector turned[8];
  Vector* vectors = plane == Plane::bytes ? reinterpret_cast<Vector*>(unit) : turned;
  for (int row = 0; row < kGroupRows; row += 4) {
    for (int vector = 0; vector < 8; vector += 4) {
      transpose_words32(codes + row, first + 4 * vector, vectors[vector] + 4 * row, kVectorBytes);
    }
  }
  if (plane == Plane::bytes) return;
  put_nibbles(vectors, unit);
  if (plane == Plane::bits5) put_high_bits<8, 1>(vectors, unit + 256);
  if (plane == Plane::bits6) {
    put_high_bits<4, 2>(vectors, unit + 256);
    put_high_bits<4, 2>(vectors + 4, unit + 320);
  }
}

// A row's numbers of one unit, as f16 or f32.
void put_scales(const PackedForm& form, const quant::Unit& unit, int row, uint8_t* at) {
  int part = 0;
  const auto put = [&](float value) {
    const int index = part++ * kGroupRows + row;
    if (form.scales == Scales::half) {
      const Half half = to_half(value);
      std::memcpy(at + 2 * index, &half, 2);
    } else {
      std::memcpy(at + 4 * index, &value, 4);
    }
  };
  for (int half = 0; half < (form.halves ? 2 : 1); ++half) {
    put(unit.scale[half]);
    if (form.offsets) put(unit.offset[half]);
  }
}

void put_super_scales(const PackedForm& form, const SuperScales& scales, int row, uint8_t* at) {
  std::memcpy(at + 2 * row, &scales.d, 2);
  if (form.offsets) {
    const Half negative = Half(uint16_t(scales.dmin) ^ 0x8000u);
    std::memcpy(at + 2 * (kGroupRows + row), &negative, 2);
  }
  uint8_t* small = at + (form.offsets ? 2 : 1) * kGroupRows * 2 + row;
  const int count = kSuperUnits * (form.halves ? 2 : 1);
  for (int index = 0; index < count; ++index) {
    *small = uint8_t(scales.scales[index]);
    small += kGroupRows;
    if (!form.offsets) continue;
    *small = uint8_t(scales.minima[index]);
    small += kGroupRows;
  }
}

// Packs the blocks of a group that begin at the same column, in all of its rows.
class BlockPacker {
 public:
  BlockPacker(const Weight& weight, const PackedMatrix& shape)
      : type_(*weight.type),
        form_(shape.form),
        rule_(format_rule(*weight.type)),
        coder_(rule_.form),
        reader_(code_reader(*weight.type)),
        scales_bytes_(shape.scales_bytes),
        stride_(super_bytes(form_.scales, form_.halves, form_.offsets) /
                (form_.scales == Scales::super ? 1 : kSuperUnits)) {
    std::memset(codes_, 0, sizeof codes_);
    for (int row = 0; row < kGroupRows; ++row) {
      rows_[row] = reinterpret_cast<const std::byte*>(codes_[row]);
    }
  }

  // A row's block, whose first unit is `unit`: its scales, and its numbers for put_planes().
  void take(const std::byte* block, int row, int32_t unit, uint8_t* out) {
    if (form_.scales == Scales::super) {
      put_super_scales(form_, rule_.super_scales(block), row, out + unit / kSuperUnits * stride_);
    }
    if (reader_.codes != nullptr) {
      reader_.codes(block, codes_[row]);
      if (reader_.scale != nullptr) {
        quant::Unit& only = units_[0];
        reader_.scale(block, only.scale);
        put_scales(form_, only, row, out + unit * stride_);
      } else if (form_.scales == Scales::half)
        put_leading_scales(block, row, out + unit * stride_);
      return;
    }
    type_.integers(block, units_.data());
    for (int32_t index = 0; index < unit_count(); ++index) {
      const quant::Unit& from = units_[size_t(index)];
      if (form_.scales != Scales::super) {
        put_scales(form_, from, row, out + (unit + index) * stride_);
      }
      coder_.encode(from.q, codes_[row] + 32 * index);
    }
  }

  void put_planes(int32_t unit, uint8_t* out) const {
    for (int32_t index = 0; index < unit_count(); ++index) {
      put_plane(form_.plane, rows_, 32 * index,
                out + scales_bytes_ + int64_t(unit + index) * plane_bytes(form_.plane));
    }
  }

  int32_t unit_count() const { return type_.block_weights / 32; }

 private:
  // The f16 at the block's beginning: its scale and, where there is one, its offset.
  void put_leading_scales(const std::byte* block, int row, uint8_t* at) const {
    for (int part = 0; part < (form_.offsets ? 2 : 1); ++part) {
      std::memcpy(at + 2 * (part * kGroupRows + row), block + 2 * part, 2);
    }
  }

  const quant::Type& type_;
  const PackedForm& form_;
  const FormatRule rule_;
  const Coder coder_;
  const CodeReader reader_;
  const int64_t scales_bytes_;
  const int64_t stride_;  // Bytes of a unit's scales; of a run of 8 units' where they are super.
  std::array<quant::Unit, kSuperUnits> units_{};
  const std::byte* rows_[kGroupRows];                     // Of codes_.
  alignas(64) uint8_t codes_[kGroupRows][kBlockWeights];  // Rows that do not exist stay zero.
};

// Columns [k, …) one number at a time: for what does not fill whole vectors.
void pack_float_rest(const PackedMatrix& shape, const std::byte* const* rows, int row_count,
                     int32_t k, uint8_t* out) {
  const size_t bytes = size_t(plane_bytes(shape.form.plane) / kGroupRows);
  for (; k < shape.cols; ++k) {
    uint8_t* to = out + int64_t(k) * plane_bytes(shape.form.plane);
    for (int row = 0; row < row_count; ++row) {
      std::memcpy(to + size_t(row) * bytes, rows[row] + size_t(k) * bytes, bytes);
    }
  }
}

void pack_float_group(const PackedMatrix& shape, const std::byte* const* rows, int row_count,
                      uint8_t* out) {
  const int64_t column_bytes = plane_bytes(shape.form.plane);
  int32_t k = 0;
  if (row_count == kGroupRows && shape.form.plane == Plane::f32) {
    for (; k + 4 <= shape.cols; k += 4) {
      for (int row = 0; row < kGroupRows; row += 4) {
        transpose_words32(rows + row, int64_t(k) * 4, out + k * column_bytes + 4 * row,
                          column_bytes);
      }
    }
  } else if (row_count == kGroupRows) {
    for (; k + 8 <= shape.cols; k += 8) {
      for (int row = 0; row < kGroupRows; row += 8) {
        transpose_words16(rows + row, int64_t(k) * 2, out + k * column_bytes + 2 * row,
                          column_bytes);
      }
    }
  }
  pack_float_rest(shape, rows, row_count, k, out);
}

}  // namespace

void pack_group(const Weight& weight, const PackedMatrix& shape, int32_t matrix, int32_t group,
                uint8_t* out) {
  const int32_t first = group * kGroupRows;
  const int row_count = std::min(kGroupRows, weight.rows - first);
  const std::byte* rows[kGroupRows];
  for (int row = 0; row < row_count; ++row) rows[row] = weight.row(matrix, first + row);
  // Rows that do not exist are zeros: zero scales, zero weights.
  if (row_count < kGroupRows) std::memset(out, 0, size_t(shape.group_bytes));
  if (is_float(shape.form.plane)) return pack_float_group(shape, rows, row_count, out);
  BlockPacker packer(weight, shape);
  for (int32_t unit = 0; unit < unit_count(shape); unit += packer.unit_count()) {
    for (int row = 0; row < row_count; ++row) {
      packer.take(rows[row], row, unit, out);
      rows[row] += weight.type->block_bytes;
    }
    packer.put_planes(unit, out);
  }
}

}  // namespace cairn::cpu
