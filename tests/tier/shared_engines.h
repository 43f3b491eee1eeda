// For tests: engines that share a tier, and what a prompt's logits are where nobody remembers
// anything.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/generator.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"
#include "tier/tier_member.h"

namespace cairn::test {

class SharedEngines : public test::SmallPagesTest<const char*> {
 protected:
  using Tokens = std::vector<Token>;

  // What does not depend on how busy the machine is.
  tier::TierOptions options(const std::string& url) const {
    tier::TierOptions made{.url = url};
    made.publishing = tier::Publishing::all;
    made.fetching = tier::Fetching::always;
    made.uses_leases = false;
    made.times.connect = made.times.look_up = std::chrono::seconds(10);
    made.times.write = std::chrono::seconds(20);
    return made;
  }

  EngineOptions engine_options() const {
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = 16;
    options.log_step = 8;
    options.cache_audit_interval = 0;
    options.cache_dir = cache_dir_;
    return options;
  }

  std::unique_ptr<Engine> engine(const tier::TierOptions& tier) const {
    EngineOptions options = engine_options();
    options.open_tier = tier::opener_of(tier);
    return load_engine(golden_path(GetParam(), ".gguf"), options);
  }

  static Tokens random_tokens(uint32_t seed, int32_t count) {
    std::mt19937 random(seed);
    Tokens tokens;
    for (int32_t index = 0; index < count; ++index) {
      tokens.push_back(Token(int32_t(random() % 256)));
    }
    return tokens;
  }

  static PromptReport read(Generator& generator, const Tokens& prompt) {
    const std::vector<int32_t> starts = {40};
    Result<PromptReport> report = generator.read(prompt, {.message_starts = starts});
    EXPECT_TRUE(bool(report)) << (report ? "" : report.error().message);
    return report ? *report : PromptReport();
  }

  static void answer(Generator& generator, const Tokens& tokens) {
    for (const Token token : tokens) ASSERT_TRUE(bool(generator.advance(token)));
    ASSERT_TRUE(bool(generator.finish_turn()));
  }

  static void flush(Engine& engine) {
    ASSERT_TRUE(engine.sequence_store()->tier()->flush(std::chrono::seconds(60)));
  }

  static tier::TierStats stats(Engine& engine) { return engine.sequence_store()->tier()->stats(); }
  static uint64_t outcomes(Engine& engine, tier::Outcome outcome) {
    return stats(engine).outcomes[size_t(outcome)];
  }

  static std::vector<float> logits_of(const Generator& generator) {
    return {generator.logits().begin(), generator.logits().end()};
  }

  // Of an engine that has no tier.
  const std::vector<float>& fresh(const Tokens& prompt) {
    if (fresh_engine_ == nullptr) fresh_engine_ = engine({});
    std::vector<float>& logits = fresh_logits_[prompt];
    if (!logits.empty()) return logits;
    fresh_engine_->cache().clear();
    Generator generator(fresh_engine_.get());
    EXPECT_EQ(read(generator, prompt).computed_tokens, int32_t(prompt.size()));
    return logits = logits_of(generator);
  }

  // Reads it, with the right bits.
  PromptReport read_rightly(Engine& engine, const Tokens& prompt) {
    Generator generator(&engine);
    const PromptReport report = read(generator, prompt);
    const std::vector<float>& expected = fresh(prompt);
    const std::vector<float> found = logits_of(generator);
    EXPECT_EQ(found.size(), expected.size());
    const bool is_equal =
        found.size() == expected.size() &&
        std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0;
    EXPECT_TRUE(is_equal) << "other bits";
    return report;
  }

  test::ScratchFolder folder_;
  std::string cache_dir_;

 private:
  std::unique_ptr<Engine> fresh_engine_;
  std::map<Tokens, std::vector<float>> fresh_logits_;
};

}  // namespace cairn::test
