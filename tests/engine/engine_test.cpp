// Loading refuses what is not right, by name; a timeline reads only what it does not hold.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "engine/generator.h"
#include "engine/parameter_loader.h"
#include "gguf/writer.h"
#include "tests/models/golden_model.h"

namespace cairn::testing {
namespace {

struct Change {
  std::string without_tensor;   // Left out.
  std::string narrower_tensor;  // Half of its second dimension.
  std::string architecture;     // Instead of the file's.
};

// A golden model written anew with one thing changed.
std::vector<std::byte> rewritten(const std::string& name, const Change& change) {
  const gguf::File file = gguf::File::open(golden_path(name, ".gguf")).value();
  gguf::Writer writer;
  for (const gguf::Field& field : file.fields().all()) {
    if (field.key == "general.architecture" && !change.architecture.empty()) {
      writer.add(field.key, std::string_view(change.architecture));
    } else {
      writer.add(field.key, field.value);
    }
  }
  std::vector<std::span<const std::byte>> parts;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.name == change.without_tensor) continue;
    std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.dim_count);
    std::span<const std::byte> bytes = tensor.bytes;
    if (tensor.name == change.narrower_tensor) {
      dims[1] /= 2;
      bytes = bytes.first(bytes.size() / 2);
    }
    writer.declare(tensor.name, dims, tensor.type_id);
    parts.push_back(bytes);
  }
  std::vector<std::byte> out;
  gguf::TensorStream stream = writer.open_memory(out).value();
  for (const auto bytes : parts) EXPECT_TRUE(bool(stream.append(bytes)));
  EXPECT_TRUE(bool(stream.finish()));
  return out;
}

std::string load_error(const std::vector<std::byte>& bytes, const EngineOptions& options) {
  Result<gguf::File> file = gguf::File::from_bytes(bytes, "model");
  EXPECT_TRUE(bool(file)) << (file ? "" : file.error().message);
  const auto engine = Engine::load(std::move(file).value(), options);
  return engine ? "" : engine.error().message;
}

TEST(Engine, NamesAnUnknownArchitectureAndTheKnownOnes) {
  const std::string error =
      load_error(rewritten("llama", {.architecture = "nonesuch"}), golden_options(KvType::f16));
  EXPECT_NE(error.find("nonesuch"), std::string::npos) << error;
  EXPECT_NE(error.find("granitehybrid"), std::string::npos) << error;
}

TEST(Engine, NamesEachMissingTensor) {
  for (const char* name : {"llama", "qwen3moe", "granitehybrid"}) {
    const gguf::File file = gguf::File::open(golden_path(name, ".gguf")).value();
    for (const gguf::Tensor& tensor : file.tensors()) {
      const bool optional = tensor.name == "output.weight" || tensor.name.ends_with(".bias");
      const std::string error =
          load_error(rewritten(name, {.without_tensor = std::string(tensor.name)}),
                     golden_options(KvType::f16));
      if (optional && error.empty()) continue;
      EXPECT_NE(error.find(tensor.name), std::string::npos) << tensor.name << ": " << error;
    }
  }
}

TEST(Engine, NamesATensorOfTheWrongShapeWithBothShapes) {
  const std::string error = load_error(
      rewritten("llama", {.narrower_tensor = "blk.2.attn_q.weight"}), golden_options(KvType::f16));
  EXPECT_NE(error.find("blk.2.attn_q.weight"), std::string::npos) << error;
  EXPECT_NE(error.find("[64, 64]"), std::string::npos) << error;
  EXPECT_NE(error.find("[64, 32]"), std::string::npos) << error;
}

TEST(Engine, RefusesOptionsThatCannotBe) {
  const std::vector<std::byte> bytes = rewritten("llama", {});
  EngineOptions options = golden_options(KvType::f16);
  options.backend = "abacus";
  EXPECT_NE(load_error(bytes, options).find("abacus"), std::string::npos);
  options = golden_options(KvType::f16);
  options.context_tokens = 513;
  EXPECT_NE(load_error(bytes, options).find("512"), std::string::npos);
}

// What a fresh timeline computes after the same prompt.
std::vector<float> fresh_logits(Engine& engine, std::span<const Token> prompt) {
  Generator generator(&engine);
  EXPECT_TRUE(bool(generator.read(prompt)));
  return {generator.logits().begin(), generator.logits().end()};
}

class GeneratorTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    golden_ = read_golden(GetParam());
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = 16;
    options.output_count_max = 1;
    engine_ = load_engine(golden_path(GetParam(), ".gguf"), options);
    ASSERT_NE(engine_, nullptr);
  }
  void expect_fresh(const Generator& generator, std::span<const Token> prompt) {
    const std::vector<float> held(generator.logits().begin(), generator.logits().end());
    const std::vector<float> fresh = fresh_logits(*engine_, prompt);
    EXPECT_EQ(std::memcmp(held.data(), fresh.data(), fresh.size() * sizeof(float)), 0);
  }

  Golden golden_;
  std::unique_ptr<Engine> engine_;
};

TEST_P(GeneratorTest, ReadsOnlyWhatItDoesNotHold) {
  const std::vector<Token>& tokens = golden_.sequences.back();
  Generator generator(engine_.get());
  const std::span<const Token> prompt = std::span(tokens).first(33);
  EXPECT_EQ(generator.read(prompt).value().computed_tokens, 33);
  expect_fresh(generator, prompt);
  for (const Token token : {Token(5), Token(6), Token(7)}) {
    ASSERT_TRUE(bool(generator.advance(token)));
  }
  // The same prompt again and again: one token each time, on every kind of model.
  for (int32_t round = 0; round < 3; ++round) {
    const PromptReport report = generator.read(prompt).value();
    EXPECT_EQ(report.computed_tokens, 1);
    EXPECT_EQ(report.reused_tokens, 32);
    expect_fresh(generator, prompt);
    ASSERT_TRUE(bool(generator.advance(Token(8 + round))));
  }
  // A longer prompt that goes on from what is held.
  std::vector<Token> longer(generator.sequence().tokens().begin(),
                            generator.sequence().tokens().end());
  longer.insert(longer.end(), tokens.begin() + 40, tokens.begin() + 60);
  EXPECT_EQ(generator.read(longer).value().computed_tokens, 20);
  expect_fresh(generator, longer);
}

TEST_P(GeneratorTest, AStoppedPromptKeepsWhatWasRead) {
  const std::vector<Token>& tokens = golden_.sequences.back();
  Generator generator(engine_.get());
  const auto stopped = generator.read(tokens, [](int32_t done, int32_t) { return done < 32; });
  ASSERT_FALSE(bool(stopped));
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(generator.sequence().length(), 32);
  EXPECT_EQ(generator.read(tokens).value().reused_tokens, 32);
  expect_fresh(generator, tokens);
}

TEST_P(GeneratorTest, RefusesPromptsThatCannotBe) {
  Generator generator(engine_.get());
  EXPECT_FALSE(bool(generator.read({})));
  const std::vector<Token> unknown = {Token(1), Token(golden_.vocabulary_count)};
  const auto refused = generator.read(unknown);
  ASSERT_FALSE(bool(refused));
  EXPECT_NE(refused.error().message.find("384"), std::string::npos);
  const std::vector<Token> negative = {Token(-1)};
  EXPECT_FALSE(bool(generator.read(negative)));
}

INSTANTIATE_TEST_SUITE_P(Models, GeneratorTest,
                         ::testing::Values("llama", "granitehybrid", "qwen3moe"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace cairn::testing
