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

// Of a position, the block and the references to it that the sequence itself has.
class OwnBlocks {
 public:
  OwnBlocks(const Pool& pool, Runs& runs) : pool_(pool), runs_(runs) {}
  ~OwnBlocks() { flush(); }
  OwnBlocks(const OwnBlocks&) = delete;
  OwnBlocks& operator=(const OwnBlocks&) = delete;

  // A block belongs to one position, so that references to it are neighbours.
  void add(const BlockRef& ref, int32_t position) {
    if (!ref) return;
    if (refs_ == 0 || ref.block() != block_) flush();
    block_ = ref.block();
    position_ = position;
    ++refs_;
  }

 private:
  void flush() {
    if (refs_ > 0) runs_.add({position_, position_, pool_.ref_count(block_) - refs_});
    refs_ = 0;
  }

  const Pool& pool_;
  Runs& runs_;
  PageId block_ = kNoPage;
  int32_t position_ = 0, refs_ = 0;
};

}  // namespace

std::vector<GroupMap> SequenceMap::of(const Sequence& sequence, size_t runs_max) {
  std::vector<GroupMap> groups;
  if (sequence.is_closed()) return groups;
  const Store& store = *sequence.store_;
  for (int32_t group = 0; group < store.group_count(); ++group) {
    const GroupSpec& spec = store.spec(group);
    const Pool& pool = store.pool(group);
    GroupMap& map = groups.emplace_back();
    Runs runs(map, runs_max);
    if (spec.has_pages()) {
      const PageTable& table = sequence.tables_[size_t(group)];
      for (int32_t page = table.first_kept(); page < table.size(); ++page) {
        if (table[page] == kNoPage) continue;
        const int32_t begin = page * spec.page_tokens();
        const int32_t end = std::min(sequence.length(), begin + spec.page_tokens());
        runs.add({begin, end, pool.ref_count(table[page]) - 1});
      }
    } else {
      const bool is_state = spec.kind == GroupKind::recurrent;
      OwnBlocks blocks(pool, runs);
      for (const Anchor& anchor : sequence.anchors_) {
        blocks.add(is_state ? anchor.state : anchor.hidden, anchor.position);
      }
      blocks.add(is_state ? sequence.state_ : sequence.hidden_, sequence.length());
    }
    map.bytes = size_t(map.blocks) * spec.block_bytes;
  }
  return groups;
}

}  // namespace cairn::memory
