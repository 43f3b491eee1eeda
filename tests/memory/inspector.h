// A test's look inside: which blocks a sequence refers to, what its pages hold, and allocations
// that fail. Changes nothing.
#pragma once

#include <span>
#include <vector>

#include "memory/cache/prefix_cache.h"
#include "memory/memory.h"
#include "tests/memory/toy_model.h"

namespace cairn::memory {

class Inspector {
 public:
  static Store& store(Memory& memory) { return *memory.store_; }
  // For whom the cache is evicting something.
  static uint64_t asking_tenant(const PrefixCache& cache) { return cache.eviction_.asking_tenant_; }
  static const PageTable& table(const Sequence& sequence, int32_t group) {
    return sequence.tables_[size_t(group)];
  }

  // Adds one for each reference that the sequence holds to a block: [group][block].
  static void count_refs(const Sequence& sequence, std::vector<std::vector<int32_t>>& refs) {
    const Layout& layout = sequence.store_->layout();
    const auto add = [&](int32_t group, PageId block) {
      if (block == kNoPage) return;
      std::vector<int32_t>& counts = refs[size_t(group)];
      if (size_t(index_of(block)) >= counts.size()) counts.resize(size_t(index_of(block)) + 1);
      ++counts[size_t(index_of(block))];
    };
    for (int32_t group = 0; group < int32_t(sequence.tables_.size()); ++group) {
      for (const PageId page : table(sequence, group).pages()) add(group, page);
    }
    const auto add_ref = [&](int32_t group, const BlockRef& ref) {
      if (ref) add(group, ref.block());
    };
    add_ref(layout.recurrent_group, sequence.state_);
    add_ref(layout.hidden_group, sequence.hidden_);
    for (const Anchor& anchor : sequence.anchors_) {
      add_ref(layout.recurrent_group, anchor.state);
      add_ref(layout.hidden_group, anchor.hidden);
    }
  }

  // The output that `token` would have next, by reading alone: through the log where the sequence
  // rests.
  static uint64_t probe(const toy::ToyModel& model, const Sequence& sequence, Token token) {
    const Layout& layout = sequence.store_->layout();
    std::vector<const PageId*> pages;
    for (const PageTable& table : sequence.tables_) pages.push_back(table.data());
    std::vector<const std::byte*> states(pages.size(), nullptr);
    const int32_t length = sequence.length();
    int32_t state_position = length;
    if (layout.recurrent_group >= 0 && length > 0) {
      const std::byte* block = sequence.state_.address();
      if (sequence.is_suspended()) {
        const int32_t base = sequence.base_anchor();
        state_position = base < 0 ? 0 : sequence.anchors_[size_t(base)].position;
        block = base < 0 ? nullptr : sequence.anchors_[size_t(base)].state.address();
      }
      states[size_t(layout.recurrent_group)] = block;
    }
    const Slice slice{.row_count = 0,
                      .first_position = length,
                      .pages = pages.data(),
                      .states = states.data(),
                      .captures = {}};
    const uint64_t embedded = toy::embed(token, length, sequence.variant());
    return output_of(model, layout, slice, state_position, embedded);
  }

 private:
  static uint64_t output_of(const toy::ToyModel& model, const Layout& layout, const Slice& slice,
                            int32_t state_position, uint64_t embedded) {
    const int32_t position = slice.first_position;
    uint64_t x = embedded;
    std::vector<uint64_t> own(model.layers().size());  // By the layer that owns the plane.
    for (size_t layer = 0; layer < own.size(); ++layer) {
      for (const State& state : model.layers()[layer]) {
        if (state.kind == State::Kind::recurrent) {
          toy::ToyState kept = model.load_state(layout, layer, slice);
          for (int32_t row = state_position; row < position; ++row) {
            kept.next(model.logged(layout, layer, slice, row));
          }
          x = toy::mix(x, kept.next(x));
          continue;
        }
        const bool is_shared = state.kind == State::Kind::shared;
        if (!is_shared) own[layer] = x;
        const State& window = model.seen_through(layout, layer);
        uint64_t sum = 0;
        for (int32_t seen = toy::first_visible(window, position); seen < position; ++seen) {
          sum = toy::fold(sum, model.load(layout, layer, slice, seen));
        }
        x = toy::mix(x, toy::fold(sum, own[is_shared ? size_t(state.shared_layer) : layer]));
      }
    }
    return x;
  }
};

}  // namespace cairn::memory
