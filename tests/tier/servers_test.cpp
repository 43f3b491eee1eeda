// Commands to a real cluster: each gets to where its key is, also while that changes, and what one
// server has lost the others still have.
#include "tier/servers.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/sha256.h"
#include "tests/scratch_folder.h"
#include "tests/tier/redis_cluster.h"

namespace cairn::test::servers_test {
namespace {

using std::chrono::milliseconds;
using tier::Clock;
using tier::Reply;
using tier::Servers;
using tier::slot_of;
using Kind = Reply::Kind;
using Words = std::vector<std::string_view>;

class ServersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!redis_.is_running()) GTEST_SKIP() << "no redis-server here";
    ASSERT_TRUE(redis_.is_joined());
    address_ = tier::TierAddress::find({.url = redis_.url(0)}).value();
    times_.connect = times_.look_up = milliseconds(2000);
    ASSERT_TRUE(bool(servers_.connect(soon())));
  }
  // Until a reply has led elsewhere.
  void learn() {
    for (int number = 0; number < 100 && !cluster_.is_complete(); ++number) get(key(1000 + number));
    ASSERT_TRUE(cluster_.is_complete());
  }

  static Clock::time_point soon(int ms = 10000) { return Clock::now() + milliseconds(ms); }
  static std::string key(int number) {
    return "c1:r:" + hex_of(Sha256().add(std::to_string(number)).finish());
  }
  size_t home_of(const std::string& name) const { return redis_.home_of(slot_of(name)); }
  Reply get(const std::string& name, int ms = 10000) {
    Result<Reply> reply = servers_.ask(Words{"GET", name}, 10000, soon(ms));
    EXPECT_TRUE(bool(reply)) << reply.error().message;
    return reply ? *reply : Reply();
  }
  Reply set(const std::string& name, std::string_view value) {
    const std::span<const std::byte> part = std::as_bytes(std::span(value));
    Result<Reply> reply =
        servers_.ask(Words{"PSETEX", name, "60000"}, 0, soon(), std::span(&part, 1));
    EXPECT_TRUE(bool(reply)) << reply.error().message;
    return reply ? *reply : Reply();
  }
  static std::string text_of(const Reply& reply) {
    return {reinterpret_cast<const char*>(reply.bytes.data()), reply.bytes.size()};
  }

  test::ScratchFolder folder_;
  test::RedisCluster redis_{folder_.path().string()};
  tier::TierAddress address_;
  tier::TierTimes times_;
  tier::Cluster cluster_{&address_, 1};
  Servers servers_{&address_, &times_, &cluster_, Servers::Use::reads, nullptr};
};

TEST_F(ServersTest, EachKeyGoesToItsServerInOneGo) {
  std::vector<tier::PendingReply> replies;
  constexpr int kKeys = 200;
  const std::string value(100, 'x');
  for (int number = 0; number < kKeys; ++number) {
    const std::string name = key(number);
    auto sent = servers_.send(Words{"PSETEX", name, "60000", value}, 0, soon());
    ASSERT_TRUE(bool(sent));
    replies.push_back(*sent);
  }
  for (const tier::PendingReply& reply : replies) {
    const Result<Reply*> come = servers_.wait(reply, soon());
    ASSERT_TRUE(bool(come)) << come.error().message;
    EXPECT_EQ((*reply->expected).reply.text, "OK");
  }
  EXPECT_TRUE(cluster_.is_complete()) << "learned from the first reply";
  for (size_t master = 0; master < redis_.size(); ++master) {
    const int expected = [&] {
      int count = 0;
      for (int number = 0; number < kKeys; ++number) count += int(home_of(key(number)) == master);
      return count;
    }();
    EXPECT_GT(expected, 0);
    EXPECT_EQ(redis_.say(master, "DBSIZE"), std::to_string(expected));
  }
  // Another one knows at once where they are: no reply leads elsewhere.
  const std::string before = redis_.say(0, "INFO errorstats");
  for (int number = 0; number < kKeys; ++number) EXPECT_EQ(text_of(get(key(number))), value);
  EXPECT_EQ(redis_.say(0, "INFO errorstats"), before);
}

// Braces in keys would put all of them into one place.
TEST_F(ServersTest, TheLargestShardHasNotMuchMoreThanTheMean) {
  std::vector<double> bytes(redis_.size());
  std::mt19937 random(1);
  std::vector<tier::PendingReply> replies;
  for (int number = 0; number < 1500; ++number) {
    const std::string name = key(number), value(size_t(1) + random() % 20000, 'x');
    replies.push_back(servers_.send(Words{"PSETEX", name, "60000", value}, 0, soon()).value());
    bytes[home_of(name)] += double(value.size());
  }
  for (const tier::PendingReply& reply : replies) {
    ASSERT_TRUE(bool(servers_.wait(reply, soon())));
    EXPECT_EQ(reply->expected->reply.text, "OK");
  }
  const double mean = std::accumulate(bytes.begin(), bytes.end(), 0.0) / double(bytes.size());
  const double largest = std::ranges::max(bytes);
  EXPECT_LE(largest, 1.3 * mean);
  RecordProperty("largest_shard_percent", int(100 * largest / mean));
}

// A slot that is on its way: keys that were there, keys that have gone already, and new ones.
TEST_F(ServersTest, AMigratingSlotIsAskedForOnce) {
  const std::string name = key(1);
  const int slot = slot_of(name);
  const size_t from = home_of(name), to = (from + 1) % redis_.size();
  learn();
  EXPECT_EQ(get(name).kind, Kind::nothing);
  redis_.begin_migration(slot, from, to);
  // A server that was left alone, and whose trial is answered so, is back.
  tier::Breaker& breaker = cluster_.shard_of(slot)->reads;
  const auto before = tier::Clock::now() - std::chrono::seconds(60);
  for (int times = 0; times < 5; ++times) breaker.note_failure(before);
  EXPECT_EQ(get(name).kind, Kind::nothing) << "ASK, and nothing there";
  EXPECT_TRUE(breaker.admits());
  EXPECT_EQ(set(name, "new").text, "OK");
  EXPECT_EQ(text_of(get(name)), "new");
  EXPECT_EQ(redis_.say(to, "CLUSTER COUNTKEYSINSLOT " + std::to_string(slot)), "1");
  EXPECT_EQ(cluster_.shard_of(slot)->name, redis_.name(from)) << "nothing has changed for good";
  redis_.end_migration(slot, from, to);
  EXPECT_EQ(text_of(get(name)), "new");
  EXPECT_EQ(cluster_.shard_of(slot)->name, redis_.name(to));
}

// One that was moved away while others were: its keys are found, by one reply more.
TEST_F(ServersTest, AMovedSlotIsFollowed) {
  const std::string name = key(2);
  const int slot = slot_of(name);
  const size_t from = home_of(name), to = (from + 1) % redis_.size();
  learn();
  EXPECT_EQ(set(name, "old").text, "OK");
  redis_.begin_migration(slot, from, to);
  EXPECT_EQ(text_of(get(name)), "old");
  redis_.end_migration(slot, from, to);
  for (int times = 0; times < 3; ++times) EXPECT_EQ(text_of(get(name)), "old");
  EXPECT_EQ(cluster_.shard_of(slot)->name, redis_.name(to));
}

TEST_F(ServersTest, AServerThatIsGoneHasLostItsKeysAlone) {
  constexpr int kKeys = 60;
  for (int number = 0; number < kKeys; ++number) EXPECT_EQ(set(key(number), "x").text, "OK");
  // Also the one whose address is that of the tier.
  redis_.server(0).kill();
  int lost = 0, paused = 0;
  for (int number = 0; number < kKeys; ++number) {
    const Reply reply = get(key(number), 500);
    if (home_of(key(number)) != 0) {
      EXPECT_EQ(text_of(reply), "x");
      continue;
    }
    EXPECT_EQ(reply.kind, Kind::lost);
    ++(reply.text == tier::kPausedReply ? paused : lost);
  }
  EXPECT_EQ(lost, 5) << "five failures, then it is left alone";
  EXPECT_GT(paused, 5);
  EXPECT_TRUE(cluster_.is_open());
}

// One that hangs costs its time once, and replies of others that have come meanwhile are read.
TEST_F(ServersTest, AServerThatHangsHoldsNobodyElseUp) {
  constexpr int kKeys = 30;
  for (int number = 0; number < kKeys; ++number) EXPECT_EQ(set(key(number), "x").text, "OK");
  redis_.server(1).stop();
  const auto begin = Clock::now();
  const auto deadline = soon(300);
  std::vector<tier::PendingReply> replies;
  std::vector<std::string> names;
  for (int number = 0; number < kKeys; ++number) names.push_back(key(number));
  for (const std::string& name : names) {
    replies.push_back(servers_.send(Words{"GET", name}, 100, deadline).value());
  }
  for (size_t index = 0; index < names.size(); ++index) {
    const Result<Reply*> come = servers_.wait(replies[index], deadline);
    ASSERT_TRUE(bool(come)) << come.error().message;
    const Reply& reply = replies[index]->expected->reply;
    EXPECT_EQ(reply.kind, home_of(names[index]) == 1 ? Kind::lost : Kind::bytes);
  }
  EXPECT_LT(Clock::now() - begin, milliseconds(3000));
  redis_.server(1).go_on();
  for (const std::string& name : names) EXPECT_EQ(text_of(get(name)), "x") << "it is back";
}

// A cluster in which a part of the slots has nobody.
TEST_F(ServersTest, AKeyThatNobodyHasIsLost) {
  const std::string name = key(3);
  const size_t home = home_of(name);
  learn();
  EXPECT_EQ(set(name, "x").text, "OK");
  for (size_t master = 0; master < redis_.size(); ++master) {
    EXPECT_EQ(redis_.say(master, "CLUSTER DELSLOTS " + std::to_string(slot_of(name))), "OK");
  }
  EXPECT_EQ(get(name).kind, Kind::lost);
  for (int number = 10; number < 30; ++number) {
    if (home_of(key(number)) == home) {
      EXPECT_EQ(get(key(number)).kind, Kind::nothing);
    }
  }
}

TEST_F(ServersTest, WhoGivesUpDoesNotWait) {
  std::atomic<bool> is_given_up{false};
  learn();
  EXPECT_EQ(set(key(1), "x").text, "OK");
  Servers servers(&address_, &times_, &cluster_, Servers::Use::reads, &is_given_up);
  const std::string name = key(1);
  EXPECT_TRUE(bool(servers.ask(Words{"GET", name}, 100, soon())));
  redis_.server(home_of(name)).stop();
  is_given_up = true;
  const Result<Reply> reply = servers.ask(Words{"GET", name}, 100, soon());
  ASSERT_FALSE(bool(reply));
  EXPECT_EQ(reply.error().code, ErrorCode::cancelled);
  redis_.server(home_of(name)).go_on();
}

}  // namespace
}  // namespace cairn::test::servers_test
