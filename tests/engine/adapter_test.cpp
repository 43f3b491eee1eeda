// LoRA adapters against peft (tools/make_adapter.py), and against themselves: the same bits however
// the tokens are cut; and adapters that do not fit.
#include "engine/adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>

#include "gguf/writer.h"
#include "quant/quant.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"

namespace cairn::testing {
namespace {

std::string fixture(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/folders/" + name;
}

const std::string kModel = "Tiny-Llama-3.1-8B-Instruct.gguf";

EngineOptions with_adapter(float scale) {
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = fixture("llama-lora.gguf"), .scale = scale}};
  return options;
}

std::vector<Token> tokens() {
  std::vector<Token> tokens;
  // As tools/make_folder.py has them.
  for (int32_t i = 0; i < 24; ++i) tokens.push_back(Token((7 * i * i + 3) % 300 + 3));
  return tokens;
}

std::vector<float> logits_of(Engine& engine, size_t step) {
  memory::Sequence sequence = engine.memory().new_sequence();
  const std::vector<Token> all = tokens();
  std::vector<float> logits;
  for (size_t begin = 0; begin < all.size(); begin += step) {
    const auto part = std::span(all).subspan(begin, std::min(step, all.size() - begin));
    const std::vector<float> rows = append(engine, sequence, part);
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

std::vector<float> reference(const std::string& name) {
  std::ifstream file(fixture(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<float> logits(bytes.size() / sizeof(float));
  std::memcpy(logits.data(), bytes.data(), bytes.size());
  return logits;
}

// The worst, in units of the deviation of the reference.
double error_of(const std::vector<float>& logits, const std::vector<float>& expected) {
  EXPECT_EQ(logits.size(), expected.size());
  double worst = 0, squares = 0, sum = 0;
  for (size_t i = 0; i < std::min(logits.size(), expected.size()); ++i) {
    worst = std::max(worst, std::fabs(double(logits[i]) - double(expected[i])));
    squares += double(expected[i]) * double(expected[i]);
    sum += double(expected[i]);
  }
  const auto count = double(expected.size());
  return worst / std::sqrt(squares / count - sum * sum / count / count);
}

TEST(Adapter, GivesTheLogitsOfPeft) {
  const auto engine = load_engine(fixture(kModel), with_adapter(1));
  ASSERT_NE(engine, nullptr);
  const std::vector<float> logits = logits_of(*engine, 24);
  EXPECT_LE(error_of(logits, reference("llama-lora.f32")), 2e-4);
  // And the adapter matters.
  EXPECT_GT(error_of(logits, reference("Tiny-Llama-3.1-8B-Instruct.f32")), 0.1);
}

TEST(Adapter, GivesTheSameBitsHoweverTokensAreCut) {
  const auto engine = load_engine(fixture(kModel), with_adapter(0.5f));
  ASSERT_NE(engine, nullptr);
  const std::vector<float> whole = logits_of(*engine, 24);
  for (const size_t step : {1, 5}) {
    const std::vector<float> cut = logits_of(*engine, step);
    ASSERT_EQ(cut.size(), whole.size());
    EXPECT_EQ(std::memcmp(cut.data(), whole.data(), whole.size() * sizeof(float)), 0) << step;
  }
}

TEST(Adapter, OfScaleZeroIsNone) {
  const auto engine = load_engine(fixture(kModel), with_adapter(0));
  ASSERT_NE(engine, nullptr);
  EXPECT_LE(error_of(logits_of(*engine, 24), reference("Tiny-Llama-3.1-8B-Instruct.f32")), 2e-4);
}

struct Pair {
  std::string name;
  std::vector<int64_t> a, b;
};

// What loading says of an adapter with these pairs.
std::string refusal_of(const std::vector<Pair>& pairs, const char* architecture = "llama",
                       const char* kind = "lora") {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("adapter.gguf");
  gguf::Writer writer;
  writer.add("general.architecture", architecture);
  writer.add("general.type", "adapter");
  writer.add("adapter.type", kind);
  writer.add("adapter.lora.alpha", 4.0f);
  std::vector<std::byte> zeros;
  const uint32_t f32 = quant::find("F32")->gguf_id;
  for (const Pair& pair : pairs) {
    if (!pair.a.empty()) writer.declare(pair.name + ".lora_a", pair.a, f32);
    if (!pair.b.empty()) writer.declare(pair.name + ".lora_b", pair.b, f32);
  }
  Result<gguf::TensorStream> stream = writer.open_file(path);
  EXPECT_TRUE(stream);
  for (const Pair& pair : pairs) {
    for (const std::vector<int64_t>& dims : {pair.a, pair.b}) {
      if (dims.empty()) continue;
      zeros.resize(size_t(dims[0] * dims[1]) * sizeof(float));
      EXPECT_TRUE(stream->append(zeros));
    }
  }
  EXPECT_TRUE(stream->finish());
  Result<gguf::File> file = gguf::File::open(fixture(kModel));
  EXPECT_TRUE(file);
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = path}};
  const auto engine = Engine::load(std::move(file).value(), options);
  return engine ? "none" : engine.error().message;
}

TEST(Adapter, RefusesWhatDoesNotFit) {
  const Pair good{"blk.0.attn_q.weight", {64, 2}, {2, 64}};
  EXPECT_EQ(refusal_of({good}), "none");
  const auto expect_words = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect_words(refusal_of({good}, "qwen2"), "expected an adapter for llama");
  expect_words(refusal_of({good}, "llama", "control_vector"), "expected a LoRA adapter");
  expect_words(refusal_of({{good.name, good.a, {}}}), "lora_b beside it");
  expect_words(refusal_of({{good.name, {}, good.b}}), "lora_a beside it");
  expect_words(refusal_of({{good.name, {64, 2}, {3, 64}}}), "[64, rank]");
  expect_words(refusal_of({{good.name, {32, 2}, {2, 64}}}), "[64, rank]");
  expect_words(refusal_of({{good.name, {64, 2}, {2, 128}}}), "[rank, 64]");
  expect_words(refusal_of({{"blk.9.attn_q.weight", good.a, good.b}}), "found no blk.9");
  expect_words(refusal_of({{"blk.0.attn_norm.weight", good.a, good.b}}),
               "found no blk.0.attn_norm");
  // A table is read, not multiplied with.
  expect_words(refusal_of({{"token_embd.weight", {64, 2}, {2, 384}}}), "multiplied with");
}

}  // namespace
}  // namespace cairn::testing
