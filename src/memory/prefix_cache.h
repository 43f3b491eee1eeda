// Timelines that nobody uses just now, kept for as long as the memory's budget has room for them:
// the place to look for the longest part of a prompt that is already there. Lets go of what is
// worth least when an active sequence needs room; never touches what an active sequence holds. Not
// thread-safe: the engine's thread owns it. Must not outlive its Memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/memory.h"
#include "memory/placement.h"

namespace cairn::memory {

class PrefixCache {
 public:
  static constexpr size_t kTimelinesMax = 256;  // More would make looking up slow.

  explicit PrefixCache(Memory* memory) : memory_(memory) {}

  struct Found {
    const Sequence* sequence = nullptr;  // Valid until the cache changes; null: nothing of use.
    int32_t shared_tokens = 0;           // The tokens at its beginning that the prompt begins with.
    ResumePlan plan;  // Of standing at shared_tokens: memory.at() carries it out.
  };
  // The timeline from which the prompt can be reached with the fewest tokens to read. Learns from
  // the prompt where timelines are taken up again.
  Found find(std::span<const Token> prompt, bool wants_logits);

  // Keeps a timeline. Others that are its beginning and hold nothing that it lacks go; where
  // another holds all that this one does, that one stays and counts as used.
  void keep(Sequence sequence);

  // Memory::begin and begin_replay, which let go of what is worth least while there is no room:
  // kept timelines first, then anchors of `sequence` itself. Nothing is let go of where even all of
  // it would not be enough.
  Result<Transaction> begin(Sequence& sequence, const StepRequest& request);
  Result<Replay> begin_replay(Sequence& sequence, int32_t piece_rows);

  void clear() { timelines_.clear(); }
  size_t timeline_count() const { return timelines_.size(); }
  // What clear() would free.
  size_t evictable_bytes() const;
  const RewindHabits& habits() const { return habits_; }

 private:
  struct Timeline {
    Sequence sequence;
    std::vector<Place> places = {};  // Its borders, also those whose anchors are gone.
    double credit = 0;               // The clock when it was used last.
    int64_t last_use = 0;
  };

  // Something that can be let go of.
  struct Candidate {
    enum class Kind : uint8_t { anchor, window, end };
    Kind kind = Kind::anchor;
    double worth = 0;                    // The clock when it goes.
    std::vector<size_t> timelines = {};  // Which hold it: several where branches share an anchor.
    int32_t position = 0;                // The anchor's; of an end, where it parts from all others.
  };

  // An anchor of one timeline.
  struct Holder {
    int32_t position;
    PageId block;
    size_t timeline, anchor;
    double loss;
    bool is_base;  // A resting timeline needs it.
  };

  void mark_used(Timeline& timeline);
  static bool begins_with(const Sequence& sequence, const Sequence& beginning);
  bool covers(const Sequence& sequence, const Sequence& beginning) const;
  std::vector<Place> places_of(const Sequence& sequence) const;
  size_t block_bytes(int32_t group) const;
  size_t available_bytes() const;

  bool make_room(size_t needed_bytes, size_t wanted_bytes, Sequence& active);
  bool let_go_of_least(size_t goal);
  std::vector<Candidate> candidates() const;
  std::vector<int32_t> branch_positions() const;
  void add_holders(size_t index, const TargetMass& mass, std::vector<Holder>& holders) const;
  void add_anchors(std::vector<Holder> holders, std::vector<Candidate>& list) const;
  void add_window(size_t index, const TargetMass& mass, std::vector<Candidate>& list) const;
  void add_end(size_t index, int32_t branch, const TargetMass& mass,
               std::vector<Candidate>& list) const;
  void let_go(const Candidate& candidate, size_t wanted_bytes);
  void drop_anchor_at(Sequence& sequence, int32_t position);
  void cut_end(Timeline& timeline, int32_t branch, size_t wanted_bytes);
  void close_gaps();  // Where timelines were closed.
  void drop_least_used();
  size_t bytes_with_copies(const Sequence& active, size_t index) const;
  void drop_with_copies(Sequence& active, size_t index);
  void drop_anchors_of(Sequence& active, size_t wanted_bytes);

  Memory* memory_;
  RewindHabits habits_;
  std::vector<Timeline> timelines_;
  double clock_ = 0;  // GreedyDual's: the worth of what went last.
  int64_t use_count_ = 0;
};

}  // namespace cairn::memory
