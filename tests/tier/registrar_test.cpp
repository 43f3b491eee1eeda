// What a machine says to others of what it lends: at each link and at the end, beside others, again
// and again while it lives.
#include "tier/peers/registrar.h"

#include <gtest/gtest.h>

#include "tests/scratch_folder.h"
#include "tests/tier/fake_server.h"
#include "tier/peers/peer_server.h"

namespace cairn::test::registrar_test {
namespace {

using tier::Registrar;

class RegistrarTest : public ::testing::Test {
 protected:
  // A process.
  struct Process {
    std::unique_ptr<tier::Tier> tier;
    std::unique_ptr<tier::Servers> servers;
    std::unique_ptr<Registrar> registrar;
  };
  Process process() {
    tier::TierOptions options{.url = server_.url()};
    options.peers.listen = "127.0.0.1:0";
    options.times.write = std::chrono::seconds(20);
    Process made;
    made.tier = tier::Tier::open(options, tier::PeerServer::listen(options).value()).value();
    made.servers = std::make_unique<tier::Servers>(
        &made.tier->address(), &made.tier->options().times, &made.tier->cluster(),
        tier::Servers::Use::writes, &gives_up_);
    EXPECT_TRUE(bool(made.servers->connect(tier::Clock::now() + std::chrono::seconds(10))));
    made.registrar = std::make_unique<Registrar>(made.tier.get());
    return made;
  }
  std::vector<tier::Holder> holders(const std::string& key) const {
    const auto values = server_.values();
    const auto found = values.find(key);
    if (found == values.end()) return {};
    return decode_holders(tier::Secret(""), key, std::as_bytes(std::span(found->second)));
  }

  test::ScratchFolder folder_;
  test::FakeServer server_{folder_.file("tier.sock")};
  std::atomic<bool> gives_up_{false};
  const tier::Secret secret_{""};
};

TEST_F(RegistrarTest, TellsOfEachLinkAndTheEnd) {
  std::vector<Token> tokens(3 * 32 + 5);
  for (size_t index = 0; index < tokens.size(); ++index) tokens[index] = Token(int32_t(index));
  const store::Chain chain({}, tokens);
  const Sha256Digest first_manifest = Sha256().add("one").finish(),
                     second_manifest = Sha256().add("other").finish();
  Process first = process(), second = process();
  const int32_t length = int32_t(tokens.size());
  const auto add = [&](Process& one, int32_t to, const Sha256Digest& manifest) {
    return one.registrar->add(*one.servers, Registrar::entry_of(chain, to, manifest), gives_up_);
  };
  ASSERT_TRUE(bool(add(first, length, first_manifest)));
  ASSERT_TRUE(bool(add(second, 64, second_manifest)));
  const tier::Holder one{.node = first.tier->node(), .manifest = first_manifest},
      other{.node = second.tier->node(), .manifest = second_manifest};
  using Holders = std::vector<tier::Holder>;
  EXPECT_EQ(holders(secret_.key_of("d:", chain.link(1))), (Holders{other, one}));
  EXPECT_EQ(holders(secret_.key_of("d:", chain.link(2))), (Holders{other, one}));
  EXPECT_EQ(holders(secret_.key_of("d:", chain.link(3))), (Holders{one}));
  EXPECT_EQ(holders(secret_.key_of("f:", chain.key_at(length))), (Holders{one}));
  EXPECT_EQ(holders(secret_.key_of("f:", chain.key_at(64))), (Holders{other}));
  EXPECT_EQ(first.tier->stats().registered, 1u);
  // Both live, where they say.
  for (const Process* process : {&first, &second}) {
    const std::string key = secret_.key_of("n:", process->tier->node());
    const std::string value = server_.values().at(key);
    EXPECT_EQ(decode_node(secret_, key, std::as_bytes(std::span(value))),
              process->tier->peers()->address());
  }
}

TEST_F(RegistrarTest, ManyLinksTakeFewRounds) {
  std::vector<Token> tokens(32 * 600);
  const store::Chain chain({}, tokens);
  Process one = process();
  ASSERT_TRUE(bool(one.registrar->add(
      *one.servers, Registrar::entry_of(chain, int32_t(tokens.size()), {}), gives_up_)));
  size_t links = 0;
  for (const auto& [key, value] : server_.values()) links += size_t(key.starts_with("c1:d:"));
  EXPECT_EQ(links, 600u);
}

TEST_F(RegistrarTest, SaysThatItLivesEveryThreeSeconds) {
  Process one = process();
  ASSERT_TRUE(bool(one.registrar->beat(*one.servers)));
  EXPECT_EQ(server_.counts()["PSETEX"], 1);
  ASSERT_TRUE(bool(one.registrar->beat(*one.servers)));
  EXPECT_EQ(server_.counts()["PSETEX"], 1) << "it is not time yet";
  EXPECT_GT(one.registrar->next_beat(), tier::Clock::now() + std::chrono::seconds(2));
}

TEST_F(RegistrarTest, AServerThatRefusesIsAnError) {
  Process one = process();
  server_.fail(test::Fault::error);
  EXPECT_FALSE(bool(one.registrar->beat(*one.servers)));
  server_.fail(test::Fault::error, 1, "GET");
  std::vector<Token> tokens(64);
  const store::Chain chain({}, tokens);
  EXPECT_FALSE(
      bool(one.registrar->add(*one.servers, Registrar::entry_of(chain, 64, {}), gives_up_)));
  EXPECT_EQ(one.tier->stats().registered, 0u);
}

}  // namespace
}  // namespace cairn::test::registrar_test
