// What a layer keeps of the past. A model gives a list of these for each layer; the kinds are
// composed by listing, never by a class for a combination.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

struct State {
  enum class Kind : uint8_t {
    full,       // Keys and values of every token.
    recurrent,  // Tensors of a fixed size, rewritten by every token.
  };

  Kind kind = Kind::full;
  int32_t kv_head_count = 0, key_dim = 0, value_dim = 0;  // full
  std::vector<int64_t> tensor_floats;                     // recurrent: f32 elements of each tensor

  static State full(int32_t kv_head_count, int32_t key_dim, int32_t value_dim) {
    return {.kind = Kind::full,
            .kv_head_count = kv_head_count,
            .key_dim = key_dim,
            .value_dim = value_dim,
            .tensor_floats = {}};
  }
  static State recurrent(std::vector<int64_t> tensor_floats) {
    State state{.kind = Kind::recurrent, .tensor_floats = {}};
    state.tensor_floats = std::move(tensor_floats);
    return state;
  }
};

}  // namespace cairn
