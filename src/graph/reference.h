// How a value of a graph is named inside an op until the graph is finished: its index and first
// column, in the place of the offset.
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
