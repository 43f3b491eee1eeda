// A handle to a value of the graph that is being recorded, or to a view of some of its columns.
// Copying it copies the handle.
#pragma once

#include <cstdint>

namespace cairn {

struct Tensor {
  int32_t value = -1;  // Which value of the graph.
  int32_t column = 0;  // A view starts here …
  int32_t width = 0;   // … and has this many columns.

  bool exists() const { return value >= 0; }
};

}  // namespace cairn
