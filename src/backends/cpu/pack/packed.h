// The packed layout of weights for the vector kernels: sixteen rows (outputs) are interleaved and
// form a group. Plain data only, included by the files of every instruction set. Functions here are
// static, so that no file links to a copy that was compiled for newer instructions.
#pragma once

#include <cstddef>
#include <cstdint>

// A group is contiguous: the scales of all its units, then the planes of all its units. A
// unit is 16 rows x 32 columns; rows that do not exist have zero scales. "Vector t" below is 64
// bytes: byte 4 * row + j belongs to column 4 * t + j.
//   nibbles, table   4 x 64 B: byte 4r + j of the i-th holds vector 2i low, vector 2i + 1 high
//   bits5            the same, then 64 B: bit t of byte 4r + j is bit 4 of vector t
//   bits6            the same, then 2 x 64 B: bits 2i, 2i + 1 of the u-th are bits 4, 5 of
//                    vector 4u + i
//   bytes            8 x 64 B: vector t as signed bytes
// A unit has scales for its lower and upper 16 columns where the format has (`halves`), and each
// has an offset beside it where the format has (`offsets`): lower scale, lower offset, upper scale,
// upper offset, 16 rows each.
//   half    these as f16
//   full    these as f32
//   super   for 8 units: f16 d[16], f16 -dmin[16] (with offsets), then these as signed bytes, to be
//           multiplied by d and -dmin: exact products, so the same f32 as the format's own
// Float matrices have no units: element [column][16 rows].
namespace cairn {
struct Weight;
}

namespace cairn::cpu {

// Which packed bytes a weight becomes. To be raised with any change of that, so that packed weights
// in files of an earlier one are not taken for new ones: a test has a digest of them.
inline constexpr uint32_t kPackedLayout = 1;

enum class Plane : uint8_t { nibbles, table, bits5, bits6, bytes, f16, bf16, f32 };
enum class Scales : uint8_t { half, full, super };

inline constexpr int kGroupRows = 16;
inline constexpr int kSuperUnits = 8;

struct PackedForm {
  Plane plane = Plane::bytes;
  Scales scales = Scales::full;
  bool halves = false;
  bool offsets = false;
  int32_t bias = 0;       // nibbles, bits5, bits6: the weight is the stored number less this.
  int8_t table[16] = {};  // table: the weight of each nibble.
};

static constexpr bool is_float(Plane plane) {
  return plane >= Plane::f16;
}

// Bytes of a unit's plane; for floats, of a column of a group.
static constexpr int plane_bytes(Plane plane) {
  switch (plane) {
    case Plane::bits5:
      return 320;
    case Plane::bits6:
      return 384;
    case Plane::bytes:
      return 512;
    case Plane::f16:
    case Plane::bf16:
      return 32;
    case Plane::f32:
      return 64;
    default:
      return 256;
  }
}

// Numbers of one row in a unit: scales and offsets.
static constexpr int scale_parts(bool halves, bool offsets) {
  return (halves ? 2 : 1) * (offsets ? 2 : 1);
}

// Bytes of the scales of kSuperUnits units.
static constexpr int super_bytes(Scales scales, bool halves, bool offsets) {
  const int numbers = kSuperUnits * scale_parts(halves, offsets) * kGroupRows;
  if (scales == Scales::super) return (offsets ? 2 : 1) * kGroupRows * 2 + numbers;
  return numbers * (scales == Scales::half ? 2 : 4);
}

struct PackedMatrix {
  PackedForm form;
  const uint8_t* data = nullptr;   // Groups of matrix 0, of matrix 1, …; 64-byte aligned.
  const Weight* source = nullptr;  // Without data: what a product packs on its way.
  int64_t group_bytes = 0;         // A multiple of 64.
  int32_t group_count = 0;         // Of one matrix.
  int32_t cols = 0;
  int32_t rows = 0;
  int64_t scales_bytes = 0;  // Where a group's planes begin.
  bool by_vectors = false;   // This machine's tiles would be slower.
};

static constexpr int32_t unit_count(const PackedMatrix& weight) {
  return weight.cols / 32;
}

static constexpr const uint8_t* group_at(const PackedMatrix& weight, int64_t matrix,
                                         int64_t group) {
  return weight.data + (matrix * weight.group_count + group) * weight.group_bytes;
}

}  // namespace cairn::cpu
