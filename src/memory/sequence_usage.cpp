// What a sequence holds, and which of its blocks nobody else refers to.
#include <algorithm>

#include "memory/memory.h"

namespace cairn::memory {

namespace {

// Blocks of states or rows: anchors and the end, each block once, with the references that the
// sequence itself holds. A block belongs to one position, so equal ones are neighbours.
class NamedBlocks {
 public:
  void add(const BlockRef& ref) {
    if (!ref) return;
    if (!blocks_.empty() && blocks_.back().block == ref.block()) {
      ++blocks_.back().refs;
    } else {
      blocks_.push_back({.block = ref.block(), .refs = 1});
    }
  }
  int32_t count() const { return int32_t(blocks_.size()); }
  int32_t shared_count(const Pool& pool) const {
    return int32_t(std::count_if(blocks_.begin(), blocks_.end(), [&](const Entry& entry) {
      return pool.ref_count(entry.block) > entry.refs;
    }));
  }

 private:
  struct Entry {
    PageId block;
    int32_t refs;
  };
  std::vector<Entry> blocks_;
};

}  // namespace

std::vector<GroupUsage> Memory::usage(const Sequence& sequence) const {
  std::vector<GroupUsage> groups;
  if (sequence.is_closed()) return groups;
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    const Pool& pool = store_->pool(group);
    GroupUsage usage{.kind = spec.kind, .window = spec.window};
    if (spec.has_pages()) {
      const PageTable& table = sequence.tables_[size_t(group)];
      for (int32_t page = table.first_kept(); page < table.size(); ++page) {
        if (table[page] == kNoPage) continue;
        const int32_t begin = page * spec.page_tokens();
        const int32_t end = std::min(sequence.length(), begin + spec.page_tokens());
        if (usage.runs.empty() || usage.runs.back().end < begin) {
          usage.runs.push_back({begin, end});
        }
        usage.runs.back().end = end;
        usage.tokens += end - begin;
        ++usage.blocks;
        usage.shared += int32_t(pool.is_shared(table[page]));
      }
    } else {
      const bool is_state = spec.kind == GroupKind::recurrent;
      NamedBlocks blocks;
      const auto add = [&](const BlockRef& block, int32_t position) {
        if (block && (usage.positions.empty() || usage.positions.back() != position)) {
          usage.positions.push_back(position);
        }
        blocks.add(block);
      };
      for (const Anchor& anchor : sequence.anchors_) {
        add(is_state ? anchor.state : anchor.hidden, anchor.position);
      }
      add(is_state ? sequence.state_ : sequence.hidden_, sequence.length());
      usage.blocks = blocks.count();
      usage.shared = blocks.shared_count(pool);
    }
    usage.bytes = size_t(usage.blocks) * spec.block_bytes;
    groups.push_back(usage);
  }
  return groups;
}

namespace {

// The bytes of the blocks of a sequence's states or rows, anchors' and the end's, that nobody else
// refers to. A block belongs to one position, so references to it are neighbours.
class ExclusiveNamed {
 public:
  ExclusiveNamed(int32_t group, size_t block_bytes, const BlockCounts* among)
      : group_(group), block_bytes_(block_bytes), among_(among) {}
  void add(const BlockRef& ref) {
    if (!ref) return;
    own_refs_ = ref.block() == block_ ? own_refs_ + 1 : 1;
    block_ = ref.block();
    // The last of its own references finds that there are no others.
    if (ref_count(group_, ref, among_) == own_refs_) bytes_ += block_bytes_;
  }
  size_t bytes() const { return bytes_; }

 private:
  int32_t group_;
  size_t block_bytes_;
  const BlockCounts* among_;
  PageId block_ = kNoPage;
  int32_t own_refs_ = 0;
  size_t bytes_ = 0;
};

}  // namespace

size_t Memory::exclusive_bytes(const Sequence& sequence, const BlockCounts* among) const {
  if (sequence.is_closed()) return 0;
  size_t bytes = 0;
  for (int32_t group = 0; group < store_->group_count(); ++group) {
    const GroupSpec& spec = store_->spec(group);
    if (spec.has_pages()) {
      const PageTable& table = sequence.tables_[size_t(group)];
      const Pool& pool = store_->pool(group);
      for (int32_t page = table.first_kept(); page < table.size(); ++page) {
        if (table[page] == kNoPage) continue;
        const int32_t refs = among ? among->count(group, table[page]) : pool.ref_count(table[page]);
        bytes += refs == 1 ? spec.block_bytes : 0;
      }
      continue;
    }
    const bool is_state = spec.kind == GroupKind::recurrent;
    ExclusiveNamed blocks(group, spec.block_bytes, among);
    for (const Anchor& anchor : sequence.anchors_) {
      blocks.add(is_state ? anchor.state : anchor.hidden);
    }
    blocks.add(is_state ? sequence.state_ : sequence.hidden_);
    bytes += blocks.bytes();
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
