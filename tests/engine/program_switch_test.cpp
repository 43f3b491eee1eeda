// Programs of one model change between the turns of a conversation, over one store and one folder
// of packed weights: each answer is that of a fresh run of its program, and nothing is read that
// another program has kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "engine/generator.h"
#include "tests/engine/random_adapter.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"

namespace cairn::test::program_switch_test {
namespace {

using Tokens = std::vector<Token>;

size_t common_prefix(const Tokens& a, const Tokens& b) {
  const auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return size_t(at - a.begin());
}

std::vector<float> logits_of(const Generator& generator) {
  return {generator.logits().begin(), generator.logits().end()};
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ProgramSwitchTest : public test::SmallPagesTest<std::string> {
 protected:
  std::vector<models::ProgramChoice> programs() const {
    std::vector<models::ProgramChoice> programs = {
        {}, {.exit_layer = 2}, {.skipped_layers = {1}}, {.skipped_layers = {0, 2}}};
    if (GetParam() == "mixtral") {
      programs.push_back({.expert_count = 1});
      programs.push_back({.skipped_layers = {1}, .expert_count = 5});
    }
    return programs;
  }

  std::unique_ptr<Engine> engine(const models::ProgramChoice& program, bool has_store) const {
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = 16;
    options.log_step = 8;
    options.program = program;
    if (has_store) {
      options.cache_dir = folder_.file("store");
      options.pack_cache = folder_.path().string();
    }
    return load_engine(golden_path(GetParam(), ".gguf"), options);
  }

  test::ScratchFolder folder_;
};

TEST_P(ProgramSwitchTest, FiftyTurnsOverOneStore) {
  std::mt19937 random(7);
  const std::vector<models::ProgramChoice> programs = this->programs();
  std::map<size_t, std::unique_ptr<Engine>> fresh;
  std::map<size_t, std::vector<Tokens>> held;  // What each program has kept.
  Tokens conversation;
  int64_t reused = 0;
  for (int32_t turn = 0; turn < 50; ++turn) {
    const size_t which = random() % programs.size();
    const auto now = engine(programs[which], true);
    ASSERT_NE(now, nullptr);
    if (fresh[which] == nullptr) fresh[which] = engine(programs[which], false);
    const auto any = [&] {
      return Token(int32_t(random() % uint32_t(now->size().vocabulary_count)));
    };
    // The next turn, or an earlier one again.
    if (random() % 4 == 0 || conversation.size() > 80) {
      conversation.resize(conversation.size() / (1 + random() % 3));
    }
    for (int32_t i = 0; i < 7; ++i) conversation.push_back(any());
    Generator generator(now.get());
    Result<PromptReport> report = generator.read(conversation, {});
    ASSERT_TRUE(bool(report)) << report.error().message;
    size_t known = 0;
    for (const Tokens& other : held[which]) {
      known = std::max(known, common_prefix(other, conversation));
    }
    const size_t kept = size_t(int64_t(conversation.size()) - report->computed_tokens);
    EXPECT_LE(kept, known) << "turn " << turn << " of program " << which;
    reused += int64_t(kept);
    fresh[which]->cache().clear();
    Generator alone(fresh[which].get());
    ASSERT_TRUE(bool(alone.read(conversation, {})));
    EXPECT_TRUE(same_bits(logits_of(generator), logits_of(alone))) << "turn " << turn;
    for (int32_t i = 0; i < 3; ++i) {
      conversation.push_back(any());
      ASSERT_TRUE(bool(generator.advance(conversation.back())));
      ASSERT_TRUE(bool(alone.advance(conversation.back())));
      EXPECT_TRUE(same_bits(logits_of(generator), logits_of(alone))) << "turn " << turn;
    }
    ASSERT_TRUE(bool(generator.finish_turn()));
    now->sequence_store()->drain();
    held[which].push_back(conversation);
  }
  EXPECT_GT(reused, 200) << "programs find what they have kept themselves";
  // Packed weights: of each set of layers.
  size_t packs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    packs += entry.path().extension() == ".cairnpack" ? 1 : 0;
  }
  EXPECT_EQ(packs, 4u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, ProgramSwitchTest,
                         ::testing::Values("llama", "gemma3", "granitehybrid", "mixtral"),
                         [](const auto& each) { return each.param; });

// Its changes of a layer that does not run change nothing, and those of the others do.
TEST(ProgramSwitch, AdaptersChangeTheLayersThatRun) {
  const test::ScratchFolder folder;
  write_random_adapter(golden_path("llama", ".gguf"), folder.file("tone.gguf"), 3);
  EngineOptions options = golden_options(KvType::f16);
  options.program = {.skipped_layers = {1}};
  const auto plain = load_engine(golden_path("llama", ".gguf"), options);
  options.adapters = {{.path = folder.file("tone.gguf")}};
  const auto adapted = load_engine(golden_path("llama", ".gguf"), options);
  ASSERT_TRUE(plain != nullptr && adapted != nullptr);
  const auto logits = [](Engine& engine) {
    Generator generator(&engine);
    EXPECT_TRUE(bool(generator.read(Tokens{Token(1), Token(5), Token(9)}, {})));
    return logits_of(generator);
  };
  EXPECT_FALSE(same_bits(logits(*plain), logits(*adapted)));
}

}  // namespace
}  // namespace cairn::test::program_switch_test
