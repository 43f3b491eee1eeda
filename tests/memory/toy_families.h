// Toy models of the families that prefix caches meet.
#pragma once

#include <vector>

#include "tests/memory/toy_model.h"

namespace cairn::memory::toy {

// A state of about 4 KiB and pages of 256 bytes, as in real models: some states cost as much as
// hundreds of tokens.
inline State large_state() {
  return State::recurrent({1000, 2});
}

struct Family {
  const char* name;
  ToyModel model;
};

inline std::vector<Family> families() {
  using Toy = ToyModel;
  return {{"full", Toy({{Toy::full()}, {Toy::full()}})},
          {"windows", Toy({{Toy::window(40)}, {Toy::full()}, {Toy::window(7)}})},
          {"chunks", Toy({{Toy::chunked(64)}, {Toy::full()}})},
          {"hybrid", Toy({{large_state()}, {Toy::full()}, {large_state()}})},
          {"recurrent", Toy({{large_state()}})},
          {"all", Toy({{large_state()}, {Toy::window(50)}, {Toy::full()}})}};
}

}  // namespace cairn::memory::toy
