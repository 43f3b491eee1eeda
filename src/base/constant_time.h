// Comparing what must not be guessed, such as digests of keys: the time does not tell where two of
// them differ. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// Looks at all bytes, whatever the first ones are; but not where there are not as many in both.
template <class Bytes, class Others>
bool is_equal_in_constant_time(const Bytes& a, const Others& b) {
  if (a.size() != b.size()) return false;
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= uint8_t(uint8_t(a[i]) ^ uint8_t(b[i]));
  return difference == 0;
}

}  // namespace cairn
