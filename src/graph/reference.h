// How ops refer to values while a graph is recorded: the value's index and first column are packed
// into the field that finish() replaces by a workspace offset.
#pragma once

#include <cstdint>

namespace cairn {

constexpr int64_t pack_reference(int32_t value, int32_t column) {
  return (int64_t(value) << 32) | int64_t(column);
}
constexpr int32_t value_of_reference(int64_t reference) {
  return int32_t(reference >> 32);
}
constexpr int32_t column_of_reference(int64_t reference) {
  return int32_t(reference & 0xffffffff);
}

}  // namespace cairn
