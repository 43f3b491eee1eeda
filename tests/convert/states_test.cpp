// Folders of models with states, of Gemma's later ones and of encoders: the usual converter's
// bytes. And their tokenizers, WordPiece and unigram, as the file's reader builds them.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "convert/convert.h"
#include "engine/embedder.h"
#include "engine/vocabulary_source.h"
#include "gguf/gguf.h"
#include "tests/models/folder_case.h"
#include "tests/scratch_folder.h"
#include "tests/test_name.h"
#include "tokenize/tokenizer.h"

namespace cairn::convert::states_test {
namespace {

namespace fs = std::filesystem;

fs::path fixture(const std::string& name) {
  return fs::path(CAIRN_FIXTURES) / "folders" / name;
}

std::string read(const fs::path& path) {
  EXPECT_TRUE(fs::exists(path)) << path;
  return test::contents_of(path.string());
}

class StatesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(StatesTest, WritesTheUsualConvertersBytes) {
  const test::ScratchFolder scratch;
  const std::string name = GetParam(), out = scratch.file("out.gguf");
  const Result<ConvertReport> report = convert({.folder = fixture(name).string(), .out_path = out});
  ASSERT_TRUE(report) << report.error().message;
  const std::string ours = read(out), usual = read(fixture(name + ".gguf"));
  ASSERT_EQ(ours.size(), usual.size());
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_EQ(ours[i], usual[i]) << "byte " << i;
}

// Heads of two widths, double blocks and keys that layers share; experts; matrices in three parts
// and rows that are missing; weights with multipliers in them; layers of one kind only; linear
// attention in either order, with a layer that guesses a further token; positions that begin
// behind the padding, a classifier, pooling by a file of its own, and two matrices behind it.
INSTANTIATE_TEST_SUITE_P(Folders, StatesTest,
                         ::testing::Values("gemma3n-tiny", "gemma4-tiny", "gemma4moe-tiny",
                                           "mamba-tiny", "falcon-mamba-tiny", "mamba2-tiny",
                                           "jamba-tiny", "falcon-h1-tiny", "granitehybrid-tiny",
                                           "granite-from-hybrid-tiny", "nemotron-h-moe-tiny",
                                           "lfm2-tiny", "lfm2moe-tiny", "gemma-embedding-tiny",
                                           "modernbert-tiny", "qwen3next-tiny", "qwen35-tiny",
                                           "qwen35moe-tiny", "bert-tiny", "nomic-tiny", "xlmr-tiny",
                                           "xlmr-json-tiny"),
                         [](const auto& folder) { return test::test_name(folder.param); });

// A matrix behind the pooling that is not linear, or is missing; a model that sees no later token.
TEST(Modules, AreRefusedWhereTheyWouldBeLost) {
  const test::ScratchFolder scratch;
  const fs::path folder = scratch.path() / "folder";
  const auto expect_refused = [&](const char* file, const std::string& from, const std::string& to,
                                  const std::string& part) {
    fs::remove_all(folder);
    fs::copy(fixture("gemma-embedding-tiny"), folder, fs::copy_options::recursive);
    std::string text = read(folder / file);
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    std::ofstream(folder / file, std::ios::binary) << text.replace(at, from.size(), to);
    const Result<ConvertReport> report =
        convert({.folder = folder.string(), .out_path = scratch.file("out.gguf")});
    ASSERT_FALSE(report) << part;
    EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
  };
  expect_refused("2_Dense/config.json", "linear.Identity", "activation.Tanh", "activation.Tanh");
  expect_refused("2_Dense/config.json", "48", "47", "expected shape [47, 32], found [48, 32]");
  expect_refused("3_Dense/model.safetensors", "linear.weight", "linear.other_", "linear.weight");
  expect_refused("modules.json", "3_Dense", "../else", "folder within");
  expect_refused("modules.json", "models.Dense", "models.Other", "expected 2 of Dense, found 1");
  expect_refused("config.json", "\"use_bidirectional_attention\": true",
                 "\"use_bidirectional_attention\": false", "use_bidirectional_attention");
}

// Names, shapes and keys are what the engine asks for.
TEST(Modules, GiveVectorsThroughTheMatrices) {
  for (const char* name : {"gemma-embedding-tiny", "modernbert-tiny"}) {
    const test::ScratchFolder scratch;
    const std::string out = scratch.file("out.gguf");
    ASSERT_TRUE(convert({.folder = fixture(name).string(), .out_path = out}));
    EngineOptions options = test::golden_options(KvType::f32);
    options.pooling = Pooling::mean;
    const auto engine = test::load_engine(out, options);
    ASSERT_NE(engine, nullptr) << name;
    const std::vector<std::vector<Token>> texts = {test::folder_tokens()};
    auto vectors = Embedder(engine.get(), {}).embed(texts);
    ASSERT_TRUE(vectors) << vectors.error().message;
    ASSERT_EQ(vectors->front().values.size(), 32u) << name;
    for (const float number : vectors->front().values) ASSERT_TRUE(std::isfinite(number)) << name;
  }
}

class EncoderTest : public ::testing::TestWithParam<const char*> {};

// What tokenizers (WordPiece) and sentencepiece (unigram) answer.
TEST_P(EncoderTest, CutsTextAsTheFolderDoes) {
  const std::string name = GetParam();
  const test::ScratchFolder scratch;
  const std::string out = scratch.file("out.gguf");
  ASSERT_TRUE(convert({.folder = fixture(name).string(), .out_path = out}));
  Result<gguf::File> file = gguf::File::open(out);
  ASSERT_TRUE(file);
  Result<tokenize::VocabularySource> source = vocabulary_source(*file);
  ASSERT_TRUE(source) << source.error().message;
  auto tokenizer = tokenize::Tokenizer::build(*source);
  ASSERT_TRUE(tokenizer);
  const std::string expected = name == "bert-tiny" ? name : "xlmr-tiny";
  const nlohmann::json cases = nlohmann::json::parse(read(fixture(expected + ".tokens.json")));
  ASSERT_GT(cases.size(), 50u);
  for (const auto& [words, ids] : cases.items()) {
    std::vector<int32_t> found;
    for (const Token token : (*tokenizer)->encode(words, {.add_special = true})) {
      found.push_back(index_of(token));
    }
    EXPECT_EQ(found, ids.get<std::vector<int32_t>>()) << words;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, EncoderTest,
                         ::testing::Values("bert-tiny", "xlmr-tiny", "xlmr-json-tiny"),
                         [](const auto& folder) { return test::test_name(folder.param); });

}  // namespace
}  // namespace cairn::convert::states_test
