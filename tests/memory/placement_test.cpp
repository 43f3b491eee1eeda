// Where states are worth keeping: probabilities that add up, losses computed by hand, and losses
// against the definition, the mean replay over all targets with and without a state.
#include "memory/cache/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace cairn::memory::placement_test {
namespace {

std::vector<Place> random_places(std::mt19937& random, int32_t length) {
  std::vector<Place> places;
  for (int32_t position = 0; position <= length; ++position) {
    if (random() % 9 == 0) places.push_back({position, AnchorKind(random() % 4)});
  }
  return places;
}

// Tokens to compute again on average, from the definition.
double expected_replay(const TargetMass& mass, const std::vector<ResumePoint>& points) {
  double sum = 0;
  for (int32_t target = 0; target <= mass.length(); ++target) {
    int32_t start = 0;
    for (const ResumePoint& point : points) {
      if (point.position <= target) start = point.position;
    }
    sum += mass.between(target, target + 1) * (target - start);
  }
  return sum;
}

TEST(RewindHabits, SortsPlacesByKindAndByMessagesBehindThem) {
  using Kind = AnchorKind;
  const std::vector<Place> places = {{10, Kind::message_start}, {20, Kind::prompt_end},
                                     {25, Kind::tail},          {30, Kind::answer_end},
                                     {31, Kind::message_start}, {40, Kind::prompt_end}};
  constexpr size_t kTurns = RewindHabits::kTurnBuckets;
  const std::vector<size_t> expected = {RewindHabits::kOpening,
                                        kTurns * size_t(Kind::prompt_end) + 1,
                                        RewindHabits::kSortCount,
                                        kTurns * size_t(Kind::answer_end) + 1,
                                        kTurns * size_t(Kind::message_start) + 0,
                                        kTurns * size_t(Kind::prompt_end) + 0};
  EXPECT_EQ(RewindHabits::sorts(places), expected);
  EXPECT_EQ(RewindHabits::distance_sort(0), RewindHabits::kFirstDistance);
  EXPECT_EQ(RewindHabits::distance_sort(7), RewindHabits::kFirstDistance + 3);
  EXPECT_LT(RewindHabits::distance_sort(std::numeric_limits<int32_t>::max()),
            RewindHabits::kSortCount);
}

TEST(RewindHabits, FarPlacesShareTheirSort) {
  std::vector<Place> places;
  for (int32_t turn = 0; turn < 100; ++turn) {
    places.push_back({turn * 10 + 1, AnchorKind::message_start});
  }
  const std::vector<size_t> sorts = RewindHabits::sorts(places);
  EXPECT_EQ(sorts[99], 0u);  // The last message.
  EXPECT_EQ(sorts[96], 3u);
  EXPECT_EQ(sorts[95], 4u);
  EXPECT_EQ(sorts[92], 4u);
  EXPECT_EQ(sorts[91], 5u);
  EXPECT_EQ(sorts[1], 7u);
  EXPECT_EQ(sorts[0], RewindHabits::kOpening);
}

TEST(RewindHabits, LearnsAndForgets) {
  const std::vector<Place> places = {{10, AnchorKind::message_start},
                                     {50, AnchorKind::message_start}};
  RewindHabits habits;
  for (int32_t lesson = 0; lesson < 100; ++lesson) habits.learn(places, 80, 50);
  EXPECT_EQ(habits.count(0), 101);
  EXPECT_GT(TargetMass(habits, places, 80).between(50, 51), 0.75);
  // Other habits, many times: the old ones fade.
  for (int32_t lesson = 0; lesson < 20000; ++lesson) habits.learn(places, 80, 10);
  EXPECT_LT(habits.count(0), 1.1);
  EXPECT_GT(TargetMass(habits, places, 80).between(10, 11), 0.8);
}

TEST(TargetMass, AddsUpToOneAndIsNeverNothing) {
  std::mt19937 random(1);
  for (int32_t round = 0; round < 200; ++round) {
    const int32_t length = int32_t(random() % 300);
    const std::vector<Place> places = random_places(random, length);
    RewindHabits habits;
    for (int32_t lesson = 0; lesson < 20; ++lesson) {
      habits.learn(places, length, int32_t(random() % uint32_t(length + 1)));
    }
    const TargetMass mass(habits, places, length);
    EXPECT_NEAR(mass.between(0, length + 1), 1, 1e-12);
    for (int32_t position = 0; position <= length; ++position) {
      EXPECT_GE(mass.between(position, position + 1), TargetMass::kEvenPart / (length + 1) - 1e-12);
    }
  }
}

TEST(TargetMass, ByHand) {
  // No places, length 3: distances 0, 1 and {2, 3} are three sorts seen once each.
  const TargetMass mass(RewindHabits(), {}, 3);
  EXPECT_NEAR(mass.between(3, 4), 0.85 / 3 + 0.15 / 4, 1e-12);
  EXPECT_NEAR(mass.between(2, 3), 0.85 / 3 + 0.15 / 4, 1e-12);
  EXPECT_NEAR(mass.between(1, 2), 0.85 / 6 + 0.15 / 4, 1e-12);
  EXPECT_NEAR(mass.between(0, 1), 0.85 / 6 + 0.15 / 4, 1e-12);
  // Farther than 3 from the end there are only 4 of the 4..7: positions 0..3 of length 7.
  const TargetMass longer(RewindHabits(), {}, 7);
  EXPECT_NEAR(longer.between(0, 4), 0.85 / 4 + 0.15 / 2, 1e-12);
}

TEST(Loss, ByHand) {
  const std::vector<Place> places = {{10, AnchorKind::message_start},
                                     {50, AnchorKind::message_start}};
  RewindHabits habits;
  for (int32_t lesson = 0; lesson < 2; ++lesson) habits.learn(places, 63, 50);
  // Sorts: the last message 3, the opening 1, distances 0, 1, 2, 4, 8, 16, 32: 7. In all 11.
  const TargetMass mass(habits, places, 63);
  const std::vector<ResumePoint> points = {{10}, {50}};
  // From 50: the message; distances 0, 1, 2.., 4.. and six of the eight from 8 to 15.
  const double expected_50 = (0.85 * (3 + 4 + 6.0 / 8) / 11 + 0.15 * 14 / 64) * 40;
  EXPECT_NEAR(loss(mass, points, 1), expected_50, 1e-9);
  // From 10 up to 50: the opening; distances 14 and 15, 16..31, and 32..53 of 32..63.
  const double expected_10 = (0.85 * (1 + 2.0 / 8 + 1 + 22.0 / 32) / 11 + 0.15 * 40 / 64) * 10;
  EXPECT_NEAR(loss(mass, points, 0), expected_10, 1e-9);
}

TEST(Loss, IsTheDifferenceOfExpectedReplay) {
  std::mt19937 random(2);
  for (int32_t round = 0; round < 300; ++round) {
    const int32_t length = 1 + int32_t(random() % 200);
    const std::vector<Place> places = random_places(random, length);
    RewindHabits habits;
    for (int32_t lesson = 0; lesson < 30; ++lesson) {
      habits.learn(places, length, int32_t(random() % uint32_t(length + 1)));
    }
    const TargetMass mass(habits, places, length);
    std::vector<ResumePoint> points;
    for (int32_t position = 1; position <= length; ++position) {
      if (random() % 12 == 0) points.push_back({position});
    }
    const double whole = expected_replay(mass, points);
    for (size_t index = 0; index < points.size(); ++index) {
      std::vector<ResumePoint> fewer = points;
      fewer.erase(fewer.begin() + std::ptrdiff_t(index));
      const double difference = expected_replay(mass, fewer) - whole;
      ASSERT_NEAR(loss(mass, points, index), difference, 1e-9);
    }
  }
}

}  // namespace
}  // namespace cairn::memory::placement_test
