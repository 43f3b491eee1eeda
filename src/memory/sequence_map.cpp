// Pages in runs, states and rows one by one.
#include "memory/sequence_map.h"

#include <algorithm>

namespace cairn::memory {

namespace {

class Runs {
 public:
  Runs(GroupMap& map, size_t runs_max) : map_(map), runs_max_(runs_max) {}

  void add(const HeldRun& run) {
    ++map_.blocks;
    map_.shared += int32_t(run.other_refs > 0);
    HeldRun* const last = map_.runs.empty() ? nullptr : &map_.runs.back();
    const bool goes_on = last != nullptr && map_.is_whole && run.begin < run.end &&
                         last->end == run.begin && last->other_refs == run.other_refs;
    if (goes_on) {
      last->end = run.end;
    } else if (map_.runs.size() < runs_max_) {
      map_.runs.push_back(run);
    } else {
      map_.is_whole = false;
    }
  }

 private:
  GroupMap& map_;
  size_t runs_max_;
};

}  // namespace

// Of states and rows, a block belongs to one position, so that references to it are neighbours.
void SequenceMap::each_block(const Sequence& sequence, int32_t group,
                             FunctionRef<void(const HeldBlock&)> take) {
  const GroupSpec& spec = sequence.store_->spec(group);
  if (spec.has_pages()) {
    const PageTable& table = sequence.tables_[size_t(group)];
    for (int32_t page = table.first_kept(); page < table.size(); ++page) {
      if (table[page] == kNoPage) continue;
      const int32_t begin = page * spec.page_tokens();
      const int32_t end = std::min(sequence.length(), begin + spec.page_tokens());
      take({.block = table[page], .begin = begin, .end = end});
    }
    return;
  }
  HeldBlock held;
  const auto add = [&](const BlockRef& ref, int32_t position) {
    if (!ref) return;
    if (ref.block() == held.block) {
      ++held.own_refs;
      return;
    }
    if (held.block != kNoPage) take(held);
    held = {.block = ref.block(), .begin = position, .end = position};
  };
  const bool is_state = spec.kind == GroupKind::recurrent;
  for (const Anchor& anchor : sequence.anchors_) {
    add(is_state ? anchor.state : anchor.hidden, anchor.position);
  }
  add(is_state ? sequence.state_ : sequence.hidden_, sequence.length());
  if (held.block != kNoPage) take(held);
}

std::vector<GroupMap> SequenceMap::of(const Sequence& sequence, size_t runs_max) {
  std::vector<GroupMap> groups;
  if (sequence.is_closed()) return groups;
  const Store& store = *sequence.store_;
  for (int32_t group = 0; group < store.group_count(); ++group) {
    const Pool& pool = store.pool(group);
    GroupMap& map = groups.emplace_back();
    Runs runs(map, runs_max);
    each_block(sequence, group, [&](const HeldBlock& held) {
      runs.add({held.begin, held.end, pool.ref_count(held.block) - held.own_refs});
    });
    map.bytes = size_t(map.blocks) * store.spec(group).block_bytes;
  }
  return groups;
}

}  // namespace cairn::memory
