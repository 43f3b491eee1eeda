// Assigns layers to groups, planes and tensors.
#include "memory/layout.h"

#include "base/check.h"

namespace cairn::memory {

namespace {

size_t rounded_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Large blocks fill whole units of the system, so that a free one can be given back whole; where a
// block is small, rounding it up would cost more than its borders.
size_t padded_block(const Layout& layout, size_t bytes) {
  const size_t unit = layout.format.unit_bytes;
  return bytes < 16 * unit ? bytes : rounded_up(bytes, unit);
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

// A plane's place is the block's size so far; until attach() knows the first block's address, the
// pointer has the offset alone.
std::byte* append_plane(const Layout& layout, GroupSpec& group, size_t bytes) {
  const uintptr_t offset = group.block_bytes;
  group.block_bytes += rounded_up(bytes, layout.format.alignment);
  return reinterpret_cast<std::byte*>(offset);
}

void add_attention(Layout& layout, const State& state, KvType key_type, KvType value_type) {
  const int32_t group = group_of_kind(layout, group_kind(state.kind), state.window);
  GroupSpec& spec = layout.groups[size_t(group)];
  const size_t head_count = size_t(state.kv_head_count);
  const size_t key_bytes = layout.format.head_bytes(key_type, state.key_dim);
  std::byte* const keys = append_plane(layout, spec, head_count * key_bytes);
  std::byte* values = keys;
  size_t value_bytes = 0;
  if (state.values_in_keys) {
    CHECK(state.value_dim <= state.key_dim);
    value_type = key_type;
  } else {
    value_bytes = layout.format.head_bytes(value_type, state.value_dim);
    values = append_plane(layout, spec, head_count * value_bytes);
  }
  layout.kv_planes.push_back({.keys = keys,
                              .values = values,
                              .key_bytes = key_bytes,
                              .value_bytes = value_bytes,
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
    spec.block_bytes += rounded_up(bytes, layout.format.alignment);
  }
}

void pad_blocks(Layout& layout) {
  for (GroupSpec& group : layout.groups) {
    group.block_bytes = padded_block(layout, group.block_bytes);
  }
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

Layout Layout::make(std::span<const std::vector<State>> layers, const PageFormat& format,
                    KvType key_type, KvType value_type, int32_t hidden_width) {
  Layout layout;
  layout.format = format;
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
    layout.groups.back().block_bytes =
        rounded_up(size_t(hidden_width) * sizeof(float), format.alignment);
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
    log_planes.push_back({.first = append_plane(*this, spec, bytes),
                          .page_bytes = 0,
                          .group = log_group,
                          .width = width});
  }
  spec.block_bytes = padded_block(*this, spec.block_bytes);
  for (LogPlane& plane : log_planes) plane.page_bytes = spec.block_bytes;
}

void Layout::attach(std::span<std::byte* const> first_blocks) {
  const auto moved = [&](std::byte* place, int32_t group) {
    return first_blocks[size_t(group)] + reinterpret_cast<uintptr_t>(place);
  };
  for (KvPlane& plane : kv_planes) {
    plane.keys = moved(plane.keys, plane.group);
    plane.values = moved(plane.values, plane.group);
  }
  for (LogPlane& plane : log_planes) plane.first = moved(plane.first, plane.group);
}

}  // namespace cairn::memory
