// The state of a text in a grammar: a set of stacks over the automaton's states. Sets are numbered,
// equal sets have equal numbers, and the step from a set by a byte is cached: a table that is built
// lazily, as in a lazy DFA. Knows bytes, no tokens. Invariant: a number stays valid until
// collect(). One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/automaton.h"

namespace cairn::grammar {

// Finds numbers by hash; the caller compares keys. Open addressing, never more than half full.
class NumberIndex {
 public:
  template <class IsEqual>
  uint32_t find(uint64_t hash, const IsEqual& is_equal) const {
    for (size_t at = hash & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].number == kNone) return kNone;
      if (slots_[at].hash == hash && is_equal(slots_[at].number)) return slots_[at].number;
    }
  }
  void insert(uint64_t hash, uint32_t number);
  void clear();
  size_t byte_size() const { return slots_.size() * sizeof(Slot); }

 private:
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = kNone;
  };
  void place(Slot slot);

  std::vector<Slot> slots_ = std::vector<Slot>(64);
  size_t used_ = 0;
};

class Stacks {
 public:
  using Set = uint32_t;
  static constexpr Set kDead = 0;          // No stack is left: the text does not fit.
  static constexpr Set kOver = kNone - 1;  // More stacks or work than allowed.

  // A state on top, and what to do when its rule ends.
  struct Item {
    uint32_t state, frame;
    bool operator==(const Item&) const = default;
    auto operator<=>(const Item&) const = default;
  };

  // REQUIRES: the automaton outlives this.
  explicit Stacks(const Automaton& automaton);

  // Work that step() may do until this is called again.
  void set_work(int64_t work) { work_ = work; }

  Set start() { return start_; }
  // One byte further, or kDead, or kOver.
  Set step(Set from, uint8_t byte) {
    const size_t at = size_t(from) * class_count_ + automaton_.class_of[byte];
    return steps_[at] != kNone ? steps_[at] : make_step(from, byte);
  }
  // Behind a token of this pattern, or kDead, or kOver.
  Set step_token(Set from, std::span<const uint32_t> patterns);

  // All stacks of both.
  Set join(Set first, Set second);

  std::span<const Item> items(Set set) const {
    return std::span(items_).subspan(sets_[set].begin, sets_[set].count);
  }
  bool is_accepting(Set set) const { return sets_[set].is_accepting; }

  // A set from which the same texts of at most `bytes` bytes go on: counters that are far from
  // their limits become equal, and states that merge_states() says are. Work is not counted: it is
  // as much as the set is large.
  Set nearby(Set set, uint32_t bytes);
  // From now on nearby() takes states for one that no text of at most `bytes` bytes tells apart.
  void merge_states(uint32_t bytes);

  size_t byte_size() const;
  // Forgets all but these sets, which get new numbers.
  void collect(std::span<Set> kept);

 private:
  struct Frame {
    uint32_t target, repeat, parent;
    int32_t count;
    bool operator==(const Frame&) const = default;
  };
  struct SetInfo {
    uint32_t begin, count;
    bool is_accepting;
  };
  static constexpr uint32_t kBottom = 0;

  Set make_step(Set from, uint8_t byte);
  Set finish(std::vector<Item>& seeds);
  void add(uint32_t state, uint32_t frame);
  void expand(Item item);
  void pop(uint32_t frame);
  void begin_body(uint32_t repeat, int32_t count, uint32_t target, uint32_t parent);
  uint32_t behind(uint32_t target, uint32_t parent);
  uint32_t intern(const Frame& frame);
  Set intern(std::span<const Item> items, bool is_accepting);
  uint32_t nearby_frame(uint32_t frame, uint32_t bytes);
  uint32_t nearby_state(uint32_t state, uint32_t bytes) const {
    return bytes <= merged_bytes_ && !merged_.empty() ? merged_[state] : state;
  }
  bool mark(uint64_t key);

  const Automaton& automaton_;
  size_t class_count_;
  Set start_ = kDead;
  std::vector<Frame> frames_;
  NumberIndex frame_index_;
  std::vector<Item> items_;
  std::vector<SetInfo> sets_;
  NumberIndex set_index_;
  std::vector<Set> steps_;  // [set, class]; kNone: not yet known.
  int64_t work_ = 0;

  // Of the step that is being made.
  std::vector<Item> waiting_;
  std::vector<Item> result_;
  bool is_accepting_ = false;
  std::vector<uint64_t> marks_;  // Open addressing; a key and the round it was seen in.
  std::vector<uint32_t> mark_rounds_;
  size_t mark_count_ = 0;
  uint32_t round_ = 0;

  std::vector<uint32_t> merged_;  // For each state the one that stands for it; may be empty.
  uint32_t merged_bytes_ = 0;

  // nearby_frame()'s memory, for one number of bytes at a time.
  std::vector<uint32_t> nearby_frames_;
  uint32_t nearby_bytes_ = 0;
};

}  // namespace cairn::grammar
