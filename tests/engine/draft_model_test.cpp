// Loading a draft model beside its target.
#include "engine/drafts/draft_model.h"

#include <gtest/gtest.h>

#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"

namespace cairn::test::draft_model_test {
namespace {

std::string nano() {
  return std::string(CAIRN_SOURCE) + "/assets/nano.gguf";
}

Result<std::unique_ptr<DraftModel>> load(const std::string& path, Engine& target) {
  CAIRN_TRY(gguf::File file, gguf::File::open(path));
  return DraftModel::load(std::move(file), target);
}

TEST(DraftModel, ComputesOnTheTargetsThreads) {
  const auto target = load_engine(nano(), golden_options(KvType::q8_0));
  auto drafts = load(nano(), *target);
  ASSERT_TRUE(drafts) << drafts.error().message;
  Engine& engine = (*drafts)->engine();
  EXPECT_EQ(&engine.threads(), &target->threads());
  EXPECT_EQ(engine.options().thread_count, 2);
  EXPECT_EQ(engine.options().key_type, KvType::q8_0);
  EXPECT_EQ(engine.options().memory_budget, target->options().memory_budget / 8);
  EXPECT_GT((*drafts)->window_tokens(), 64);
}

TEST(DraftModel, HasTheTargetsTokens) {
  const auto target = load_engine(nano(), golden_options(KvType::f16));
  const auto small = load(golden_path("llama", ".gguf"), *target);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().code, ErrorCode::invalid_argument);
  const std::string count = std::to_string(target->size().vocabulary_count);
  EXPECT_NE(small.error().message.find("expected the " + count + " tokens of "), std::string::npos)
      << small.error().message;
  EXPECT_NE(small.error().message.find("found 384"), std::string::npos) << small.error().message;
}

// As many tokens, and one of them is another.
TEST(DraftModel, HasTheSameVocabulary) {
  const auto target = load_engine(nano(), golden_options(KvType::f16));
  std::ifstream in(nano(), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  // The length of a token's text, and the text.
  const std::string token(
      "\6\0\0\0\0\0\0\0\xc4\xa0"
      "full",
      14);
  const size_t at = bytes.find(token);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, token.size(),
                std::string("\6\0\0\0\0\0\0\0\xc4\xa0"
                            "fulx",
                            14));
  const ScratchFolder folder;
  const std::string path = folder.file("other.gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  const auto other = load(path, *target);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::invalid_argument);
  const std::string digest = fmt::format("(digest {:016x}), found", target->tokenizer()->digest());
  EXPECT_NE(other.error().message.find(digest), std::string::npos) << other.error().message;
}

}  // namespace
}  // namespace cairn::test::draft_model_test
