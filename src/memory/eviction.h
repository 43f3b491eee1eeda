// Makes room in a memory by letting go of what is worth least among some timelines: anchors, the
// windows before the end, or the end itself. Blocks that other sequences name are not touched.
// Knows nothing of prompts. Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/memory.h"
#include "memory/placement.h"
#include "memory/timeline.h"

namespace cairn::memory {

struct Room {
  size_t needed_bytes = 0;  // Nothing is let go of where not even these can be had.
  size_t wanted_bytes = 0;
  size_t slack_bytes =
      0;  // Beyond these, from kept timelines only: so that one rarely has to look.
};

class Eviction {
 public:
  // The clock goes on from eviction to eviction, and is read where a timeline is used.
  Eviction(Memory* memory, const RewindHabits& habits, std::vector<Timeline>& timelines,
           double* clock)
      : memory_(memory), habits_(habits), timelines_(timelines), clock_(clock) {}

  // Whether the needed bytes are available now. Timelines of which nothing is left are removed.
  bool make_room(const Room& room);

  bool drop_least_used();  // A whole timeline; false if there is none that is not active.
  size_t evictable_bytes() const;

 private:
  // Something that can be let go of.
  struct Candidate {
    enum class Kind : uint8_t { anchor, window, end };
    Kind kind = Kind::anchor;
    double worth = 0;                    // The clock when it goes.
    std::vector<size_t> timelines = {};  // Which hold it: several where branches share an anchor.
    int32_t position = 0;                // The anchor's; of an end, where it parts from all others.
    bool is_active = false;              // One of the timelines is.
    bool is_last_resort = false;         // A log would be useless without it.
  };

  // An anchor of one timeline.
  struct Holder {
    int32_t position;
    PageId block;
    size_t timeline, anchor;
    double loss;
    bool is_base;  // The log goes on from it.
  };

  size_t available_bytes() const;
  bool let_go_of_least(const Room& room);
  std::vector<Candidate> candidates() const;
  std::vector<int32_t> branch_positions() const;
  void add_holders(size_t index, const TargetMass& mass, std::vector<Holder>& holders) const;
  void add_anchors(std::vector<Holder> holders, std::vector<Candidate>& list) const;
  void add_anchor(std::span<const Holder> holders, std::vector<Candidate>& list) const;
  void add_window(size_t index, const TargetMass& mass, std::vector<Candidate>& list) const;
  void add_end(size_t index, int32_t branch, const TargetMass& mass,
               std::vector<Candidate>& list) const;
  void let_go(const Candidate& candidate, size_t wanted_bytes);
  void drop_anchor_at(Sequence& sequence, int32_t position);
  void cut_end(Timeline& timeline, int32_t branch, size_t wanted_bytes);
  void close_gaps();  // Where timelines were closed.

  Memory* memory_;
  const RewindHabits& habits_;
  std::vector<Timeline>& timelines_;
  double* clock_;
};

}  // namespace cairn::memory
