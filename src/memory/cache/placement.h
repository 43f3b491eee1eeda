// Which kept recurrent states are worth their bytes: learns to which positions conversations are
// rewound, and estimates what losing a state would cost. Knows positions and bytes only, not
// sequences, pages or pools. Not thread-safe; the owner is one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/anchor_kind.h"

namespace cairn::memory {

// A position where something begins or ends: a message, a prompt or an answer. Places of the kind
// `tail` are no such borders and are skipped.
struct Place {
  int32_t position = 0;
  AnchorKind kind = AnchorKind::message_start;
};

// A histogram of the positions that sequences were rewound to, by sort: the end of the system
// prompt; a kind of place, so many messages ago; or, for any other position, the logarithm of its
// distance from the end.
class RewindHabits {
 public:
  static constexpr size_t kTurnBuckets = 8;       // 0, 1, 2, 3, 4.., 8.., 16.., 32.. messages ago
  static constexpr size_t kNamedKinds = 4;        // Those with is_border().
  static constexpr size_t kDistanceBuckets = 32;  // 0, 1, 2.., 4.., 8.. tokens from the end
  static constexpr size_t kOpening = kNamedKinds * kTurnBuckets;
  static constexpr size_t kFirstDistance = kOpening + 1;
  static constexpr size_t kSortCount = kFirstDistance + kDistanceBuckets;

  RewindHabits() { counts_.fill(1.0); }  // Laplace smoothing: each sort starts as seen once.

  // A sequence of `length` tokens with these places, ascending, was rewound to `target`.
  void learn(std::span<const Place> places, int32_t length, int32_t target);

  double count(size_t sort) const { return counts_[sort]; }

  // The sorts of places, in their order; kSortCount for those that are skipped.
  static std::vector<size_t> sorts(std::span<const Place> places);
  static size_t distance_sort(int32_t distance);

 private:
  std::array<double, kSortCount> counts_;
  double learned_ = 0;
};

// The probability of each position 0..length to be the one that a sequence is rewound to next.
class TargetMass {
 public:
  // The share that is spread evenly over all positions, so that a rewind that the histogram does
  // not expect is not ruinous.
  static constexpr double kEvenPart = 0.15;

  TargetMass(const RewindHabits& habits, std::span<const Place> places, int32_t length);

  // The probability of targets in [from, to).
  double between(int32_t from, int32_t to) const { return before(to) - before(from); }
  int32_t length() const { return length_; }

 private:
  double before(int32_t position) const;  // Of targets in [0, position).

  struct Point {
    int32_t position;
    double mass_up_to;  // Of this point and those before it.
  };
  // Distances in [from, to) from the end share `mass` evenly.
  struct Band {
    int32_t from, to;
    double mass;
  };

  int32_t length_;
  std::vector<Point> points_;
  std::vector<Band> bands_;
};

// A position from which a sequence can be resumed; position 0 always can and is not listed.
struct ResumePoint {
  int32_t position = 0;
};

// How many tokens more the next target will cost on average without points[index]. Each target
// costs the tokens from the nearest point at or before it; those of the targets up to the next
// point would start one point earlier. `points` ascend.
double loss(const TargetMass& mass, std::span<const ResumePoint> points, size_t index);

}  // namespace cairn::memory
