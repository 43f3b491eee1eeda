// A draft model with other tokens, by text: no bit of an answer changes, whatever the vocabularies;
// and what a model that says the right thing says is the right tokens mostly.
#include "engine/drafts/text_drafter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "engine/vocabulary_source.h"
#include "tests/engine/sampled_job.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"
#include "tests/test_name.h"
#include "tests/twin_vocabulary.h"

namespace cairn::test::text_drafter_test {
namespace {

using Tokens = std::vector<Token>;

std::string path_of(const std::string& name) {
  return golden_path(name, ".gguf");
}

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

class TextDrafters : public SmallPagesTest<const char*> {};

// Any tokens, special ones and halves of characters among them.
TEST_P(TextDrafters, ChangeNoBit) {
  const ScratchFolder folder;
  const std::string path = path_of(GetParam());
  const auto plain = load_engine(path, golden_options(KvType::f16));
  int64_t checked = 0;
  for (const double dropped : {0.0, 0.3}) {
    const auto target = load_engine(path, golden_options(KvType::f16));
    const std::string twin = folder.file("twin.gguf");
    write_twin(path, twin, dropped);
    const auto drafts = DraftModel::load(gguf::File::open(twin).value(), *target).value();
    ASSERT_TRUE(drafts->drafts_by_text());
    for (uint32_t index = 0; index < 6; ++index) {
      SampledRequest request{.prompt = random_tokens(index, 3 + 37 * int32_t(index)),
                             .token_count = 40,
                             .sampling = {.temperature = index % 3 == 0 ? 0.0f : 0.8f,
                                          .repeat_penalty = index % 2 == 0 ? 1.0f : 1.2f,
                                          .seed = index}};
      const Sampled expected = sampled_alone(*plain, request);
      request.draft_model = drafts.get();
      const Sampled found = sampled_alone(*target, request);
      EXPECT_EQ(found.tokens, expected.tokens) << index;
      EXPECT_EQ(found.digest, expected.digest) << index;
      EXPECT_EQ(found.drafts_off, "") << index;
      checked += found.checked;
    }
  }
  EXPECT_GT(checked, 100);
}

INSTANTIATE_TEST_SUITE_P(Families, TextDrafters,
                         ::testing::Values("llama", "gemma3", "mamba", "qwen3next"),
                         [](const auto& model) { return std::string(model.param); });

// A drafter goes with its text, forwards and back, and reads no more than a slice at a time.
TEST(TextDrafter, FollowsRewindsAndEdits) {
  const SmallPages small_pages;
  const ScratchFolder folder;
  const std::string path = path_of("falcon");
  const std::string twin = folder.file("twin.gguf");
  write_twin(path, twin, 0.2);
  const auto target = load_engine(path, golden_options(KvType::f16));
  const auto drafts = DraftModel::load(gguf::File::open(twin).value(), *target).value();
  TextDrafter drafter(drafts.get());
  std::mt19937 random(2);
  Tokens text = random_tokens(1, 6000);
  draft::Draft draft;
  drafter.propose({.text = text, .count_max = 4}, draft);
  EXPECT_TRUE(draft.tokens.empty());
  EXPECT_TRUE(drafter.is_reading());
  size_t drafted = 0;
  for (int32_t round = 0; round < 300; ++round) {
    draft.clear();
    drafter.propose({.text = text, .count_max = 4}, draft);
    ASSERT_EQ(drafter.off_reason(), "") << round;
    EXPECT_LE(draft.tokens.size(), 4u);
    EXPECT_EQ(draft.tokens.size(), draft.chances.size());
    for (const Token token : draft.tokens) {
      EXPECT_TRUE(target->tokenizer()->holds(token));
      EXPECT_FALSE(target->tokenizer()->is_control(token));
    }
    drafted += draft.tokens.size();
    if (random() % 20 == 0) text.resize(1 + random() % text.size());
    text.insert(text.end(), draft.tokens.begin(), draft.tokens.end());
    if (random() % 3 == 0) text.push_back(Token(int32_t(random() % 384)));
  }
  EXPECT_GT(drafted, 300u);
}

// Real vocabularies, each for each other: whoever says exactly what comes is right so often.
class RealVocabularies : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<tokenize::Tokenizer> load(const std::string& name) {
    const std::string path = CAIRN_FIXTURES "/shared/tokenizers/" + name + ".gguf";
    if (!std::filesystem::exists(path)) return nullptr;
    const auto file = gguf::File::open(path).value();
    return tokenize::Tokenizer::build(vocabulary_source(file).value()).value();
  }
};

TEST_P(RealVocabularies, WhatIsRightInOneIsRightInTheOther) {
  const auto from = load(GetParam());
  if (from == nullptr) GTEST_SKIP() << "the shared vocabulary " << GetParam() << " is not there";
  std::ifstream page(CAIRN_SOURCE "/docs/speculation.md");
  std::string text((std::istreambuf_iterator<char>(page)), std::istreambuf_iterator<char>());
  text.resize(6000);
  text += "Über Größe, naïve Wörter: 漢字と仮名 😀.";
  const Tokens tokens = from->encode(text);
  constexpr size_t kAhead = 100;  // More than five tokens.
  for (const char* other : {"llama-bpe", "llama-spm", "gemma-4", "qwen2", "deepseek-llm"}) {
    if (std::string_view(other) == GetParam()) continue;
    const auto to = load(other);
    if (to == nullptr) continue;
    tokenize::Translator translator(from.get(), to.get());
    int32_t inner = 0, inner_right = 0, last = 0, last_right = 0;
    size_t bytes = 0;
    for (size_t i = 1; i < tokens.size(); ++i) {
      std::string_view piece = from->piece(tokens[i - 1]);
      if (i == 1 && from->adds_space_prefix()) piece.remove_prefix(1);
      bytes += piece.size();
      ASSERT_TRUE(translator.follow(std::span(tokens).first(i), 1));
      Tokens more = to->encode(std::string_view(text).substr(bytes, kAhead), {.goes_on = true});
      more.resize(std::min<size_t>(more.size(), 5));
      const auto pieces = translator.translate_back(more);
      for (size_t k = 0; k < pieces.size() && i + k < tokens.size(); ++k) {
        const bool is_right = pieces[k].token == tokens[i + k];
        const bool is_last = k + 1 == pieces.size();
        ++(is_last ? last : inner);
        (is_last ? last_right : inner_right) += is_right ? 1 : 0;
        if (!is_right) break;
      }
    }
    ASSERT_GT(last, 500) << other;
    EXPECT_GT(inner_right, 0.97 * inner) << other << ": " << inner_right << " of " << inner;
    EXPECT_GT(last_right, 0.8 * last) << other << ": " << last_right << " of " << last;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealVocabularies,
                         testing::Values("deepseek-llm", "falcon", "gemma-4", "gpt-2", "llama-bpe",
                                         "llama-spm", "phi-3", "qwen2", "qwen35"),
                         [](const auto& each) { return test::test_name(each.param); });

}  // namespace
}  // namespace cairn::test::text_drafter_test
