// Machines that lend each other their records: what one has computed another one does not compute,
// on every kind of memory; strangers get nothing, and nobody more than is meant for him.
#include "tier/peers/peer_server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "tests/tier/redis_server.h"
#include "tests/tier/shared_peers.h"
#include "tier/connection.h"

namespace cairn::test::peer_server_test {
namespace {

using std::chrono::milliseconds;
using tier::Clock;
using tier::Connection;
using tier::Outcome;
using tier::Reply;
using Words = std::vector<std::string_view>;

class PeersTest : public test::SharedPeers {
 protected:
  static Clock::time_point soon(int ms = 10000) { return Clock::now() + milliseconds(ms); }

  Result<std::unique_ptr<Connection>> connect(const Machine& to, const std::string& key = {}) {
    tier::TierAddress home;
    home.key = key;
    address_ = *tier::peer_address(home, to.port->address());
    return Connection::open(address_, soon(), nullptr);
  }
  // The manifests that machines have registered last.
  std::vector<Sha256Digest> manifests() const {
    std::vector<Sha256Digest> names;
    for (const auto& [key, value] : server_.values()) {
      if (!key.starts_with("c1:d:")) continue;
      for (const tier::Holder& holder :
           decode_holders(tier::Secret(""), key, std::as_bytes(std::span(value)))) {
        names.push_back(holder.manifest);
      }
    }
    return names;
  }

  tier::TierAddress address_;
};

// The bar: the second machine computes no token of what the first one has read and said, and no
// record was in the tier.
TEST_P(PeersTest, AnotherMachineComputesNothing) {
  Machine first = machine(peer_options());
  const Tokens whole = converse(*first);
  EXPECT_EQ(stats(*first).registered, 2u);
  EXPECT_EQ(keys("c1:r:"), 0u);
  EXPECT_EQ(keys("c1:m:"), 0u);
  EXPECT_EQ(keys("c1:n:"), 1u);
  Machine second = machine(peer_options());
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, 0);
  EXPECT_TRUE(report.from_peer) << report.tier;
  EXPECT_FALSE(report.from_tier);
  EXPECT_EQ(report.tier, "fetched");
  EXPECT_EQ(asked(*second, Outcome::fetched), 1u);
  EXPECT_EQ(outcomes(*second, Outcome::fetched), 1u);
  EXPECT_GT(stats(*second).peer_read_bytes, 0u);
  EXPECT_GT(stats(*first).lent_records, 0u);
  // The prompt alone, and one that parts from it.
  Machine fourth = machine(peer_options());
  EXPECT_EQ(read_rightly(*fourth, random_tokens(1, 70)).computed_tokens, 0);
  Tokens other(whole.begin(), whole.begin() + 60);
  other.resize(100, Token(9));
  Machine fifth = machine(peer_options());
  EXPECT_LT(read_rightly(*fifth, other).computed_tokens, 100);
  // It goes on there. Who has said something of it lends it, too: the first one is not needed any
  // more.
  flush(*second);
  Tokens longer = whole;
  {
    Generator generator(second.engine.get());
    longer.push_back(Token(5));
    EXPECT_EQ(read(generator, longer).computed_tokens, 1);
    answer(generator, random_tokens(3, 40));
    const auto tokens = generator.sequence().tokens();
    longer = {tokens.begin(), tokens.end()};
    flush(*second);
  }
  first = {};
  Machine third = machine(peer_options());
  const PromptReport again = read_rightly(*third, longer);
  EXPECT_EQ(again.computed_tokens, 0) << again.tier;
  EXPECT_TRUE(again.from_peer);
}

// What memory has no room for any more is lent from the folder.
TEST_P(PeersTest, TheFolderLendsWhatMemoryHasForgotten) {
  cache_dir_ = folder_.file("first");
  Machine first = machine(peer_options());
  const Tokens whole = converse(*first);
  EXPECT_GE(stats(*first).lent_sequences, 1u);
  EXPECT_TRUE((*first).sequence_store()->drain());
  EXPECT_EQ(stats(*first).lent_sequences, 0u);
  cache_dir_.clear();
  Machine second = machine(peer_options());
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, 0);
  EXPECT_TRUE(report.from_peer) << report.tier;
}

// One connection that comes to nothing, then the machine is left alone.
TEST_P(PeersTest, AKilledMachineIsAMiss) {
  Machine first = machine(peer_options());
  const Tokens whole = converse(*first);
  first = {};
  Machine second = machine(peer_options());
  EXPECT_EQ(read_rightly(*second, whole).tier, "unreachable");
  (*second).cache().clear();
  const PromptReport report = read_rightly(*second, whole);
  EXPECT_EQ(report.computed_tokens, int32_t(whole.size()));
  EXPECT_EQ(report.tier, "paused");
  EXPECT_EQ(asked(*second, Outcome::unreachable), 1u);
  EXPECT_FALSE(stats(*second).is_open) << "the tier has done nothing";
  // One that does not say any more that it lives is not even tried.
  second = {};
  for (const auto& [key, value] : server_.values()) {
    if (key.starts_with("c1:n:")) server_.forget(key);
  }
  Machine third = machine(peer_options());
  EXPECT_EQ(read_rightly(*third, whole).tier, "absent");
  EXPECT_EQ(asked(*third, Outcome::unreachable), 0u);
}

TEST_P(PeersTest, StrangersGetNothing) {
  tier::TierOptions keyed = peer_options();
  keyed.key_file = folder_.file("key");
  test::write_to(keyed.key_file, std::string(32, 'k'));
  ASSERT_EQ(::chmod(keyed.key_file.c_str(), 0600), 0);
  Machine first = machine(keyed);
  const Tokens whole = converse(*first);
  for (const std::string& key : {std::string(), std::string(32, 'l')}) {
    EXPECT_FALSE(bool(connect(first, key))) << key;
  }
  ASSERT_TRUE(bool(connect(first, std::string(32, 'k'))));
  // Nor does who knows the key talk to who does not.
  Machine second = machine(peer_options());
  EXPECT_FALSE(bool(connect(second, std::string(32, 'k'))));
  EXPECT_EQ(read_rightly(*second, whole).computed_tokens, int32_t(whole.size()));
  Machine third = machine(keyed);
  EXPECT_EQ(read_rightly(*third, whole).computed_tokens, 0);
  // Now it has said what it lends; no more is written.
  flush(*third);
  // Entries of the directory that were written without the key are nobody's.
  const std::string beginning = [&] {
    for (const auto& [key, value] : server_.values()) {
      if (key.size() > 14 && key.substr(12).starts_with("n:")) return key.substr(0, 12);
    }
    return std::string();
  }();
  ASSERT_EQ(beginning.size(), 12u);
  for (const auto& [key, value] : server_.values()) {
    if (!key.starts_with(beginning)) continue;
    std::string other = value;
    other.back() = char(other.back() ^ 1);
    server_.set(key, other);
  }
  Machine fourth = machine(keyed);
  EXPECT_EQ(read_rightly(*fourth, whole).computed_tokens, int32_t(whole.size()));
}

// So many at a time; a place is kept between two records, and given up soon.
TEST_P(PeersTest, FewAreLentToAtATime) {
  Machine first = machine(peer_options());
  converse(*first);
  const auto names = manifests();
  ASSERT_FALSE(names.empty());
  const std::string key = tier::Secret("").key_of("r:", names.front());
  const Words words = {"GETEX", key, "PX", "1000"};
  std::vector<std::unique_ptr<Connection>> connections;
  const auto ask = [&]() -> Reply {
    auto opened = connect(first);
    EXPECT_TRUE(bool(opened)) << opened.error().message;
    connections.push_back(std::move(*opened));
    Result<Reply> reply = connections.back()->ask(words, 1 << 20, soon());
    EXPECT_TRUE(bool(reply)) << reply.error().message;
    return *reply;
  };
  for (size_t place = 0; place < tier::PeerServer::kLentAtOnce; ++place) {
    EXPECT_EQ(ask().kind, Reply::Kind::bytes);
  }
  const Reply refused = ask();
  EXPECT_EQ(refused.kind, Reply::Kind::error);
  EXPECT_TRUE(refused.text.starts_with("BUSY")) << refused.text;
  EXPECT_GE(stats(*first).peer_busy, 1u);
  std::this_thread::sleep_for(tier::PeerServer::kPlaceKept + milliseconds(300));
  Result<Reply> later = connections.back()->ask(words, 1 << 20, soon());
  ASSERT_TRUE(bool(later));
  EXPECT_EQ((*later).kind, Reply::Kind::bytes);
}

// A machine that is busy is no machine that fails.
TEST_P(PeersTest, ABusyMachineIsAMiss) {
  Machine first = machine(peer_options());
  const Tokens whole = converse(*first);
  const std::string key = tier::Secret("").key_of("r:", manifests().front());
  std::atomic<bool> is_over{false};
  std::vector<std::thread> others;
  std::atomic<size_t> has_place{0};
  for (size_t place = 0; place < tier::PeerServer::kLentAtOnce; ++place) {
    others.emplace_back([&] {
      const tier::TierAddress address = *tier::peer_address({}, first.port->address());
      auto opened = Connection::open(address, soon(), nullptr);
      ASSERT_TRUE(bool(opened));
      for (bool is_first = true; !is_over; is_first = false) {
        const Words words = {"GETEX", key, "PX", "1000"};
        Result<Reply> reply = (*opened)->ask(words, 1 << 20, soon());
        ASSERT_TRUE(bool(reply)) << reply.error().message;
        if (is_first) ++has_place;
        std::this_thread::sleep_for(milliseconds(20));
      }
    });
  }
  while (has_place < tier::PeerServer::kLentAtOnce) std::this_thread::sleep_for(milliseconds(5));
  Machine second = machine(peer_options());
  EXPECT_EQ(read_rightly(*second, whole).tier, "busy");
  is_over = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(asked(*second, Outcome::busy), 1u);
  std::this_thread::sleep_for(tier::PeerServer::kPlaceKept + milliseconds(300));
  (*second).cache().clear();
  EXPECT_EQ(read_rightly(*second, whole).tier, "fetched");
}

// No more bytes a second than are meant for others, but for what was not lent before.
TEST_P(PeersTest, TheRateIsBounded) {
  tier::TierOptions slow = peer_options();
  slow.peers.bytes_per_second = 500'000;
  Machine first = machine(slow);
  converse(*first);
  const std::string key = tier::Secret("").key_of("r:", manifests().front());
  auto opened = connect(first);
  ASSERT_TRUE(bool(opened));
  const Words words = {"GETEX", key, "PX", "1000"};
  const auto begin = Clock::now();
  uint64_t bytes = 0;
  while (bytes < 2'000'000) {
    Result<Reply> reply = (*opened)->ask(words, 1 << 20, soon());
    ASSERT_TRUE(bool(reply)) << reply.error().message;
    ASSERT_EQ((*reply).kind, Reply::Kind::bytes);
    bytes += (*reply).bytes.size();
  }
  EXPECT_GE(Clock::now() - begin, milliseconds(1800));
}

// Connections that say nothing end, and so many that none is left do not keep machines out.
TEST_P(PeersTest, SilentStrangersAreSentAway) {
  Machine first = machine(peer_options());
  const Tokens whole = converse(*first);
  const tier::TierAddress address = *tier::peer_address({}, first.port->address());
  std::vector<std::unique_ptr<tier::Wire>> silent;
  for (size_t count = 0; count < tier::PeerServer::kStrangersMax; ++count) {
    auto wire = tier::Wire::connect(address, soon(), nullptr);
    ASSERT_TRUE(bool(wire));
    silent.push_back(std::move(*wire));
  }
  std::array<std::byte, 1> byte{};
  for (const auto& wire : silent) EXPECT_FALSE(bool(wire->read(byte, soon())));
  Machine second = machine(peer_options());
  EXPECT_EQ(read_rightly(*second, whole).computed_tokens, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PeersTest,
                         ::testing::Values("llama", "gemma3", "granitehybrid", "mamba"),
                         [](const auto& one) { return std::string(one.param); });

TEST(PeerServer, ListensWhereStrangersCannotComeOrHaveNoKey) {
  const auto listen = [](const std::string& where, const std::string& seen = {},
                         const std::string& key_file = {}) {
    tier::TierOptions options{.url = "unix:/nowhere", .key_file = key_file};
    options.peers.listen = where;
    options.peers.address = seen;
    return tier::PeerServer::listen(options);
  };
  const test::ScratchFolder folder;
  const std::string key = folder.file("key");
  test::write_to(key, std::string(32, 'k'));
  ASSERT_EQ(::chmod(key.c_str(), 0600), 0);
  auto open = listen("0.0.0.0:0");
  ASSERT_FALSE(bool(open));
  EXPECT_NE(open.error().message.find("--tier-key"), std::string::npos) << open.error().message;
  auto nowhere = listen("0.0.0.0:0", "", key);
  ASSERT_FALSE(bool(nowhere));
  EXPECT_NE(nowhere.error().message.find("--peer-address"), std::string::npos);
  for (const char* const wrong : {"7400", "localhost:7400", "127.0.0.1", "127.0.0.1:x"}) {
    EXPECT_FALSE(bool(listen(wrong))) << wrong;
  }
  auto seen = listen("0.0.0.0:0", "10.0.0.5:0", key);
  ASSERT_TRUE(bool(seen)) << seen.error().message;
  EXPECT_TRUE((*seen)->address().starts_with("10.0.0.5:"));
  EXPECT_FALSE((*seen)->address().ends_with(":0"));
  auto own = listen("127.0.0.1:0");
  ASSERT_TRUE(bool(own));
  EXPECT_FALSE(bool(listen((*own)->address()))) << "it is taken";
  EXPECT_NE((*own)->node(), (*seen)->node());
}

}  // namespace
}  // namespace cairn::test::peer_server_test
