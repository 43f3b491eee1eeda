// Outlines of sequences, and sequences of outlines.
#include "memory/archive.h"

#include <algorithm>
#include <utility>

namespace cairn::memory {

Outline Archive::outline_of(const Sequence& sequence) {
  const Store& store = *sequence.store_;
  Outline outline;
  outline.tokens.assign(sequence.tokens().begin(), sequence.tokens().end());
  for (const Anchor& anchor : sequence.anchors_) {
    outline.anchors.push_back({.position = anchor.position,
                               .kind = anchor.kind,
                               .has_state = bool(anchor.state),
                               .has_hidden = bool(anchor.hidden)});
  }
  for (const PageTable& table : sequence.tables_) {
    std::vector<PageRun>& runs = outline.runs.emplace_back();
    for (int32_t page = table.first_kept(); page < table.size(); ++page) {
      if (table[page] == kNoPage) continue;
      if (runs.empty() || runs.back().end() < page) runs.push_back({.first = page, .count = 0});
      ++runs.back().count;
    }
  }
  outline.log_begin = store.has_log() ? sequence.log_begin_ : sequence.length();
  outline.protected_from = sequence.protected_from_;
  outline.has_state = bool(sequence.state_);
  outline.has_hidden = bool(sequence.hidden_);
  return outline;
}

DeviceBytes Archive::page(const Sequence& sequence, int32_t group, int32_t page) {
  const PageTable& table = sequence.tables_[size_t(group)];
  if (page >= table.size() || table[page] == kNoPage) return {};
  const Pool& pool = sequence.store_->pool(group);
  return {pool.address(table[page]), pool.block_bytes()};
}

DeviceBytes Archive::named(const Sequence& sequence, int32_t position, int32_t group,
                           BlockRef Sequence::*at_end, BlockRef Anchor::*at_anchor) {
  const BlockRef* block = &(sequence.*at_end);
  if (position != sequence.length() || !*block) {
    const Anchor* const anchor = sequence.anchor_at(position);
    if (anchor == nullptr) return {};
    block = &(anchor->*at_anchor);
  }
  if (!*block) return {};
  return {block->address(), sequence.store_->spec(group).block_bytes};
}

DeviceBytes Archive::state(const Sequence& sequence, int32_t position) {
  const int32_t group = sequence.store_->layout().recurrent_group;
  return named(sequence, position, group, &Sequence::state_, &Anchor::state);
}

DeviceBytes Archive::hidden(const Sequence& sequence, int32_t position) {
  const int32_t group = sequence.store_->layout().hidden_group;
  return named(sequence, position, group, &Sequence::hidden_, &Anchor::hidden);
}

size_t Assembly::needed_bytes(const Layout& layout, const Outline& outline) {
  const auto block_bytes = [&](int32_t group) { return layout.groups[size_t(group)].block_bytes; };
  size_t bytes = 0;
  for (size_t group = 0; group < outline.runs.size(); ++group) {
    for (const PageRun& run : outline.runs[group]) {
      bytes += size_t(run.count) * block_bytes(int32_t(group));
    }
  }
  if (layout.recurrent_group >= 0) {
    bytes += outline.state_positions().size() * block_bytes(layout.recurrent_group);
  }
  if (layout.hidden_group >= 0) {
    bytes += outline.hidden_positions().size() * block_bytes(layout.hidden_group);
  }
  return bytes;
}

Result<Assembly> Assembly::begin(Memory& memory, const Outline& outline, Variant variant) {
  CAIRN_TRY(check(outline, memory.layout()));
  const int32_t length = outline.length();
  if (length > memory.options().context_tokens_max) {
    return fail(ErrorCode::context_full, "context: {} tokens are needed, {} fit", length,
                memory.options().context_tokens_max);
  }
  const int32_t resume = resume_position(outline, memory.layout(), length, false);
  if (resume != length) {
    return fail(ErrorCode::invalid_data,
                "sequence: expected what is needed to go on at {}, found it for {} at most", length,
                resume);
  }
  Assembly assembly(memory.new_sequence(variant));
  const Store& store = *assembly.sequence_.store_;
  const size_t bytes = needed_bytes(store.layout(), outline);
  if (bytes > store.available_bytes() || !assembly.take_blocks(outline)) {
    return fail(ErrorCode::memory_full,
                "memory budget: {} tokens need {} bytes, {} of {} bytes are free", length, bytes,
                store.available_bytes(), memory.options().budget_bytes);
  }
  return assembly;
}

BlockRef Assembly::take(int32_t group) {
  Store& store = *sequence_.store_;
  const PageId block = store.take(group, sequence_.variant().tenant);
  return block == kNoPage ? BlockRef() : BlockRef(&store.pool(group), block);
}

bool Assembly::take_blocks(const Outline& outline) {
  const Store& store = *sequence_.store_;
  sequence_.tokens_.append(outline.tokens);
  for (int32_t group = 0; group < store.group_count(); ++group) {
    if (!store.spec(group).has_pages()) continue;
    if (!take_pages(group, outline.runs[size_t(group)])) return false;
  }
  if (!take_named(outline)) return false;
  sequence_.protected_from_ = outline.protected_from;
  sequence_.log_begin_ = store.has_log() || store.has_states() ? outline.log_begin : 0;
  return true;
}

bool Assembly::take_pages(int32_t group, std::span<const PageRun> runs) {
  Store& store = *sequence_.store_;
  PageTable& table = sequence_.tables_[size_t(group)];
  for (const PageRun& run : runs) {
    while (table.size() < run.first) table.push(kNoPage);
    for (int32_t page = 0; page < run.count; ++page) {
      const PageId taken = store.take(group, sequence_.variant().tenant);
      if (taken == kNoPage) return false;
      table.push(taken);
    }
  }
  const int32_t page_count = store.spec(group).page_count(sequence_.length());
  while (table.size() < page_count) table.push(kNoPage);
  return true;
}

// States and rows. What the end has is the same block as that of an anchor there.
bool Assembly::take_named(const Outline& outline) {
  const Layout& layout = sequence_.store_->layout();
  for (const OutlineAnchor& described : outline.anchors) {
    Anchor anchor{
        .position = described.position, .kind = described.kind, .state = {}, .hidden = {}};
    if (described.has_state) anchor.state = take(layout.recurrent_group);
    if (described.has_hidden) anchor.hidden = take(layout.hidden_group);
    if (bool(anchor.state) != described.has_state) return false;
    if (bool(anchor.hidden) != described.has_hidden) return false;
    sequence_.anchors_.push_back(std::move(anchor));
  }
  const Anchor* const last = sequence_.anchor_at(sequence_.length());
  if (last != nullptr) sequence_.state_ = last->state;
  if (last != nullptr) sequence_.hidden_ = last->hidden;
  if (outline.has_state && !sequence_.state_) {
    sequence_.state_ = take(layout.recurrent_group);
    if (!sequence_.state_) return false;
  }
  if (!outline.has_hidden || sequence_.hidden_) return true;
  sequence_.hidden_ = take(layout.hidden_group);
  return bool(sequence_.hidden_);
}

Sequence Assembly::finish() && {
  sequence_.trim_log();
  sequence_.drop_unneeded_pages();
  return std::move(sequence_);
}

}  // namespace cairn::memory
