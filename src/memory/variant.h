// Which variant of the model (such as the LoRA adapters in use) computed a sequence, and for which
// tenant. What one variant has computed is never reused by another, even if the tokens are the
// same, and what was computed for one tenant is never found for another: neither an answer nor the
// time that it takes tells one what others have asked. This is the root of every look-up.
#pragma once

#include <compare>
#include <cstdint>

namespace cairn::memory {

// The memory only compares them.
struct Variant {
  static const Variant plain;

  constexpr Variant() = default;
  constexpr explicit Variant(uint64_t computed_by, uint64_t computed_for = 0)
      : computation(computed_by), tenant(computed_for) {}

  // A digest of everything beside the model that changes what is kept, such as adapters and their
  // scales; equal numbers compute equal bits.
  uint64_t computation = 0;
  uint64_t tenant = 0;  // 0: everybody's.

  friend auto operator<=>(const Variant&, const Variant&) = default;
};

inline constexpr Variant Variant::plain{};

}  // namespace cairn::memory
