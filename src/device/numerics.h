// The numerics ids: the rounding rules that a backend computes by (docs/numerics.md). An engine has
// one from its start to its end, so that all that it caches was computed by the same rules.
#pragma once

#include <cstdint>
#include <string_view>

namespace cairn {

enum class Numerics : uint8_t {
  exact_1,  // The same bits however tokens are cut, on any machine.
  fast_1,   // A prompt's products round to bf16, where the machine multiplies that faster.
};

constexpr std::string_view name(Numerics numerics) {
  return numerics == Numerics::exact_1 ? "exact-1" : "fast-1";
}

}  // namespace cairn
