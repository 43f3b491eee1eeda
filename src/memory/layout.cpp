// Assigns layers to groups, planes and tensors.
#include "memory/layout.h"

#include <numeric>

#include "base/check.h"

namespace cairn::memory {

namespace {

// Planes and tensors start on cache lines.
size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

int32_t group_of_kind(Layout& layout, State::Kind kind, int32_t window) {
  for (size_t group = 0; group < layout.groups.size(); ++group) {
    const GroupSpec& spec = layout.groups[group];
    if (spec.kind == kind && spec.window == window) return int32_t(group);
  }
  layout.groups.push_back({.kind = kind, .window = window, .plane_bytes = {}});
  return int32_t(layout.groups.size()) - 1;
}

void add_attention(Layout& layout, const State& state, KvType key_type, KvType value_type) {
  const int32_t group = group_of_kind(layout, state.kind, state.window);
  const auto plane_bytes = [&](int32_t dim, KvType type) {
    return aligned(size_t(state.kv_head_count) * size_t(dim) * kPageTokens * element_bytes(type));
  };
  const size_t keys_bytes = plane_bytes(state.key_dim, key_type);
  const size_t values_bytes = plane_bytes(state.value_dim, value_type);
  layout.kv_planes.push_back({.keys_page_bytes = keys_bytes,
                              .values_page_bytes = values_bytes,
                              .group = group,
                              .kv_head_count = state.kv_head_count,
                              .key_dim = state.key_dim,
                              .value_dim = state.value_dim,
                              .key_type = key_type,
                              .value_type = value_type});
  auto& planes = layout.groups[size_t(group)].plane_bytes;
  planes.insert(planes.end(), {keys_bytes, values_bytes});
}

void add_recurrent(Layout& layout, const State& state) {
  const int32_t group = group_of_kind(layout, State::Kind::recurrent, 0);
  auto& planes = layout.groups[size_t(group)].plane_bytes;
  if (planes.empty()) planes.push_back(0);
  for (const int64_t float_count : state.tensor_floats) {
    const size_t bytes = size_t(float_count) * sizeof(float);
    layout.state_tensors.push_back({.group = group, .offset = planes[0], .bytes = bytes});
    planes[0] += aligned(bytes);
  }
}

}  // namespace

size_t element_bytes(KvType type) {
  return type == KvType::f32 ? 4 : 2;
}

size_t GroupSpec::block_bytes() const {
  return std::accumulate(plane_bytes.begin(), plane_bytes.end(), size_t(0));
}

Layout Layout::make(std::span<const std::vector<State>> layers, KvType key_type,
                    KvType value_type) {
  Layout layout;
  for (const std::vector<State>& states : layers) {
    int32_t kv_plane = -1;
    int32_t state_tensor = -1;
    for (const State& state : states) {
      if (state.kind == State::Kind::shared) {
        CHECK(kv_plane < 0 && state.shared_layer < int32_t(layout.kv_plane_of_layer.size()));
        kv_plane = layout.kv_plane_of_layer[size_t(state.shared_layer)];
      } else if (state.kind != State::Kind::recurrent) {
        CHECK(kv_plane < 0);
        kv_plane = int32_t(layout.kv_planes.size());
        add_attention(layout, state, key_type, value_type);
      } else {
        CHECK(state_tensor < 0);
        state_tensor = int32_t(layout.state_tensors.size());
        add_recurrent(layout, state);
      }
    }
    layout.kv_plane_of_layer.push_back(kv_plane);
    layout.state_tensor_of_layer.push_back(state_tensor);
  }
  return layout;
}

}  // namespace cairn::memory
