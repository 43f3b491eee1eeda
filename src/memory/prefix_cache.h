// Timelines that nobody uses just now, kept for as long as the memory's budget has room for them:
// the place to look for the longest part of a prompt that is already there. Lets go of what is
// worth least when an active sequence needs room; never touches what an active sequence holds. Not
// thread-safe: the engine's thread owns it. Must not outlive its Memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/memory.h"
#include "memory/placement.h"
#include "memory/timeline.h"

namespace cairn::memory {

class PrefixCache {
 public:
  static constexpr size_t kTimelinesMax = 256;  // More would make looking up slow.

  explicit PrefixCache(Memory* memory) : memory_(memory) {}

  struct Found {
    const Sequence* sequence = nullptr;  // Valid until the cache changes; null: nothing of use.
    int32_t shared_tokens = 0;           // The tokens at its beginning that the prompt begins with.
    ResumePlan plan;             // Of standing at shared_tokens: memory.at() carries it out.
    int32_t foreign_tokens = 0;  // That a timeline of another variant shares: of no use.
  };
  // The timeline of this variant from which the prompt can be reached with the fewest tokens to
  // read. Learns from the prompt where timelines are taken up again.
  Found find(std::span<const Token> prompt, Variant variant, bool wants_logits);

  // Keeps a timeline. Others that are its beginning and hold nothing that it lacks go; where
  // another holds all that this one does, that one stays and counts as used.
  void keep(Sequence sequence);

  // Memory::begin and begin_replay; where there is no room, what is worth least is let go of: of
  // what is kept here, and of the anchors of `sequence`. No other sequence loses anything, and
  // nothing is lost where even all of it would not be enough.
  Result<Transaction> begin(Sequence& sequence, const StepRequest& request);
  Result<Replay> begin_replay(Sequence& sequence, int32_t piece_rows);

  void clear() { timelines_.clear(); }
  size_t timeline_count() const { return timelines_.size(); }
  // What clear() would free.
  size_t evictable_bytes() const;
  const RewindHabits& habits() const { return habits_; }

 private:
  void mark_used(Timeline& timeline);
  static bool begins_with(const Sequence& sequence, const Sequence& beginning);
  bool covers(const Sequence& sequence, const Sequence& beginning) const;
  std::vector<Place> places_of(const Sequence& sequence) const;
  size_t block_bytes(int32_t group) const;
  bool make_room(Sequence& sequence, size_t needed_bytes, size_t wanted_bytes);

  Memory* memory_;
  RewindHabits habits_;
  std::vector<Timeline> timelines_;
  double clock_ = 0;  // Of evictions: the worth of what went last.
  int64_t use_count_ = 0;
};

}  // namespace cairn::memory
