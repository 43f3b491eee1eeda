// URLs, files with secrets, and the digest that only those who share a key can make.
#include "tier/tier_address.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/scratch_folder.h"

namespace cairn::test::tier_address_test {
namespace {

using tier::TierAddress;
using tier::TierUrl;

TEST(TierUrl, SaysWhereATierIs) {
  const auto parsed = [](const char* text) {
    Result<TierUrl> url = TierUrl::parse(text);
    EXPECT_TRUE(bool(url)) << text;
    return url ? *url : TierUrl();
  };
  EXPECT_EQ(parsed("redis://cache").host, "cache");
  EXPECT_EQ(parsed("redis://cache").port, "6379");
  EXPECT_FALSE(parsed("redis://cache").is_secure);
  EXPECT_EQ(parsed("rediss://10.0.0.7:7000/").port, "7000");
  EXPECT_TRUE(parsed("rediss://10.0.0.7:7000").is_secure);
  EXPECT_EQ(parsed("redis://[::1]:7000").host, "::1");
  EXPECT_EQ(parsed("redis://[::1]").port, "6379");
  EXPECT_EQ(parsed("unix:/run/redis.sock").unix_path, "/run/redis.sock");
  EXPECT_EQ(parsed("unix:///run/redis.sock").unix_path, "/run/redis.sock");
}

TEST(TierUrl, RefusesWhatIsNone) {
  for (const char* text :
       {"", "cache:6379", "http://cache", "redis://", "redis://:7000", "redis://cache:0",
        "redis://cache:65536", "redis://cache:7x", "redis://[::1", "redis://cache/1",
        "redis://ca che", "unix:", "unix:run.sock"}) {
    EXPECT_FALSE(bool(TierUrl::parse(text))) << text;
  }
  const Result<TierUrl> login = TierUrl::parse("redis://user:word@cache");
  ASSERT_FALSE(bool(login));
  EXPECT_NE(login.error().message.find("--tier-login"), std::string::npos);
}

class TierAddressTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.file("secret");
    test::write_to(path, text);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  test::ScratchFolder folder_;
};

TEST_F(TierAddressTest, ReadsWhatLetsItIn) {
  Result<TierAddress> both =
      TierAddress::find({.url = "unix:/x", .login_file = file("cairn:a:b\n")});
  ASSERT_TRUE(bool(both)) << both.error().message;
  EXPECT_EQ(both->user, "cairn");
  EXPECT_EQ(both->password, "a:b");
  Result<TierAddress> word = TierAddress::find({.url = "unix:/x", .login_file = file("word")});
  ASSERT_TRUE(bool(word));
  EXPECT_EQ(word->user, "");
  EXPECT_EQ(word->password, "word");
}

TEST_F(TierAddressTest, RefusesSecretsThatAreNone) {
  EXPECT_FALSE(bool(TierAddress::find({.url = "unix:/x", .login_file = file("user:")})));
  EXPECT_FALSE(bool(TierAddress::find({.url = "unix:/x", .login_file = file("word", 0644)})));
  EXPECT_FALSE(bool(TierAddress::find({.url = "unix:/x", .key_file = file("short")})));
  EXPECT_FALSE(bool(TierAddress::find({.url = "unix:/x", .key_file = folder_.file("none")})));
  EXPECT_FALSE(bool(TierAddress::find({.url = "unix:/" + std::string(200, 'x')})));
  EXPECT_FALSE(bool(TierAddress::find({.url = "redis://no-such-host.invalid"})));
  EXPECT_TRUE(bool(TierAddress::find({.url = "redis://127.0.0.1"})));
}

// What a machine says of where it is, and what it is not believed.
TEST(PeerAddress, IsOfNumbersAndThisMachinesWithoutAKey) {
  for (const char* const wrong :
       {"", "127.0.0.1", "127.0.0.1:", ":7400", "localhost:7400", "127.0.0.1:0", "127.0.0.1:65536",
        "[127.0.0.1]:7400", "::1:7400", "0.0.0.0:7400", "[::]:7400", "127.0.0.1:7400x",
        "/tmp/socket:1", "10.0.0.1:6379"}) {
    EXPECT_FALSE(tier::peer_address({}, wrong).has_value()) << wrong;
  }
  for (const char* const right : {"127.0.0.1:7400", "[::1]:7400", "127.9.9.9:1"}) {
    const auto found = tier::peer_address({}, right);
    ASSERT_TRUE(found.has_value()) << right;
    EXPECT_TRUE(found->is_peer);
    EXPECT_EQ(tier::text_of(found->sockets.front()), right);
  }
  tier::TierAddress with_key;
  with_key.key = std::string(32, 'k');
  EXPECT_TRUE(tier::peer_address(with_key, "10.0.0.1:7400").has_value());
}

}  // namespace
}  // namespace cairn::test::tier_address_test
