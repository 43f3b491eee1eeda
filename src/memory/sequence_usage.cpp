// What a sequence holds, and which of its blocks nobody else refers to.
#include <algorithm>

#include "memory/memory.h"
#include "memory/sequence_map.h"

namespace cairn::memory {

std::vector<GroupUsage> Memory::usage(const Sequence& sequence) const {
  std::vector<GroupUsage> groups;
  if (sequence.is_closed()) return groups;
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    GroupUsage usage{.kind = spec.kind, .window = spec.window};
    SequenceMap::each_block(sequence, group, [&](const HeldBlock& held) {
      ++usage.blocks;
      usage.shared += int32_t(store_->pool(group).ref_count(held.block) > held.own_refs);
      usage.tokens += held.end - held.begin;
      if (!spec.has_pages()) {
        if (usage.positions.empty() || usage.positions.back() != held.begin) {
          usage.positions.push_back(held.begin);
        }
        return;
      }
      if (usage.runs.empty() || usage.runs.back().end < held.begin) {
        usage.runs.push_back({held.begin, held.begin});
      }
      usage.runs.back().end = held.end;
    });
    usage.bytes = size_t(usage.blocks) * spec.block_bytes;
    groups.push_back(usage);
  }
  return groups;
}

size_t Memory::exclusive_bytes(const Sequence& sequence, const BlockCounts* among) const {
  if (sequence.is_closed()) return 0;
  size_t bytes = 0;
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const Pool& pool = store_->pool(group);
    SequenceMap::each_block(sequence, group, [&](const HeldBlock& held) {
      const int32_t refs = among ? among->count(group, held.block) : pool.ref_count(held.block);
      bytes += refs == held.own_refs ? store_->spec(group).block_bytes : 0;
    });
  }
  return bytes;
}

// Pages that the anchor alone needs: its neighbours' needs reach furthest to it, and the protected
// end's.
size_t Memory::anchor_exclusive_bytes(const Sequence& sequence, size_t index,
                                      const BlockCounts* among) const {
  if (index >= sequence.anchors_.size()) return 0;
  const Anchor& anchor = sequence.anchors_[index];
  size_t bytes = 0;
  const auto add = [&](int32_t group, const BlockRef& ref) {
    const bool is_exclusive = ref && ref_count(group, ref, among) == 1;
    if (is_exclusive) bytes += store_->spec(group).block_bytes;
  };
  add(layout().recurrent_group, anchor.state);
  add(layout().hidden_group, anchor.hidden);
  const int32_t end = anchor.position;
  const int32_t protected_from = std::min(sequence.protected_from_, sequence.length());
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    if (!spec.has_window()) continue;
    int32_t needed_from = first_needed(spec, protected_from);
    if (index + 1 < sequence.anchors_.size()) {
      const int32_t next = sequence.anchors_[index + 1].position;
      needed_from = std::min(needed_from, first_needed(spec, next));
    }
    const int32_t needed_to = index > 0 ? sequence.anchors_[index - 1].position : 0;
    const PageTable& table = sequence.tables_[size_t(group)];
    const int32_t first_page =
        std::max(first_needed(spec, end) / kPageTokens, spec.page_count(needed_to));
    const int32_t page_end = std::min(spec.page_count(end), needed_from / kPageTokens);
    for (int32_t page = first_page; page < page_end; ++page) {
      if (table[page] == kNoPage) continue;
      const Pool& pool = store_->pool(group);
      const int32_t refs = among ? among->count(group, table[page]) : pool.ref_count(table[page]);
      bytes += refs == 1 ? spec.block_bytes : 0;
    }
  }
  return bytes;
}

}  // namespace cairn::memory
