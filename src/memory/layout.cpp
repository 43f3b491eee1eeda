// Assigns layers to groups, planes and tensors.
#include "memory/layout.h"

#include "base/check.h"

namespace cairn::memory {

namespace {

// Planes and tensors start on cache lines.
size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// Large blocks fill whole pages of the system, so that a free one can be given back whole; where a
// block is small, rounding it up would cost more than its borders.
size_t padded_block(size_t bytes) {
  constexpr size_t kSystemPageBytes = 4096;
  if (bytes < 16 * kSystemPageBytes) return bytes;
  return (bytes + kSystemPageBytes - 1) / kSystemPageBytes * kSystemPageBytes;
}

GroupKind group_kind(State::Kind kind) {
  switch (kind) {
    case State::Kind::full:
      return GroupKind::full;
    case State::Kind::window:
      return GroupKind::window;
    case State::Kind::chunked:
      return GroupKind::chunked;
    default:
      return GroupKind::recurrent;
  }
}

int32_t group_of_kind(Layout& layout, GroupKind kind, int32_t window) {
  for (size_t group = 0; group < layout.groups.size(); ++group) {
    const GroupSpec& spec = layout.groups[group];
    if (spec.kind == kind && spec.window == window) return int32_t(group);
  }
  layout.groups.push_back({.kind = kind, .window = window});
  return int32_t(layout.groups.size()) - 1;
}

// A plane's place is the block's size so far; until attach() knows the arena's address, the pointer
// has the offset alone.
std::byte* append_plane(GroupSpec& group, size_t bytes) {
  const uintptr_t offset = group.block_bytes;
  group.block_bytes += aligned(bytes);
  return reinterpret_cast<std::byte*>(offset);
}

void add_attention(Layout& layout, const State& state, KvType key_type, KvType value_type) {
  const int32_t group = group_of_kind(layout, group_kind(state.kind), state.window);
  GroupSpec& spec = layout.groups[size_t(group)];
  const auto plane_bytes = [&](int32_t dim, KvType type) {
    return size_t(state.kv_head_count) * kv_head_bytes(type, dim);
  };
  std::byte* const keys = append_plane(spec, plane_bytes(state.key_dim, key_type));
  std::byte* values = keys;
  if (state.values_in_keys) {
    CHECK(state.value_dim <= state.key_dim);
    value_type = key_type;
  } else {
    values = append_plane(spec, plane_bytes(state.value_dim, value_type));
  }
  layout.kv_planes.push_back({.keys = keys,
                              .values = values,
                              .group = group,
                              .kv_head_count = state.kv_head_count,
                              .key_dim = state.key_dim,
                              .value_dim = state.value_dim,
                              .key_type = key_type,
                              .value_type = value_type,
                              .values_in_keys = state.values_in_keys});
}

void add_recurrent(Layout& layout, const State& state) {
  layout.recurrent_group = group_of_kind(layout, GroupKind::recurrent, 0);
  GroupSpec& spec = layout.groups[size_t(layout.recurrent_group)];
  for (const int64_t float_count : state.tensor_floats) {
    const size_t bytes = size_t(float_count) * sizeof(float);
    layout.state_tensors.push_back(
        {.group = layout.recurrent_group, .offset = spec.block_bytes, .bytes = bytes});
    spec.block_bytes += aligned(bytes);
  }
}

void pad_blocks(Layout& layout) {
  for (GroupSpec& group : layout.groups) group.block_bytes = padded_block(group.block_bytes);
  for (KvPlane& plane : layout.kv_planes) {
    plane.keys_page_bytes = layout.groups[size_t(plane.group)].block_bytes;
    plane.values_page_bytes = plane.keys_page_bytes;
  }
}

}  // namespace

std::string_view name(GroupKind kind) {
  switch (kind) {
    case GroupKind::full:
      return "full";
    case GroupKind::window:
      return "window";
    case GroupKind::chunked:
      return "chunked";
    case GroupKind::recurrent:
      return "recurrent";
    case GroupKind::hidden:
      return "hidden";
    case GroupKind::log:
      return "log";
  }
  return "";
}

Layout Layout::make(std::span<const std::vector<State>> layers, KvType key_type, KvType value_type,
                    int32_t hidden_width) {
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
  if (hidden_width > 0) {
    layout.hidden_width = hidden_width;
    layout.hidden_group = group_of_kind(layout, GroupKind::hidden, 0);
    layout.groups.back().block_bytes = aligned(size_t(hidden_width) * sizeof(float));
  }
  pad_blocks(layout);
  return layout;
}

void Layout::add_log(std::span<const int32_t> widths) {
  CHECK(log_group < 0);
  if (widths.empty() || recurrent_group < 0) return;
  log_group = group_of_kind(*this, GroupKind::log, 0);
  GroupSpec& spec = groups.back();
  for (const int32_t width : widths) {
    const size_t bytes = size_t(kLogPageTokens) * size_t(width) * sizeof(float);
    log_planes.push_back(
        {.first = append_plane(spec, bytes), .page_bytes = 0, .group = log_group, .width = width});
  }
  spec.block_bytes = padded_block(spec.block_bytes);
  for (LogPlane& plane : log_planes) plane.page_bytes = spec.block_bytes;
}

void Layout::attach(std::span<std::byte* const> arenas) {
  const auto moved = [&](std::byte* place, int32_t group) {
    return arenas[size_t(group)] + reinterpret_cast<uintptr_t>(place);
  };
  for (KvPlane& plane : kv_planes) {
    plane.keys = moved(plane.keys, plane.group);
    plane.values = moved(plane.values, plane.group);
  }
  for (LogPlane& plane : log_planes) plane.first = moved(plane.first, plane.group);
}

}  // namespace cairn::memory
