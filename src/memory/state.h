// What a layer keeps of the tokens before: a KV cache of some kind, or recurrent tensors. A model
// gives a list of these for each layer, so a hybrid model is a list and needs no class of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cairn {

struct State {
  enum class Kind : uint8_t {
    full,       // Keys and values of every token.
    window,     // Keys and values; a token at position n sees positions > n - window.
    chunked,    // Keys and values; a token at position n sees from floor(n / window) * window.
    shared,     // None of its own: reads the keys and values of another layer.
    recurrent,  // Tensors of a fixed size, rewritten by every token.
  };

  Kind kind = Kind::full;
  int32_t kv_head_count = 0, key_dim = 0, value_dim = 0;  // full, window, chunked
  bool values_in_keys = false;         // A value is the first value_dim elements of its key.
  int32_t window = 0;                  // window, chunked: in tokens
  int32_t shared_layer = -1;           // shared: a lower layer's index
  std::vector<int64_t> tensor_floats;  // recurrent: f32 elements of each tensor

  static State full(int32_t kv_head_count, int32_t key_dim, int32_t value_dim) {
    return of_attention(Kind::full, 0, kv_head_count, key_dim, value_dim);
  }
  // One row for all heads, whose beginning is the value as well.
  static State latent(int32_t key_dim, int32_t value_dim) {
    State state = full(1, key_dim, value_dim);
    state.values_in_keys = true;
    return state;
  }
  static State windowed(int32_t window, int32_t kv_head_count, int32_t key_dim, int32_t value_dim) {
    return of_attention(Kind::window, window, kv_head_count, key_dim, value_dim);
  }
  static State chunked(int32_t window, int32_t kv_head_count, int32_t key_dim, int32_t value_dim) {
    return of_attention(Kind::chunked, window, kv_head_count, key_dim, value_dim);
  }
  static State shared(int32_t layer) {
    State state;
    state.kind = Kind::shared;
    state.shared_layer = layer;
    return state;
  }
  static State recurrent(std::vector<int64_t> tensor_floats) {
    State state;
    state.kind = Kind::recurrent;
    state.tensor_floats = std::move(tensor_floats);
    return state;
  }

 private:
  static State of_attention(Kind kind, int32_t window, int32_t kv_head_count, int32_t key_dim,
                            int32_t value_dim) {
    State state;
    state.kind = kind;
    state.window = window;
    state.kv_head_count = kv_head_count;
    state.key_dim = key_dim;
    state.value_dim = value_dim;
    return state;
  }
};

}  // namespace cairn
