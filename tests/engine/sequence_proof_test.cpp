// A sequence is proved where all of it is as computed; any changed byte of it shows.
#include "engine/sequence_proof.h"

#include <gtest/gtest.h>

#include "engine/generator.h"
#include "memory/archive.h"
#include "tests/models/golden_model.h"

namespace cairn::test::sequence_proof_test {
namespace {

class SequenceProofTest : public ::testing::TestWithParam<std::string> {};

TEST_P(SequenceProofTest, EveryChangedByteShows) {
  EngineOptions options = golden_options(KvType::f16);
  options.log_step = 8;
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), options);
  ASSERT_NE(engine, nullptr);
  std::vector<Token> prompt;
  for (int32_t index = 0; index < 75; ++index) prompt.push_back(Token(index * 7 % 300));
  Generator generator(engine.get());
  const std::vector<int32_t> message_starts = {40};
  ASSERT_TRUE(bool(generator.read(prompt, {.message_starts = message_starts})));
  for (int32_t index = 0; index < 5; ++index) ASSERT_TRUE(bool(generator.advance(Token(index))));
  ASSERT_TRUE(bool(generator.finish_turn()));
  const memory::Sequence stored = generator.sequence();

  const SequenceProof honest = prove_sequence(*engine, stored).value();
  EXPECT_EQ(honest.tokens, 80);
  EXPECT_GT(honest.compared_bytes, 1000u);
  EXPECT_EQ(honest.differing_bytes, 0u) << honest.first_difference;

  const memory::Layout& layout = engine->memory().layout();
  const memory::Outline outline = memory::Archive::outline_of(stored);
  // Byte 3 is the exponent of an f32.
  const auto expect_noticed = [&](DeviceBytes block, const char* what, size_t offset = 0) {
    ASSERT_TRUE(block.exists());
    block.data[offset + 3] ^= std::byte{0x40};
    const SequenceProof proof = prove_sequence(*engine, stored).value();
    EXPECT_GT(proof.differing_bytes, 0u) << what;
    EXPECT_FALSE(proof.first_difference.empty());
    block.data[offset + 3] ^= std::byte{0x40};
  };
  for (int32_t group = 0; group < int32_t(layout.groups.size()); ++group) {
    for (const memory::PageRun& run : outline.runs[size_t(group)]) {
      // The log may begin within its page; its last row is that of token 79.
      const bool is_log = group == layout.log_group;
      const size_t offset = is_log ? 7 * sizeof(float) * size_t(layout.log_planes[0].width) : 0;
      const int32_t page = is_log ? run.end() - 1 : run.first;
      expect_noticed(memory::Archive::page(stored, group, page), "a page", offset);
    }
  }
  for (const int32_t position : outline.state_positions()) {
    expect_noticed(memory::Archive::state(stored, position), "a state");
  }
  for (const int32_t position : outline.hidden_positions()) {
    expect_noticed(memory::Archive::hidden(stored, position), "a hidden row");
  }
  EXPECT_EQ(prove_sequence(*engine, stored).value().differing_bytes, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SequenceProofTest,
                         ::testing::Values("llama", "gemma3", "llama4", "granitehybrid", "mamba",
                                           "lfm2", "qwen3next"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace cairn::test::sequence_proof_test
