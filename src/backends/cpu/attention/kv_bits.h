// The stored forms of keys and values, as types to choose a vector load by. No arithmetic here.
#pragma once

#include <cstdint>

namespace cairn {

struct F32Bits {
  float bits;
};
struct F16Bits {
  uint16_t bits;
};
struct BF16Bits {
  uint16_t bits;
};
struct Q8Bits {
  uint8_t bits;
};
struct Q4Bits {  // Two dims: the even one in the lower half.
  uint8_t bits;
};

}  // namespace cairn
