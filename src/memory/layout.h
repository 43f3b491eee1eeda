// Where each layer's state lives: layers with the same rule form a group, which has one kind of
// block (a page of 32 tokens, or a state); a layer is a plane or a tensor inside these blocks.
// Constant after it is made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/step.h"
#include "memory/state.h"

namespace cairn::memory {

struct GroupSpec {
  State::Kind kind = State::Kind::full;
  int32_t window = 0;  // In tokens, of windows and chunks.
  // Bytes of a block in each of its planes. A page has two planes a layer, keys and values; a state
  // has one plane in all.
  std::vector<size_t> plane_bytes;

  bool has_pages() const { return kind != State::Kind::recurrent; }
  size_t block_bytes() const;
};

struct Layout {
  std::vector<GroupSpec> groups;
  std::vector<KvPlane> kv_planes;  // Base pointers are filled in by Memory.
  std::vector<StateTensor> state_tensors;
  std::vector<int32_t> kv_plane_of_layer;      // -1: the layer has none; shared: the other's.
  std::vector<int32_t> state_tensor_of_layer;  // The layer's first tensor; -1: none.

  // `layers`: each layer's states, at most one of each kind.
  static Layout make(std::span<const std::vector<State>> layers, KvType key_type,
                     KvType value_type);
};

size_t element_bytes(KvType type);

}  // namespace cairn::memory
