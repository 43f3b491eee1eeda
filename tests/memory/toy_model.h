// A model without weights, whose next token is a hash of what the sequence may see, read back from
// pages, states, log and rows through a Slice, as kernels do. A wrong page, a stale state or a row
// too many gives another hash. Each layer's input depends on what the layers below have read.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "memory/memory.h"
#include "tests/memory/toy_format.h"
#include "tests/memory/toy_hash.h"

namespace cairn::memory::toy {

class ToyModel {
 public:
  using Layers = std::vector<std::vector<State>>;
  static constexpr int32_t kHiddenWidth = 2;

  explicit ToyModel(Layers layers) : layers_(std::move(layers)) {}

  const Layers& layers() const { return layers_; }
  static State full() { return State::full(1, 1, 1); }
  static State window(int32_t window) { return State::windowed(window, 1, 1, 1); }
  static State chunked(int32_t window) { return State::chunked(window, 1, 1, 1); }
  static State recurrent() { return State::recurrent({2, 2}); }

  Layout layout(bool with_log = true) const {
    Layout layout = Layout::make(layers_, kToyFormat, KvType::f32, KvType::f32, kHiddenWidth);
    std::vector<int32_t> widths;
    for (size_t tensor = 0; tensor < layout.state_tensors.size(); tensor += 2) widths.push_back(2);
    if (with_log) layout.add_log(widths);
    return layout;
  }

  // What a slice of a step has beside its pages.
  struct Input {
    std::span<const Token> tokens;
    Variant variant = Variant::plain;
  };

  // A step over several slices at once, layer by layer. Writes pages, log rows and captured states;
  // the result is each row's output.
  std::vector<uint64_t> run(const Layout& layout, std::span<const Slice> slices,
                            std::span<const Input> inputs) const {
    std::vector<uint64_t> rows;
    for (size_t index = 0; index < slices.size(); ++index) {
      for (int32_t row = 0; row < slices[index].row_count; ++row) {
        rows.push_back(embed(inputs[index].tokens[size_t(row)], slices[index].first_position + row,
                             inputs[index].variant));
      }
    }
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      for (const State& state : layers_[layer]) {
        size_t first = 0;
        for (const Slice& slice : slices) {
          const std::span<uint64_t> own = std::span(rows).subspan(first, size_t(slice.row_count));
          if (state.kind != State::Kind::recurrent) store(layout, layer, state, slice, own);
          first += own.size();
        }
        first = 0;
        for (const Slice& slice : slices) {
          const std::span<uint64_t> own = std::span(rows).subspan(first, size_t(slice.row_count));
          if (state.kind == State::Kind::recurrent) {
            recur(layout, layer, slice, own);
          } else {
            attend(layout, layer, slice, own);
          }
          first += own.size();
        }
      }
    }
    return rows;
  }

  std::vector<uint64_t> run(const Layout& layout, const Transaction& transaction) const {
    const Slice slice = transaction.slice(0);
    const Input input{transaction.tokens(), transaction.variant()};
    return run(layout, {&slice, 1}, {&input, 1});
  }

  // States from the log alone.
  void replay(const Layout& layout, const Slice& slice) const {
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      for (const State& state : layers_[layer]) {
        if (state.kind != State::Kind::recurrent) continue;
        ToyState kept = load_state(layout, layer, slice);
        int32_t row = 0;
        for (const Capture& capture : slice.captures) {
          for (; row < capture.row_count; ++row) {
            kept.next(logged(layout, layer, slice, slice.first_position + row));
          }
          save_state(layout, layer, capture, kept);
        }
      }
    }
  }

  // What a layer keeps of a position.
  uint64_t load(const Layout& layout, size_t layer, const Slice& slice, int32_t position) const {
    const KvPlane& plane = layout.kv_planes[size_t(layout.kv_plane_of_layer[layer])];
    uint32_t halves[2];
    std::memcpy(&halves[0], place(plane.keys, plane.keys_page_bytes, plane, slice, position), 4);
    std::memcpy(&halves[1], place(plane.values, plane.values_page_bytes, plane, slice, position),
                4);
    return uint64_t(halves[0]) << 32 | halves[1];
  }

  ToyState load_state(const Layout& layout, size_t layer, const Slice& slice) const {
    const StateTensor* const tensors = tensors_of(layout, layer);
    ToyState state;
    const std::byte* const block = slice.states[tensors[0].group];
    if (block == nullptr) return state;
    std::memcpy(&state.digest, block + tensors[0].offset, sizeof state.digest);
    std::memcpy(&state.last, block + tensors[1].offset, sizeof state.last);
    return state;
  }

  uint64_t logged(const Layout& layout, size_t layer, const Slice& slice, int32_t position) const {
    uint64_t input = 0;
    std::memcpy(&input, log_row(layout, layer, slice, position), sizeof input);
    return input;
  }

  // The layer whose window a shared layer looks through.
  const State& seen_through(const Layout& layout, size_t layer) const {
    for (size_t owner = 0;; ++owner) {
      if (layout.kv_plane_of_layer[owner] != layout.kv_plane_of_layer[layer]) continue;
      for (const State& state : layers_[owner]) {
        if (state.kind != State::Kind::recurrent) return state;
      }
    }
  }

 private:
  static const StateTensor* tensors_of(const Layout& layout, size_t layer) {
    return &layout.state_tensors[size_t(layout.state_tensor_of_layer[layer])];
  }
  static std::byte* place(std::byte* first, size_t page_bytes, const KvPlane& plane,
                          const Slice& slice, int32_t position) {
    const PageId page = slice.pages[plane.group][position / kPageTokens];
    CHECK(page != kNoPage);
    return first + size_t(index_of(page)) * page_bytes + size_t(position % kPageTokens) * 4;
  }
  static float* log_row(const Layout& layout, size_t layer, const Slice& slice, int32_t position) {
    const int32_t plane_index = layout.state_tensor_of_layer[layer] / 2;
    const LogPlane& plane = layout.log_planes[size_t(plane_index)];
    const PageId page = slice.pages[plane.group][position / kLogPageTokens];
    return page == kNoPage ? nullptr : plane.row(page, position);
  }

  void store(const Layout& layout, size_t layer, const State& state, const Slice& slice,
             std::span<const uint64_t> rows) const {
    if (state.kind == State::Kind::shared) return;
    const KvPlane& plane = layout.kv_planes[size_t(layout.kv_plane_of_layer[layer])];
    for (int32_t row = 0; row < slice.row_count; ++row) {
      const int32_t position = slice.first_position + row;
      const uint32_t halves[2] = {uint32_t(rows[size_t(row)] >> 32), uint32_t(rows[size_t(row)])};
      std::memcpy(place(plane.keys, plane.keys_page_bytes, plane, slice, position), &halves[0], 4);
      std::memcpy(place(plane.values, plane.values_page_bytes, plane, slice, position), &halves[1],
                  4);
    }
  }

  void attend(const Layout& layout, size_t layer, const Slice& slice,
              std::span<uint64_t> rows) const {
    const State& window = seen_through(layout, layer);
    for (int32_t row = 0; row < slice.row_count; ++row) {
      const int32_t position = slice.first_position + row;
      uint64_t sum = 0;
      for (int32_t seen = first_visible(window, position); seen <= position; ++seen) {
        sum = fold(sum, load(layout, layer, slice, seen));
      }
      rows[size_t(row)] = mix(rows[size_t(row)], sum);
    }
  }

  void recur(const Layout& layout, size_t layer, const Slice& slice,
             std::span<uint64_t> rows) const {
    ToyState state = load_state(layout, layer, slice);
    int32_t row = 0;
    for (const Capture& capture : slice.captures) {
      for (; row < capture.row_count; ++row) {
        uint64_t& x = rows[size_t(row)];
        float* const log = layout.log_planes.empty()
                               ? nullptr
                               : log_row(layout, layer, slice, slice.first_position + row);
        if (log != nullptr) std::memcpy(log, &x, sizeof x);
        x = mix(x, state.next(x));
      }
      save_state(layout, layer, capture, state);
    }
  }

  static void save_state(const Layout& layout, size_t layer, const Capture& capture,
                         const ToyState& state) {
    const StateTensor* const tensors = tensors_of(layout, layer);
    std::byte* const block = capture.states[tensors[0].group];
    std::memcpy(block + tensors[0].offset, &state.digest, sizeof state.digest);
    std::memcpy(block + tensors[1].offset, &state.last, sizeof state.last);
  }

  Layers layers_;
};

}  // namespace cairn::memory::toy
