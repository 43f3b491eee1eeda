// Reading the packed form of quantized weights (packed.h) into vectors: bytes ready for the dot
// product, scales and offsets in f32. Written once, for any vectors V; the types are chosen at
// compile time, so that a reader is a few instructions.
#pragma once

#include <cstdint>

#include "backends/cpu/pack/packed.h"

namespace cairn::cpu {
namespace {

// A packed form, known at compile time.
template <Plane kPlaneOf, Scales kScalesOf, bool kHalvesOf, bool kOffsetsOf>
struct Form {
  static constexpr Plane kPlane = kPlaneOf;
  static constexpr Scales kScales = kScalesOf;
  static constexpr bool kHalves = kHalvesOf;
  static constexpr bool kOffsets = kOffsetsOf;
  static constexpr int kHalfCount = kHalves ? 2 : 1;
  static constexpr int kParts = scale_parts(kHalves, kOffsets);

  static bool is(const PackedForm& form) {
    return form.plane == kPlane && form.scales == kScales && form.halves == kHalves &&
           form.offsets == kOffsets;
  }
};

// Whether sums of a plane start at a correction for what made its weights unsigned.
template <class V, Plane plane>
constexpr bool has_start() {
  return !(V::kSignedBytes && (plane == Plane::table || plane == Plane::bytes));
}

inline int32_t start_bias(const PackedForm& form) {
  return form.plane == Plane::table || form.plane == Plane::bytes ? 128 : form.bias;
}

// Vector kStep of a unit, `first_row` rows in: unsigned, or signed where V multiplies these.
template <class V, Plane plane, int kStep>
typename V::Bytes unit_bytes(const uint8_t* unit, int first_row, typename V::Bytes table) {
  const uint8_t* at = unit + 4 * first_row;
  if constexpr (plane == Plane::bytes) {
    const typename V::Bytes bytes = V::load(at + 64 * kStep);
    return V::kSignedBytes ? bytes : V::flip_sign(bytes);
  } else {
    typename V::Bytes codes = V::load(at + 64 * (kStep / 2));
    codes = V::mask(V::template shift < kStep % 2 == 0 ? 0 : -4 > (codes), 0x0f);
    if constexpr (plane == Plane::table) return V::look_up(table, codes);
    if constexpr (plane == Plane::bits5) {
      const typename V::Bytes high = V::template shift<4 - kStep>(V::load(at + 256));
      return V::either(codes, V::mask(high, 0x10));
    }
    if constexpr (plane == Plane::bits6) {
      const typename V::Bytes pairs = V::load(at + 256 + 64 * (kStep / 4));
      return V::either(codes, V::mask(V::template shift<4 - 2 * (kStep % 4)>(pairs), 0x30));
    }
    return codes;
  }
}

template <class V>
struct ScaleOffset {
  typename V::Floats scale;
  typename V::Floats offset;  // Unused by formats without offsets.
};

// The scale and the offset of a unit (of one half of it), `first_row` rows in.
template <class V, class F>
ScaleOffset<V> unit_scale(const uint8_t* scales, int unit, int half, int first_row) {
  constexpr int kStride = F::kOffsets ? 2 : 1;
  const int part = half * kStride;
  ScaleOffset<V> out{V::zero(), V::zero()};
  if constexpr (F::kScales == Scales::super) {
    const uint8_t* super =
        scales + unit / kSuperUnits * super_bytes(F::kScales, F::kHalves, F::kOffsets);
    const uint8_t* small = super + kStride * kGroupRows * 2 +
                           (unit % kSuperUnits * F::kParts + part) * kGroupRows + first_row;
    out.scale = V::mul(V::load_f16(super + 2 * first_row), V::load_i8(small));
    if constexpr (F::kOffsets) {
      out.offset =
          V::mul(V::load_f16(super + 2 * (kGroupRows + first_row)), V::load_i8(small + kGroupRows));
    }
  } else {
    constexpr int kBytes = F::kScales == Scales::half ? 2 : 4;
    const uint8_t* at = scales + ((unit * F::kParts + part) * kGroupRows + first_row) * kBytes;
    if constexpr (F::kScales == Scales::half) {
      out.scale = V::load_f16(at);
      if constexpr (F::kOffsets) out.offset = V::load_f16(at + kBytes * kGroupRows);
    } else {
      out.scale = V::load_f32(at);
      if constexpr (F::kOffsets) out.offset = V::load_f32(at + kBytes * kGroupRows);
    }
  }
  return out;
}

// All forms that pack.cpp makes: visit.template operator()<Form>() for the one that `form` is.
template <class Visitor>
bool visit_form(const PackedForm& form, const Visitor& visit) {
  const auto try_form = [&]<class F>(F) {
    if (!F::is(form)) return false;
    visit(F{});
    return true;
  };
  using enum Plane;
  using enum Scales;
  return try_form(Form<nibbles, half, false, false>{}) ||  // Q4_0, TQ1_0, TQ2_0
         try_form(Form<nibbles, half, false, true>{}) ||   // Q4_1
         try_form(Form<bits5, half, false, false>{}) ||    // Q5_0
         try_form(Form<bits5, half, false, true>{}) ||     // Q5_1
         try_form(Form<bytes, half, false, false>{}) ||    // Q8_0
         try_form(Form<table, half, false, false>{}) ||    // IQ4_NL
         try_form(Form<table, half, true, false>{}) ||     // NVFP4
         try_form(Form<nibbles, super, true, true>{}) ||   // Q2_K
         try_form(Form<nibbles, super, true, false>{}) ||  // Q3_K
         try_form(Form<nibbles, super, false, true>{}) ||  // Q4_K
         try_form(Form<bits5, super, false, true>{}) ||    // Q5_K
         try_form(Form<bits6, super, true, false>{}) ||    // Q6_K
         try_form(Form<table, super, false, false>{}) ||   // IQ4_XS
         try_form(Form<table, full, false, false>{}) ||    // IQ1_S, IQ3_XXS, IQ3_S, MXFP4, IQ2_XXS
         try_form(Form<table, full, true, false>{}) ||     // IQ1_M, IQ2_XS, IQ2_S
         try_form(Form<bytes, full, false, false>{}) ||    // Any other format.
         try_form(Form<bytes, full, false, true>{}) || try_form(Form<bytes, full, true, false>{}) ||
         try_form(Form<bytes, full, true, true>{});
}

}  // namespace
}  // namespace cairn::cpu
