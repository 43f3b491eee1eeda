// The table of the hyper-parameters that model files carry: what sort of value each is and in which
// range it must lie (rule L3). A name is what follows the architecture and its dot in a key.
// Data only; gguf/metadata.h applies it. Thread-safe: constant.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cairn::gguf {

struct CountRange {
  std::string_view name;
  int32_t min;  // Of a scalar.
  int32_t max;
  int32_t per_layer_min;  // Of one layer's value: 0 where layers may lack the thing.
};

struct RealRange {
  std::string_view name;
  float min;  // Both ends belong to the range; what is not finite never does.
  float max;
};

std::span<const CountRange> count_ranges();
std::span<const RealRange> real_ranges();

// The range of a name; a name outside the table may be any count from 0 or any finite real.
CountRange count_range(std::string_view name);
RealRange real_range(std::string_view name);

}  // namespace cairn::gguf
