// Two servers and a real Redis: a conversation that one of them has answered goes on at the other
// one, which computes nothing of what was sent, says so, and counts it; when Redis is killed both
// answer as before.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/cli/run_program.h"
#include "tests/serve/bare_client.h"
#include "tests/serve/server_program.h"
#include "tests/tier/redis_server.h"

namespace cairn::serve::shared_tier_test {
namespace {

using nlohmann::json;

json asked(ServerProgram& server, const json& messages) {
  BareClient client = server.client();
  const json body = {{"messages", messages}, {"max_tokens", 12}, {"temperature", 0}};
  EXPECT_TRUE(client.send(post_request("/v1/chat/completions", body.dump())));
  const BareReply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200) << reply.body;
  return json::parse(reply.body, nullptr, false);
}

std::string metrics(ServerProgram& server) {
  BareClient client = server.client();
  EXPECT_TRUE(client.send(get_request("/metrics")));
  return client.read_reply().body;
}

TEST(SharedTier, AConversationGoesOnAtAnotherServer) {
  const test::ScratchFolder folder;
  test::RedisServer redis(folder.path().string());
  if (!redis.is_running()) GTEST_SKIP() << "no redis-server here";
  const std::vector<std::string> options = {"--tier", redis.url(),    "--tier-publish",
                                            "all",    "--tier-fetch", "always"};
  ServerProgram first(options), second(options), alone;
  std::string words = "Tell me of the sea.";
  for (int times = 0; times < 30; ++times) words += " And of number " + std::to_string(times) + ".";
  json messages = {{{"role", "user"}, {"content", words}}};
  const json before = asked(first, messages);
  ASSERT_FALSE(before.is_discarded());
  EXPECT_EQ(before["memory"]["tier"], "absent") << before.dump();
  const auto is_sent = [&] {
    const std::string text = metrics(first), name = "\ncairn_tier_published_total{";
    const size_t line = text.find(name);
    return line != std::string::npos && text.substr(text.find("} ", line), 4) == "} 2\n";
  };
  for (int tries = 0; tries < 500 && !is_sent(); ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  messages.push_back(before["choices"][0]["message"]);
  messages.push_back({{"role", "user"}, {"content", "And then?"}});
  const json after = asked(second, messages), expected = asked(alone, messages);
  EXPECT_EQ(after["memory"]["source"], "tier") << after.dump();
  EXPECT_EQ(after["memory"]["tier"], "fetched");
  EXPECT_LT(after["memory"]["recomputed"], 40) << after.dump();
  EXPECT_EQ(after["choices"][0]["message"], expected["choices"][0]["message"]);
  const std::string counts = metrics(second);
  EXPECT_NE(counts.find("outcome=\"fetched\"} 1\n"), std::string::npos) << counts;
  redis.kill();
  messages.push_back(after["choices"][0]["message"]);
  messages.push_back({{"role", "user"}, {"content", "Is that all? " + words}});
  const json last = asked(first, messages), last_expected = asked(alone, messages);
  EXPECT_EQ(last["choices"][0]["message"], last_expected["choices"][0]["message"]);
  EXPECT_EQ(last["memory"]["tier"], "unreachable") << last.dump();
}

// Of what belongs together one alone.
TEST(SharedTier, OptionsOfPeersNeedEachOther) {
  struct Case {
    std::vector<std::string> words;
    std::string expected;
  };
  const std::vector<std::string> lends = {"--peer-listen", "127.0.0.1:0"};
  for (const Case& one :
       {Case{{"--peer-address", "10.0.0.1:1"}, "--peer-address: expected --peer-listen beside it"},
        Case{{"--peer-tls-cert", "x"}, "--peer-tls-cert: expected --peer-listen beside it"},
        Case{{"--peer-name", "x"}, "--peer-name: expected --peer-listen beside it"},
        Case{{lends[0], lends[1], "--peer-tls-cert", "x"},
             "--peer-tls-cert: expected --peer-tls-key beside it"},
        Case{{lends[0], lends[1], "--peer-tls-key", "x"},
             "--peer-tls-key: expected --peer-tls-cert beside it"},
        Case{{lends[0], lends[1], "--peer-cacert", "x"},
             "--peer-cacert: expected --peer-tls-cert beside it"}}) {
    std::vector<std::string> words = {"serve", "--port", "0", "--tier", "unix:/x"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const cli::Finished run = cli::run_program(words);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(run.err.find(one.expected), std::string::npos) << run.err;
  }
}

TEST(SharedTier, OptionsThatCannotBeAreRefused) {
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--tier", "http://cache"},
        std::vector<std::string>{"--tier", "redis://a:b@cache"},
        std::vector<std::string>{"--tier-key", "/etc/hostname"},
        std::vector<std::string>{"--peer-listen", "127.0.0.1:0"},
        std::vector<std::string>{"--tier", "unix:/x", "--peer-listen", "0.0.0.0:0"},
        std::vector<std::string>{"--tier", "unix:/x", "--tier-publish", "some"}}) {
    std::vector<std::string> words = {"serve", "--port", "0"};
    words.insert(words.end(), wrong.begin(), wrong.end());
    const cli::Finished run = cli::run_program(words);
    EXPECT_NE(run.exit_code, 0) << wrong.back();
    EXPECT_NE(run.err.find("--tier"), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace cairn::serve::shared_tier_test
