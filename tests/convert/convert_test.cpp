// Folders that transformers wrote, beside what the usual converter makes of them: the same bytes;
// and the same logits as transformers. Then what is refused.
#include "convert/convert.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "gguf/gguf.h"
#include "tests/models/folder_case.h"
#include "tests/scratch_folder.h"
#include "tests/test_name.h"

namespace cairn::convert::convert_test {
namespace {

namespace fs = std::filesystem;

fs::path fixtures() {
  return fs::path(CAIRN_FIXTURES) / "folders";
}

std::string read(const fs::path& path) {
  EXPECT_TRUE(fs::exists(path)) << path;
  return test::contents_of(path.string());
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Our file of a fixture.
std::string converted(const test::ScratchFolder& scratch, const std::string& name) {
  const std::string out = scratch.file(name + ".gguf");
  const Result<ConvertReport> report =
      convert({.folder = (fixtures() / name).string(), .out_path = out});
  EXPECT_TRUE(report) << report.error().message;
  return out;
}

// What the usual converter makes of it has the same bytes.
void expect_usual_bytes(const char* name) {
  const test::ScratchFolder scratch;
  const std::string ours = read(converted(scratch, name));
  const std::string usual = read(fixtures() / (std::string(name) + ".gguf"));
  ASSERT_EQ(ours.size(), usual.size());
  for (size_t i = 0; i < ours.size(); ++i) ASSERT_EQ(ours[i], usual[i]) << "byte " << i;
}

class ConvertTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ConvertTest, WritesTheUsualConvertersBytes) {
  expect_usual_bytes(GetParam());
}

TEST_P(ConvertTest, GivesTheLogitsOfTheFolder) {
  const test::ScratchFolder scratch;
  const auto engine =
      test::load_engine(converted(scratch, GetParam()), test::golden_options(KvType::f32));
  ASSERT_NE(engine, nullptr);
  memory::Sequence sequence = engine->memory().new_sequence();
  const std::vector<float> logits = test::append(*engine, sequence, test::folder_tokens());
  EXPECT_LE(test::folder_error(logits, std::string(GetParam()) + ".f32"), 2e-4);
}

// Parts and Llama 3's rotary factors; experts one by one; SentencePiece and norms less one; fused
// matrices.
INSTANTIATE_TEST_SUITE_P(Folders, ConvertTest,
                         ::testing::Values("Tiny-Llama-3.1-8B-Instruct", "qwen3moe-tiny",
                                           "gemma2-tiny", "phi3-tiny"),
                         [](const auto& folder) { return test::test_name(folder.param); });

// One or two of each family; what each of them has to itself is said in its file.
class FamilyTest : public ::testing::TestWithParam<const char*> {};

TEST_P(FamilyTest, WritesTheUsualConvertersBytes) {
  expect_usual_bytes(GetParam());
}

// Names, shapes and keys are what the engine asks for.
TEST_P(FamilyTest, GivesAModelThatRuns) {
  const test::ScratchFolder scratch;
  const auto engine =
      test::load_engine(converted(scratch, GetParam()), test::golden_options(KvType::f32));
  ASSERT_NE(engine, nullptr);
  memory::Sequence sequence = engine->memory().new_sequence();
  const std::vector<float> logits = test::append(*engine, sequence, test::folder_tokens());
  for (const float logit : logits) ASSERT_TRUE(std::isfinite(logit));
}

INSTANTIATE_TEST_SUITE_P(Attention, FamilyTest,
                         ::testing::Values("arcee", "baichuan", "bloom", "cohere2", "command_r",
                                           "dbrx", "deepseek2", "deepseek3", "dots1", "ernie4_5",
                                           "ernie4_5_moe", "exaone4", "falcon", "falcon_7b", "glm4",
                                           "glm4moe", "gpt2", "gpt_oss", "gpt_oss_f16", "gptneox",
                                           "hunyuan_dense", "internlm2", "jais", "llama4",
                                           "minicpm3", "minimax_m2", "ministral3", "mistral3",
                                           "mpt", "nemotron", "phimoe", "qwen2vl", "qwen3vl",
                                           "qwen3vlmoe", "refact", "seed_oss", "starcoder"),
                         [](const auto& family) { return test::test_name(family.param); });

// Where the usual converter leaves out a key that readers ask for, it is there; all else is equal.
TEST(Convert, GivesExaoneItsEpsilon) {
  const test::ScratchFolder scratch;
  Result<gguf::File> ours = gguf::File::open(converted(scratch, "exaone"));
  Result<gguf::File> usual = gguf::File::open((fixtures() / "exaone.gguf").string());
  ASSERT_TRUE(ours && usual);
  const auto fields = ours->fields().all(), others = usual->fields().all();
  ASSERT_EQ(fields.size(), others.size() + 1);
  size_t at = 0;
  for (const auto& field : fields) {
    if (field.key == "exaone.attention.layer_norm_rms_epsilon") continue;
    ASSERT_LT(at, others.size());
    EXPECT_EQ(field.key, others[at].key);
    EXPECT_TRUE(std::ranges::equal(field.value.bytes, others[at].value.bytes)) << field.key;
    ++at;
  }
  EXPECT_NE(test::load_engine(scratch.file("exaone.gguf"), test::golden_options(KvType::f32)),
            nullptr);
}

// Where the usual converter writes the same score for every token, so that nothing says what is
// joined first, the scores here are the order of the merges. And ids without a token are there.
TEST(Convert, ScoresSpacedTokensByTheirMerges) {
  const test::ScratchFolder scratch;
  Result<gguf::File> ours = gguf::File::open(converted(scratch, "spaced-llama"));
  Result<gguf::File> usual = gguf::File::open((fixtures() / "spaced-llama.gguf").string());
  ASSERT_TRUE(ours && usual);
  const auto fields = ours->fields().all(), others = usual->fields().all();
  ASSERT_EQ(fields.size(), others.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    EXPECT_EQ(fields[i].key, others[i].key);
    const std::string_view key = fields[i].key;
    const bool is_of_tokens = key == "tokenizer.ggml.tokens" || key == "tokenizer.ggml.scores" ||
                              key == "tokenizer.ggml.token_type";
    const auto bytes = fields[i].value.bytes, other = others[i].value.bytes;
    if (!is_of_tokens) {
      EXPECT_TRUE(std::ranges::equal(bytes, other)) << key;
    }
    if (key != "tokenizer.ggml.tokens") continue;
    ASSERT_GE(bytes.size(), other.size());
    EXPECT_TRUE(std::ranges::equal(bytes.first(other.size()), other));
    EXPECT_EQ(fields[i].value.count, 384u);
  }
  const auto engine =
      test::load_engine(scratch.file("spaced-llama.gguf"), test::golden_options(KvType::f32));
  ASSERT_NE(engine, nullptr);
  ASSERT_NE(engine->tokenizer(), nullptr);
  // What tokenizers answers.
  const nlohmann::json cases = nlohmann::json::parse(read(fixtures() / "spaced-llama.tokens.json"));
  ASSERT_FALSE(cases.empty());
  for (const auto& [text, ids] : cases.items()) {
    EXPECT_EQ(engine->tokenizer()->encode(text, {.add_special = true}), test::tokens_of(ids))
        << text;
  }
}

// What would be an infinity in the file.
TEST(Convert, RefusesWeightsBeyondF16) {
  const test::ScratchFolder scratch;
  const fs::path folder = scratch.path() / "folder";
  fs::copy(fixtures() / "gemma2-tiny", folder);
  std::string bytes = read(folder / "model.safetensors");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  const auto& tensor = header.at("model.layers.0.mlp.down_proj.weight");
  const size_t row_numbers = tensor.at("shape")[1];
  const uint16_t minus_million = 0xc974;  // -999424 as BF16.
  const size_t at = 8 + header_bytes + size_t(tensor.at("data_offsets")[0]);
  std::memcpy(bytes.data() + at + (2 * row_numbers + 5) * 2, &minus_million, 2);
  write(folder / "model.safetensors", bytes);
  ConvertOptions options{.folder = folder.string(), .out_path = scratch.file("out.gguf")};
  EXPECT_TRUE(convert(options));
  fs::remove(options.out_path);
  options.type = OutType::f16;
  const Result<ConvertReport> report = convert(options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message,
            "tensor blk.0.ffn_down.weight: row 2, weight 5: expected at most 65504 for F16, found "
            "-999424; use BF16");
  EXPECT_FALSE(fs::exists(options.out_path));
}

class RefusalTest : public ::testing::Test {
 protected:
  RefusalTest() : folder_(scratch_.path() / "folder") {
    fs::copy(fixtures() / "qwen3moe-tiny", folder_);
  }

  // What the message has to say.
  void expect_refused(const std::string& part) {
    const std::string out = scratch_.file("out.gguf");
    const Result<ConvertReport> report = convert({.folder = folder_.string(), .out_path = out});
    ASSERT_FALSE(report) << part;
    EXPECT_NE(report.error().message.find(part), std::string::npos) << report.error().message;
    EXPECT_FALSE(fs::exists(out));
  }
  void replace(const char* file, const std::string& from, const std::string& to) {
    std::string text = read(folder_ / file);
    const size_t at = text.find(from);
    ASSERT_NE(at, text.npos) << from;
    write(folder_ / file, text.replace(at, from.size(), to));
  }

  test::ScratchFolder scratch_;
  fs::path folder_;
};

TEST_F(RefusalTest, OtherArchitectures) {
  replace("config.json", "Qwen3MoeForCausalLM", "Qwen9ForCausalLM");
  expect_refused("found Qwen9ForCausalLM");
}

// It converts, as the usual converter does it; but then nobody may read it the other way.
TEST_F(RefusalTest, AttentionInBothDirectionsByTheEngine) {
  replace("config.json", "\"architectures\"", R"("is_causal": false, "architectures")");
  const std::string out = scratch_.file("out.gguf");
  const Result<ConvertReport> report = convert({.folder = folder_.string(), .out_path = out});
  ASSERT_TRUE(report) << report.error().message;
  const auto engine =
      Engine::load(gguf::File::open(out).value(), test::golden_options(KvType::f32));
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().message, "qwen3moe.attention.causal: expected true, found false");
}

TEST_F(RefusalTest, QuantizedWeights) {
  replace("config.json", "\"architectures\"",
          R"("quantization_config": {"quant_method": "gptq"}, "architectures")");
  expect_refused("found quantization_config with gptq");
}

TEST_F(RefusalTest, TensorsOfUnknownNames) {
  replace("model.safetensors", "mlp.gate.weight", "mlp.gape.weight");
  expect_refused("mlp.gape.weight");
}

TEST_F(RefusalTest, MissingExperts) {
  replace("config.json", "\"num_local_experts\": 8", "\"num_local_experts\": 9");
  expect_refused("experts");
}

// What no engine would read is not written.
TEST_F(RefusalTest, ParametersOutOfRange) {
  const std::string config = read(folder_ / "config.json");
  const auto with = [&](const std::string& key, const std::string& value) {
    auto json = nlohmann::json::parse(config);
    json[key] = nlohmann::json::parse(value);
    write(folder_ / "config.json", json.dump());
  };
  for (const auto& [key, value, message] : std::vector<std::array<std::string, 3>>{
           {"num_hidden_layers", "0", "block_count: expected 1 to 1024, found 0"},
           {"num_hidden_layers", "1000000000", "block_count: expected 1 to 1024, found 1000000000"},
           {"num_hidden_layers", "900", "block_count: expected at most the "},
           {"rms_norm_eps", "-1", "layer_norm_rms_epsilon: expected 0 to 0.1, found -1"},
           {"rope_parameters", R"({"rope_type": "default", "rope_theta": 0})",
            "rope.freq_base: expected 1 to 1000000000000000, found 0"},
           {"max_position_embeddings", "0", "context_length: expected 1 to "}}) {
    with(key, value);
    expect_refused(message);
  }
}

TEST_F(RefusalTest, TwoTokensOfOneId) {
  auto json = nlohmann::json::parse(read(folder_ / "tokenizer.json"));
  auto& vocabulary = json["model"]["vocab"];
  const int id = vocabulary.begin().value();
  vocabulary["twice"] = id;
  write(folder_ / "tokenizer.json", json.dump());
  expect_refused(fmt::format("id {}: expected one token, found ", id));
}

TEST_F(RefusalTest, MergesThatAreNoPairs) {
  const std::string tokenizer = read(folder_ / "tokenizer.json");
  for (const char* merge : {"\"ab\"", "\"a \"", "\" a\"", "\"a b c\"", "[\"a\"]", "[\"a\", \"\"]",
                            "7", "null", "[\"a\", 1]"}) {
    auto json = nlohmann::json::parse(tokenizer);
    json["model"]["merges"].insert(json["model"]["merges"].begin() + 1,
                                   nlohmann::json::parse(merge));
    write(folder_ / "tokenizer.json", json.dump());
    expect_refused("merge 1: expected two parts, found ");
  }
}

TEST_F(RefusalTest, MissingFiles) {
  for (const char* file : {"tokenizer.json", "config.json", "model.safetensors"}) {
    const std::string text = read(folder_ / file);
    fs::remove(folder_ / file);
    expect_refused(file == std::string("model.safetensors") ? "safetensors" : file);
    write(folder_ / file, text);
  }
}

TEST_F(RefusalTest, TokensBeyondTheVocabulary) {
  replace("config.json", "\"vocab_size\": 384", "\"vocab_size\": 200");
  expect_refused("below 200");
}

TEST_F(RefusalTest, UnigramTokensBeyondTheVocabulary) {
  fs::copy_file(fixtures() / "xlmr-json-tiny" / "tokenizer.json", folder_ / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  replace("config.json", "\"vocab_size\": 384", "\"vocab_size\": 20");
  expect_refused("expected at most 20 tokens");
}

}  // namespace
}  // namespace cairn::convert::convert_test
