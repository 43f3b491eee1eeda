// A tier that evicts is found out by what was sent, one that does not as well; and soon.
#include "tier/room.h"

#include <gtest/gtest.h>

#include <deque>

namespace cairn::test::room_test {
namespace {

using std::chrono::seconds;
using tier::Room;

constexpr seconds kKept(1800);

Sha256Digest name_of(uint64_t number) {
  return Sha256().add(number).finish();
}

// A tier that has room for so many records; the oldest goes. One is sent each second.
class Tier {
 public:
  explicit Tier(size_t most) : most_(most) {}

  void run(Room& room, int64_t seconds_left) {
    for (; seconds_left > 0; --seconds_left) {
      const auto now = Room::Clock::time_point(seconds(++second_));
      for (int count = 0; count < 4; ++count) {
        const auto name = room.next(now);
        if (!name) break;
        bool is_there = false;
        for (const Sha256Digest& each : kept_) is_there |= each == *name;
        room.note_found(is_there);
      }
      kept_.push_back(name_of(uint64_t(second_)));
      room.note_sent(kept_.back(), now);
      while (kept_.size() > most_) kept_.pop_front();
    }
  }
  void set_most(size_t most) { most_ = most; }

 private:
  size_t most_;
  int64_t second_ = 0;
  std::deque<Sha256Digest> kept_;
};

// Of a hundred sequences so many would get a place.
int places(Room& room) {
  int count = 0;
  for (int index = 0; index < 100; ++index) count += int(room.has_place());
  return count;
}

TEST(Room, IsNotKnownBeforeSomethingHasStayed) {
  Room room(kKept, 1);
  EXPECT_EQ(places(room), 0);
  Tier tier(5000);
  tier.run(room, kKept.count() / 6);
  EXPECT_EQ(places(room), 0) << "what is new is there in any tier";
  tier.run(room, 50);
  EXPECT_GT(places(room), 0);
  EXPECT_LT(places(room), 60) << "it is filled little by little";
  tier.run(room, 300);
  EXPECT_EQ(places(room), 100);
}

TEST(Room, IsWhereWhatWasSentStaysAsLongAsItShould) {
  for (const size_t most : {200, 500, 1000}) {
    Room room(kKept, 1);
    Tier tier(most);
    tier.run(room, 1800);
    int count = 0;
    for (int minute = 0; minute < 60; ++minute) {
      tier.run(room, 60);
      count += places(room);
    }
    EXPECT_LT(count, 60 * 5) << most;
  }
  Room room(kKept, 1);
  Tier tier(1600);
  tier.run(room, 900);
  for (int minute = 0; minute < 60; ++minute) {
    tier.run(room, 60);
    EXPECT_EQ(places(room), 100) << minute;
  }
}

TEST(Room, IsFoundGoneAndBack) {
  Room room(kKept, 1);
  Tier tier(5000);
  tier.run(room, 3600);
  EXPECT_EQ(places(room), 100);
  tier.set_most(300);
  tier.run(room, 30);
  EXPECT_LT(places(room), 20);
  tier.set_most(5000);
  tier.run(room, 3600);
  EXPECT_EQ(places(room), 100);
}

TEST(Room, WhatIsAdmittedDependsOnUseAndRoom) {
  using tier::admitted_length;
  using tier::Publishing;
  EXPECT_EQ(admitted_length(Publishing::second_use, 0, 100, false), 0);
  EXPECT_EQ(admitted_length(Publishing::second_use, 49, 100, false), 49);
  EXPECT_EQ(admitted_length(Publishing::second_use, 50, 100, false), 100) << "it goes on";
  EXPECT_EQ(admitted_length(Publishing::second_use, 0, 100, true), 100);
  EXPECT_EQ(admitted_length(Publishing::all, 0, 100, false), 100);
  EXPECT_EQ(admitted_length(Publishing::nothing, 100, 100, true), 0);
}

// What it remembers is a sample, from all of the time that it looks at.
TEST(Room, RemembersOfManyOnlySome) {
  Room room(kKept, 1);
  for (int64_t count = 0; count < 1'000'000; ++count) {
    room.note_sent(name_of(uint64_t(count)),
                   Room::Clock::time_point(std::chrono::milliseconds(count)));
  }
  const auto now = Room::Clock::time_point(seconds(1000));
  for (int count = 0; count < 100; ++count) ASSERT_TRUE(room.next(now));
  // Nothing is asked for that may have had its time.
  EXPECT_FALSE(room.next(now + seconds(1600)));
  EXPECT_FALSE(Room(kKept, 1).next(now));
}

}  // namespace
}  // namespace cairn::test::room_test
