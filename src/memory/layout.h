// Where the state of each layer is stored. Layers that keep the same kind of state form a group,
// which has one kind of block: a page of consecutive tokens, a recurrent state or a hidden row. A
// layer is a plane or a tensor at a fixed offset in its group's blocks. Constant after it is made;
// knows nothing of pools and sequences.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "device/step.h"
#include "memory/state.h"

namespace cairn::memory {

enum class GroupKind : uint8_t {
  full,       // Pages: keys and values of every token.
  window,     // Pages: of the last tokens.
  chunked,    // Pages: of the tokens of the current chunk.
  recurrent,  // States; at most one group, of all recurrent layers.
  hidden,     // Rows: the last hidden row, from which the head computes the logits again.
  log,        // Pages: inputs of the recurrence, from which states are replayed without weights.
};

std::string_view name(GroupKind kind);  // "full", "window" …

struct GroupSpec {
  GroupKind kind = GroupKind::full;
  int32_t window = 0;      // In tokens, of windows and chunks.
  size_t block_bytes = 0;  // All planes of all layers, from one block to the next.

  bool has_pages() const { return kind != GroupKind::recurrent && kind != GroupKind::hidden; }
  bool has_window() const { return kind == GroupKind::window || kind == GroupKind::chunked; }
  int32_t page_tokens() const { return kind == GroupKind::log ? kLogPageTokens : kPageTokens; }
  // The pages of positions [0, token_count).
  int32_t page_count(int32_t token_count) const {
    return (token_count + page_tokens() - 1) / page_tokens();
  }
};

struct Layout {
  std::vector<GroupSpec> groups;
  std::vector<KvPlane> kv_planes;    // Pointers are offsets until attach().
  std::vector<LogPlane> log_planes;  // Likewise.
  std::vector<StateTensor> state_tensors;
  std::vector<int32_t> kv_plane_of_layer;      // -1: the layer has none; shared: the other's.
  std::vector<int32_t> state_tensor_of_layer;  // The layer's first tensor; -1: none.
  int32_t recurrent_group = -1, hidden_group = -1, log_group = -1;
  int32_t hidden_width = 0;  // f32 elements of a hidden row.
  PageFormat format;

  size_t hidden_bytes() const { return size_t(hidden_width) * sizeof(float); }

  // `layers`: each layer's states, at most one with keys and values and one recurrent. `format`:
  // of the backend that computes in the blocks. `hidden_width`: of the row that goes into the
  // output matrix; 0 keeps no such rows.
  static Layout make(std::span<const std::vector<State>> layers, const PageFormat& format,
                     KvType key_type, KvType value_type, int32_t hidden_width = 0);

  // Room for a log of the recurrence's inputs, `widths` f32 elements each, of every token. One
  // plane for each width, in their order. Nothing happens without widths or recurrent layers.
  // REQUIRES: called at most once, before the layout is given to a Memory.
  void add_log(std::span<const int32_t> widths);

  // Where the groups' first blocks lie, one address for each group.
  void attach(std::span<std::byte* const> first_blocks);
};

}  // namespace cairn::memory
