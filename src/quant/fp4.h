// E2M1, the 4-bit float of MXFP4 and NVFP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. Doubled
// here, so that they are integers; negative zero is 0.
#pragma once

#include <cstdint>

namespace cairn::quant {

inline constexpr int8_t kFp4Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace cairn::quant
