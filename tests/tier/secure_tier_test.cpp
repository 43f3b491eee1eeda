// A real server behind TLS and a login that allows what docs/tier.md says and nothing else.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/held_port.h"
#include "tests/serve/certificates.h"
#include "tests/tier/redis_cluster.h"
#include "tests/tier/shared_engines.h"

namespace cairn::test::secure_tier_test {
namespace {

// The words behind "user cairn on #<…>" in docs/tier.md.
std::vector<std::string> documented_rights() {
  const std::string text = test::contents_of(CAIRN_SOURCE "/docs/tier.md");
  const size_t begin = text.find("resetkeys ~c1:*");
  EXPECT_NE(begin, std::string::npos);
  std::istringstream words(text.substr(begin, text.find('\n', begin) - begin));
  std::vector<std::string> rights;
  for (std::string word; words >> word;) rights.push_back(word);
  return rights;
}

class SecureTierTest : public test::SharedEngines {
 protected:
  std::string secret(const std::string& name, const std::string& text) const {
    const std::string path = folder_.file(name);
    test::write_to(path, text);
    EXPECT_EQ(::chmod(path.c_str(), 0600), 0);
    return path;
  }

  // Of a server under TLS that lets one user in, with the rights of the documentation.
  static std::vector<std::string> words_of(const serve::Pair& pair,
                                           std::vector<std::string> words) {
    for (const std::string& word : std::vector<std::string>{
             "--tls-cert-file", pair.certificate, "--tls-key-file", pair.key, "--tls-ca-cert-file",
             pair.certificate, "--tls-auth-clients", "no", "--user", "cairn", "on", ">a word"}) {
      words.push_back(word);
    }
    const std::vector<std::string> rights = documented_rights();
    words.insert(words.end(), rights.begin(), rights.end());
    return words;
  }

  // Of who is that user, and has the key.
  tier::TierOptions secure_options(const std::string& url, const serve::Pair& pair) const {
    tier::TierOptions tier = options(url);
    tier.authority_path = pair.certificate;
    tier.login_file = secret("login", "cairn:a word\n");
    tier.key_file = secret("key", std::string(40, 'k'));
    tier.uses_leases = true;
    return tier;
  }
};

TEST_P(SecureTierTest, WhoIsLetInFindsWhatOthersSent) {
  const serve::Pair pair = serve::make_pair_in(folder_.path(), "tier", {.names = "IP:127.0.0.1"});
  const test::HeldPort port;
  test::RedisServer redis(folder_.path().string(),
                          words_of(pair, {"--tls-port", port.name(), "--bind", "127.0.0.1"}));
  if (!redis.is_running()) GTEST_SKIP() << "no redis-server with TLS here";
  tier::TierOptions tier = secure_options("rediss://127.0.0.1:" + port.name(), pair);
  const Tokens prompt = random_tokens(1, 1060);
  {
    const auto first = engine(tier);
    Generator generator(first.get());
    EXPECT_EQ(read(generator, prompt).computed_tokens, 1060);
    flush(*first);
    EXPECT_EQ(stats(*first).publish_failures, 0u);
    EXPECT_EQ(outcomes(*first, tier::Outcome::unreachable), 0u);
  }
  const auto second = engine(tier);
  const PromptReport report = read_rightly(*second, prompt);
  EXPECT_EQ(report.computed_tokens, 0) << report.tier;
  // Others are not let in, or do not believe the server.
  tier.login_file = secret("other", "cairn:another word");
  const auto third = engine(tier);
  EXPECT_EQ(read_rightly(*third, prompt).tier, "unreachable");
  tier.login_file = folder_.file("login");
  tier.authority_path.clear();
  const auto fourth = engine(tier);
  const PromptReport doubted = read_rightly(*fourth, prompt);
  EXPECT_EQ(doubted.computed_tokens, 1060);
  EXPECT_EQ(doubted.tier, "unreachable");
}

// The same login and the rights of the documentation, of a cluster whose servers speak TLS alone.
TEST_P(SecureTierTest, AClusterLetsInAsOneServerDoes) {
  const serve::Pair pair = serve::make_pair_in(folder_.path(), "tier", {.names = "IP:127.0.0.1"});
  test::RedisCluster redis(folder_.path().string(),
                           {.more = words_of(pair, {"--tls-cluster", "yes"}),
                            .cli = {"--tls", "--cacert", pair.certificate},
                            .is_secure = true});
  if (!redis.is_running()) GTEST_SKIP() << "no redis-server with TLS here";
  ASSERT_TRUE(redis.is_joined());
  tier::TierOptions tier = secure_options(redis.url(0), pair);
  const Tokens prompt = random_tokens(1, 1060);
  const auto first = engine(tier);
  {
    Generator generator(first.get());
    EXPECT_EQ(read(generator, prompt).computed_tokens, 1060);
    flush(*first);
  }
  EXPECT_EQ(stats(*first).publish_failures, 0u);
  // A slot on its way, so that all kinds of commands come.
  const std::string key = redis.say(1, "RANDOMKEY");
  ASSERT_TRUE(key.starts_with("c1:")) << key;
  redis.begin_migration(tier::slot_of(key), 1, 2);
  const auto second = engine(tier);
  EXPECT_EQ(read_rightly(*second, prompt).computed_tokens, 0);
  EXPECT_EQ(stats(*second).breaker_openings, 0u);
  for (size_t master = 0; master < redis.size(); ++master) {
    EXPECT_EQ(redis.say(master, "ACL LOG"), "") << "something that was not allowed";
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SecureTierTest, ::testing::Values("granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::secure_tier_test
