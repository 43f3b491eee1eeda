// Comparing what must not be guessed, such as digests of keys: the time does not tell where two of
// them differ. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn::serve {

// Looks at all bytes, whatever the first ones are. REQUIRES: as many in both.
template <class Bytes>
bool is_equal_in_constant_time(const Bytes& a, const Bytes& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= uint8_t(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace cairn::serve
