// The length of a conversation where nobody says one. Thread-safe: a constant.
#pragma once

#include <cstdint>

namespace cairn {

// Models that were trained for more than this get more only when asked for it: address tables grow
// with a context.
inline constexpr int32_t kDefaultContextMax = 1 << 17;

}  // namespace cairn
