// Slots of keys, what servers say of them, and when they are asked again.
#include "tier/cluster.h"

#include <gtest/gtest.h>

namespace cairn::test::cluster_test {
namespace {

using std::chrono::seconds;
using tier::Cluster;
using tier::Redirect;
using tier::Reply;
using tier::slot_of;
using Kind = Reply::Kind;

Reply number(int64_t value) {
  return {.kind = Kind::number, .number = value};
}
Reply bytes(const std::string& text) {
  Reply reply{.kind = Kind::bytes};
  for (const char sign : text) reply.bytes.push_back(std::byte(sign));
  return reply;
}
Reply list(std::vector<Reply> items) {
  Reply reply{.kind = Kind::list};
  reply.items = std::move(items);
  return reply;
}
Reply range(int64_t first, int64_t last, const std::string& host, int64_t port) {
  return list({number(first), number(last), list({bytes(host), number(port), bytes("id")})});
}
Redirect moved(const std::string& text) {
  return Redirect::read({.kind = Kind::error, .text = text}).value();
}

class ClusterTest : public ::testing::Test {
 protected:
  tier::TierAddress home_ = tier::TierAddress::find({.url = "redis://127.0.0.1:7000"}).value();
  Cluster cluster_{&home_, 1};
};

// The check value of CRC-16/XMODEM, and slots that redis-server 7.0 has said.
TEST_F(ClusterTest, SlotsAreThoseOfTheServers) {
  EXPECT_EQ(slot_of("123456789"), 0x31c3 % 16384);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of(""), 0);
}

TEST_F(ClusterTest, RedirectsAreReadStrictly) {
  const Redirect there = moved("MOVED 3999 10.0.0.7:6381");
  EXPECT_TRUE(there.is_for_good);
  EXPECT_EQ(there.slot, 3999);
  EXPECT_EQ(there.server, "10.0.0.7:6381");
  EXPECT_FALSE(moved("ASK 0 ::1:7").is_for_good);
  for (const char* const text : {"MOVED", "MOVED 1", "MOVED 16384 a:1", "MOVED -1 a:1",
                                 "MOVED x a:1", "ASKING 1 a:1", "ERR MOVED 1 a:1", "moved 1 a:1"}) {
    EXPECT_FALSE(Redirect::read({.kind = Kind::error, .text = text})) << text;
  }
  EXPECT_FALSE(Redirect::read({.kind = Kind::text, .text = "MOVED 3999 10.0.0.7:6381"}));
}

TEST_F(ClusterTest, IsLearnedFromTheFirstReplyThatLeadsElsewhere) {
  EXPECT_FALSE(cluster_.is_known());
  EXPECT_FALSE(cluster_.begin_refresh());
  cluster_.note_moved(moved("MOVED 5 127.0.0.1:7001"));
  EXPECT_TRUE(cluster_.is_known());
  EXPECT_FALSE(cluster_.is_complete());
  EXPECT_EQ(cluster_.shard_of(5)->name, "127.0.0.1:7001");
  EXPECT_EQ(cluster_.shard_of(6), nullptr);
  EXPECT_TRUE(cluster_.begin_refresh());
}

TEST_F(ClusterTest, TakesWhatIsListedAndForgetsTheRest) {
  cluster_.note_moved(moved("MOVED 5 127.0.0.1:7009"));
  ASSERT_TRUE(bool(cluster_.take(list({range(0, 99, "127.0.0.1", 7001), range(100, 16000, "", 7002),
                                       range(16001, 16382, "name.example", 7003)}))));
  EXPECT_TRUE(cluster_.is_complete());
  EXPECT_EQ(cluster_.shard_of(99)->name, "127.0.0.1:7001");
  EXPECT_TRUE(cluster_.shard_of(99)->address);
  EXPECT_TRUE(cluster_.shard_of(100)->address) << "the host that was asked";
  EXPECT_FALSE(cluster_.shard_of(16001)->address) << "names are not looked up";
  EXPECT_EQ(cluster_.shard_of(16383), nullptr);
  std::set<std::string> names;
  for (int turn = 0; turn < 4; ++turn) names.insert(cluster_.any_shard()->name);
  EXPECT_EQ(names, (std::set<std::string>{"", "127.0.0.1:7001", ":7002", "name.example:7003"}))
      << "that of the URL is one of them";
  // How a server did is remembered as long as it has slots.
  const auto before = cluster_.shard_of(0);
  ASSERT_TRUE(bool(cluster_.take(list({range(0, 16383, "127.0.0.1", 7001)}))));
  EXPECT_EQ(cluster_.shard_of(16383), before);
}

TEST_F(ClusterTest, WhatIsNoListOfSlotsChangesNothing) {
  ASSERT_TRUE(bool(cluster_.take(list({range(0, 16383, "127.0.0.1", 7001)}))));
  for (const Reply& wrong :
       {number(1), list({}), list({number(1)}), list({list({number(0), number(1)})}),
        list({range(0, 16384, "127.0.0.1", 1)}), list({range(5, 4, "127.0.0.1", 1)}),
        list({range(-1, 4, "127.0.0.1", 1)}), list({list({number(0), number(1), list({})})}),
        list({range(0, 1, "127.0.0.1", 7002), number(3)}),
        list({range(0, 16383, "127.0.0.1", 7002), range(0, 0, "127.0.0.1", 7003)})}) {
    const Status taken = cluster_.take(wrong);
    ASSERT_FALSE(bool(taken));
    EXPECT_EQ(taken.error().code, ErrorCode::invalid_data);
    EXPECT_EQ(cluster_.shard_of(0)->name, "127.0.0.1:7001");
  }
}

// However many replies lead elsewhere.
TEST_F(ClusterTest, SlotsAreAskedForEveryFiveSecondsAtMost) {
  const auto begin = tier::Breaker::Clock::now();
  cluster_.note_moved(moved("MOVED 5 127.0.0.1:7001"));
  EXPECT_TRUE(cluster_.begin_refresh(begin));
  cluster_.note_moved(moved("MOVED 6 127.0.0.1:7001"));
  EXPECT_FALSE(cluster_.begin_refresh(begin + seconds(4)));
  EXPECT_TRUE(cluster_.begin_refresh(begin + seconds(5)));
  ASSERT_TRUE(bool(cluster_.take(list({range(0, 16383, "127.0.0.1", 7001)}))));
  EXPECT_FALSE(cluster_.begin_refresh(begin + seconds(50))) << "nothing is out of date";
  cluster_.note_stale();
  EXPECT_TRUE(cluster_.begin_refresh(begin + seconds(50)));
}

TEST_F(ClusterTest, NobodyIsBelievedToHaveAThousandServers) {
  for (int port = 1; port <= 2000; ++port) {
    cluster_.note_moved(moved("MOVED 5 127.0.0.1:" + std::to_string(port)));
  }
  EXPECT_NE(cluster_.shard_named("127.0.0.1:999"), nullptr);
  EXPECT_EQ(cluster_.shard_named("127.0.0.1:1000"), nullptr);
  EXPECT_EQ(cluster_.shard_named("no port"), nullptr);
}

TEST_F(ClusterTest, KnowsWhoIsLeftAlone) {
  ASSERT_TRUE(bool(cluster_.take(
      list({range(0, 99, "127.0.0.1", 7001), range(100, 16383, "127.0.0.1", 7002)}))));
  EXPECT_FALSE(cluster_.is_open());
  for (int failure = 0; failure < 5; ++failure) cluster_.shard_of(0)->reads.note_failure();
  EXPECT_TRUE(cluster_.is_open());
  EXPECT_EQ(cluster_.opened(), 1u);
  EXPECT_TRUE(cluster_.shard_of(0)->writes.admits());
  EXPECT_TRUE(cluster_.shard_of(100)->reads.admits());
}

}  // namespace
}  // namespace cairn::test::cluster_test
