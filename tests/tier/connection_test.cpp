// Commands and replies over a socket: in their order, in time, or not at all.
#include "tier/connection.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/scratch_folder.h"
#include "tests/tier/fake_server.h"

namespace cairn::test::connection_test {
namespace {

using std::chrono::milliseconds;
using tier::Clock;
using tier::Connection;
using tier::Reply;
using Words = std::vector<std::string_view>;

class ConnectionTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Connection>> open(const std::string& password = "") {
    CAIRN_TRY(address_, tier::TierAddress::find({.url = server_.url()}));
    address_.password = password;
    return Connection::open(address_, soon(), &is_given_up_);
  }
  static Clock::time_point soon(int ms = 5000) { return Clock::now() + milliseconds(ms); }

  test::ScratchFolder folder_;
  test::FakeServer server_{folder_.file("tier.sock")};
  std::atomic<bool> is_given_up_{false};
  tier::TierAddress address_;
};

TEST_F(ConnectionTest, RepliesComeInTheOrderOfCommands) {
  Result<std::unique_ptr<Connection>> opened = open("secret");
  ASSERT_TRUE(bool(opened)) << opened.error().message;
  Connection& connection = **opened;
  const std::string large(3'000'000, 'x');
  const std::array<std::span<const std::byte>, 3> parts = {
      std::as_bytes(std::span(large)).first(1000), std::as_bytes(std::span(large)).subspan(1000),
      std::as_bytes(std::span("yz")).first(2)};
  Result<Reply> set = connection.ask(Words{"PSETEX", "a", "60000"}, 0, soon(), parts);
  ASSERT_TRUE(bool(set)) << set.error().message;
  EXPECT_EQ(set->text, "OK");
  auto a = connection.send(Words{"GET", "a"}, 4'000'000, soon());
  auto none = connection.send(Words{"GET", "b"}, 10, soon());
  auto there = connection.send(Words{"EXISTS", "a"}, 0, soon());
  ASSERT_TRUE(a && none && there);
  Result<Reply*> last = connection.wait(*there, soon());
  ASSERT_TRUE(bool(last)) << last.error().message;
  EXPECT_EQ((*last)->number, 1);
  EXPECT_EQ(connection.wait(*none, soon()).value()->kind, Reply::Kind::nothing);
  const Reply& value = *connection.wait(*a, soon()).value();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()),
            large + "yz");
}

TEST_F(ConnectionTest, AWrongLoginIsRefused) {
  const auto opened = open("wrong");
  ASSERT_FALSE(bool(opened));
  EXPECT_EQ(opened.error().code, ErrorCode::invalid_argument);
}

// What is known of a connection that failed once is that nothing fits any more.
TEST_F(ConnectionTest, EachFailureEndsIt) {
  server_.set("a", std::string(1000, 'x'));
  for (const Fault fault :
       {Fault::silent, Fault::cut, Fault::longer, Fault::list, Fault::endless}) {
    Result<std::unique_ptr<Connection>> opened = open();
    ASSERT_TRUE(bool(opened));
    server_.fail(fault);
    const auto begin = Clock::now();
    EXPECT_FALSE(bool((*opened)->ask(Words{"GET", "a"}, 2000, soon(200)))) << name_of(fault);
    EXPECT_LT(Clock::now() - begin, milliseconds(2000)) << name_of(fault);
    EXPECT_TRUE((*opened)->is_broken());
    server_.fail(Fault::none);
    EXPECT_FALSE(bool((*opened)->ask(Words{"GET", "a"}, 2000, soon())));
  }
}

TEST_F(ConnectionTest, WhoGivesUpDoesNotWait) {
  Result<std::unique_ptr<Connection>> opened = open();
  ASSERT_TRUE(bool(opened));
  server_.fail(Fault::silent);
  std::thread other([this] {
    std::this_thread::sleep_for(milliseconds(100));
    is_given_up_ = true;
  });
  const auto begin = Clock::now();
  const Result<Reply> reply = (*opened)->ask(Words{"GET", "a"}, 10, soon(30000));
  other.join();
  ASSERT_FALSE(bool(reply));
  EXPECT_EQ(reply.error().code, ErrorCode::cancelled);
  EXPECT_LT(Clock::now() - begin, milliseconds(10000));
}

TEST_F(ConnectionTest, NobodyThereIsAnErrorAtOnce) {
  const std::string url = server_.url();
  server_.stop();
  const auto opened = open();
  ASSERT_FALSE(bool(opened));
  EXPECT_EQ(opened.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace cairn::test::connection_test
