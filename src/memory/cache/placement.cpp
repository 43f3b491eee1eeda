// Histogram, probabilities and losses of placement.h. Pure; constant memory but for a sequence's
// places. Probabilities are doubles: they choose what to keep and never touch a model's numbers.
#include "memory/cache/placement.h"

#include <algorithm>
#include <bit>

namespace cairn::memory {

namespace {

// Small distances each have a bucket, larger ones share one for each power of two.
size_t turn_bucket(size_t turns) {
  return turns < 4 ? turns
                   : std::min(size_t(std::bit_width(turns)) + 1, RewindHabits::kTurnBuckets - 1);
}

// After this many rewinds all counts are halved, so that old habits are forgotten.
constexpr double kLessonsMax = 2000;

}  // namespace

size_t RewindHabits::distance_sort(int32_t distance) {
  return kFirstDistance + size_t(std::bit_width(uint32_t(distance)));
}

std::vector<size_t> RewindHabits::sorts(std::span<const Place> places) {
  std::vector<size_t> sorts(places.size(), kSortCount);
  size_t messages_behind = 0;
  for (size_t index = places.size(); index-- > 0;) {
    const Place& place = places[index];
    if (!is_border(place.kind)) continue;
    sorts[index] = size_t(place.kind) * kTurnBuckets + turn_bucket(messages_behind);
    if (place.kind == AnchorKind::message_start) ++messages_behind;
  }
  const auto opening = std::find_if(places.begin(), places.end(), [](const Place& place) {
    return place.kind == AnchorKind::message_start && place.position > 0;
  });
  if (opening != places.end()) sorts[size_t(opening - places.begin())] = kOpening;
  return sorts;
}

void RewindHabits::learn(std::span<const Place> places, int32_t length, int32_t target) {
  const std::vector<size_t> sort_of = sorts(places);
  size_t sort = distance_sort(length - target);
  for (size_t index = 0; index < places.size(); ++index) {
    if (places[index].position == target && sort_of[index] != kSortCount) sort = sort_of[index];
  }
  counts_[sort] += 1;
  learned_ += 1;
  if (learned_ < kLessonsMax) return;
  for (double& count : counts_) count = (count - 1) / 2 + 1;
  learned_ /= 2;
}

TargetMass::TargetMass(const RewindHabits& habits, std::span<const Place> places, int32_t length)
    : length_(length) {
  const std::vector<size_t> sorts = RewindHabits::sorts(places);
  std::array<int32_t, RewindHabits::kSortCount + 1> members{};
  for (const size_t sort : sorts) ++members[sort];
  const size_t farthest = RewindHabits::distance_sort(length);
  double total = 0;  // Of the sorts that this sequence has.
  for (size_t sort = 0; sort <= farthest; ++sort) {
    if (members[sort] > 0 || sort >= RewindHabits::kFirstDistance) total += habits.count(sort);
  }
  const double unit = (1 - kEvenPart) / total;
  double sum = 0;
  for (size_t index = 0; index < places.size(); ++index) {
    const size_t sort = sorts[index];
    if (sort == RewindHabits::kSortCount) continue;
    sum += unit * habits.count(sort) / members[sort];
    points_.push_back({places[index].position, sum});
  }
  bands_.push_back({0, length + 1, kEvenPart});
  for (size_t sort = RewindHabits::kFirstDistance; sort <= farthest; ++sort) {
    const size_t bits = sort - RewindHabits::kFirstDistance;  // Of the distances in this band.
    const int32_t from = bits == 0 ? 0 : int32_t(uint32_t{1} << (bits - 1));
    const int64_t to = int64_t{1} << bits;
    bands_.push_back(
        {from, int32_t(std::min<int64_t>(to, int64_t{length} + 1)), unit * habits.count(sort)});
  }
}

double TargetMass::before(int32_t position) const {
  const auto next =
      std::lower_bound(points_.begin(), points_.end(), position,
                       [](const Point& point, int32_t bound) { return point.position < bound; });
  double mass = next == points_.begin() ? 0 : std::prev(next)->mass_up_to;
  for (const Band& band : bands_) {
    // Positions before `position` are those farther from the end than length - position.
    const int32_t from = std::max(band.from, length_ - position + 1);
    if (from < band.to) mass += band.mass * (band.to - from) / (band.to - band.from);
  }
  return mass;
}

double loss(const TargetMass& mass, std::span<const ResumePoint> points, size_t index) {
  const int32_t position = points[index].position;
  const int32_t before = index == 0 ? 0 : points[index - 1].position;
  const int32_t next = index + 1 == points.size() ? mass.length() + 1 : points[index + 1].position;
  return mass.between(position, next) * (position - before);
}

}  // namespace cairn::memory
