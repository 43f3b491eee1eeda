// For tests: engines that share a tier in which nothing but a directory is kept, and lend each
// other their records.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/tier/fake_server.h"
#include "tests/tier/shared_engines.h"
#include "tier/peers/peer_server.h"

namespace cairn::test {

class SharedPeers : public SharedEngines {
 protected:
  tier::TierOptions peer_options(const std::string& listen = "127.0.0.1:0") const {
    tier::TierOptions made = options(server_.url());
    made.publishing = tier::Publishing::nothing;
    made.peers.listen = listen;
    return made;
  }

  // A machine: its port and its engine, which goes first.
  struct Machine {
    std::shared_ptr<tier::PeerServer> port;
    std::unique_ptr<Engine> engine;
    tier::TierOptions options;

    Engine& operator*() const { return *engine; }
  };
  Machine machine(const tier::TierOptions& options) {
    Machine made{.port = nullptr, .engine = nullptr, .options = options};
    auto listens = tier::PeerServer::listen(options);
    EXPECT_TRUE(bool(listens)) << (listens ? "" : listens.error().message);
    if (!listens) return made;
    made.port = *listens;
    EngineOptions loaded = engine_options();
    loaded.open_tier = tier::opener_of(options, made.port);
    made.engine = load_engine(golden_path(GetParam(), ".gguf"), loaded);
    return made;
  }

  // A conversation of a prompt and an answer, of which others know then.
  Tokens converse(Engine& engine, uint32_t seed = 1) {
    Generator generator(&engine);
    read(generator, random_tokens(seed, 70));
    answer(generator, random_tokens(seed + 1, 13));
    flush(engine);
    const auto tokens = generator.sequence().tokens();
    return {tokens.begin(), tokens.end()};
  }

  static uint64_t asked(Engine& engine, tier::Outcome outcome) {
    return stats(engine).peers[size_t(outcome)];
  }
  size_t keys(const std::string& beginning) const {
    size_t count = 0;
    for (const auto& [key, value] : server_.values()) count += size_t(key.starts_with(beginning));
    return count;
  }

  FakeServer server_{folder_.file("tier.sock")};
};

}  // namespace cairn::test
