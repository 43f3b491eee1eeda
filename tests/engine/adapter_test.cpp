// LoRA adapters against peft (tools/make_adapter.py), and against themselves: the same bits however
// the tokens are cut; and adapters that do not fit.
#include "engine/adapter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "gguf/writer.h"
#include "quant/quant.h"
#include "tests/models/folder_case.h"
#include "tests/scratch_folder.h"

namespace cairn::test::adapter_test {
namespace {

const std::string kModel = "Tiny-Llama-3.1-8B-Instruct.gguf";

EngineOptions with_adapter(float scale) {
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = folder_path("llama-lora.gguf"), .scale = scale}};
  return options;
}

std::vector<float> logits_of(Engine& engine, size_t step) {
  memory::Sequence sequence = engine.memory().new_sequence();
  const std::vector<Token> all = folder_tokens();
  std::vector<float> logits;
  for (size_t begin = 0; begin < all.size(); begin += step) {
    const auto part = std::span(all).subspan(begin, std::min(step, all.size() - begin));
    const std::vector<float> rows = append(engine, sequence, part);
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

TEST(Adapter, GivesTheLogitsOfPeft) {
  const auto engine = load_engine(folder_path(kModel), with_adapter(1));
  ASSERT_NE(engine, nullptr);
  const std::vector<float> logits = logits_of(*engine, 24);
  EXPECT_LE(folder_error(logits, "llama-lora.f32"), 2e-4);
  // And the adapter matters.
  EXPECT_GT(folder_error(logits, "Tiny-Llama-3.1-8B-Instruct.f32"), 0.1);
}

TEST(Adapter, GivesTheSameBitsHoweverTokensAreCut) {
  const auto engine = load_engine(folder_path(kModel), with_adapter(0.5f));
  ASSERT_NE(engine, nullptr);
  const std::vector<float> whole = logits_of(*engine, 24);
  for (const size_t step : {1, 5}) {
    const std::vector<float> cut = logits_of(*engine, step);
    ASSERT_EQ(cut.size(), whole.size());
    EXPECT_EQ(std::memcmp(cut.data(), whole.data(), whole.size() * sizeof(float)), 0) << step;
  }
}

TEST(Adapter, OfScaleZeroIsNone) {
  const auto engine = load_engine(folder_path(kModel), with_adapter(0));
  ASSERT_NE(engine, nullptr);
  EXPECT_LE(folder_error(logits_of(*engine, 24), "Tiny-Llama-3.1-8B-Instruct.f32"), 2e-4);
}

struct Pair {
  std::string name;
  std::vector<int64_t> a, b;
};

// What loading says of an adapter with these pairs.
std::string refusal_of(const std::vector<Pair>& pairs, const char* architecture = "llama",
                       const char* kind = "lora", float alpha = 4.0f,
                       const char* more_key = nullptr) {
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("adapter.gguf");
  gguf::Writer writer;
  writer.add("general.architecture", architecture);
  writer.add("general.type", "adapter");
  writer.add("adapter.type", kind);
  writer.add("adapter.lora.alpha", alpha);
  if (more_key != nullptr) writer.add(more_key, uint32_t(1));
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
      size_t count = 1;
      for (const int64_t dim : dims) count *= size_t(dim);
      zeros.resize(count * sizeof(float));
      EXPECT_TRUE(stream->append(zeros));
    }
  }
  EXPECT_TRUE(stream->finish());
  Result<gguf::File> file = gguf::File::open(folder_path(kModel));
  EXPECT_TRUE(file);
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = path}};
  const auto engine = Engine::load(std::move(file).value(), options);
  return engine ? "none" : engine.error().message;
}

// Refused or computed with; anything but a crash.
void use_hostile(const std::string& path) {
  EngineOptions options = golden_options(KvType::f32);
  options.adapters = {{.path = path}};
  Result<gguf::File> file = gguf::File::open(folder_path(kModel));
  ASSERT_TRUE(file);
  Result<std::unique_ptr<Engine>> loaded = Engine::load(std::move(file).value(), options);
  if (!loaded) return;
  const std::unique_ptr<Engine> engine = std::move(loaded).value();
  memory::Sequence sequence = engine->memory().new_sequence();
  const std::vector<Token> few = {Token(5), Token(6), Token(7)};
  append(*engine, sequence, few);
}

TEST(Adapter, SeededMutationsNeverCrash) {
  const std::string good = test::contents_of(folder_path("llama-lora.gguf"));
  constexpr size_t kHeadBytes = 2000;
  ASSERT_GT(good.size(), kHeadBytes);
  const test::ScratchFolder scratch;
  const std::string path = scratch.file("adapter.gguf");
  for (uint64_t round = 0; round < 300; ++round) {
    std::mt19937_64 random(round);
    std::string bytes = good;
    const uint64_t change_count = 1 + random() % 3;
    for (uint64_t i = 0; i < change_count; ++i) {
      // Mostly in front of the weights.
      char& byte = bytes[size_t(random() % (random() % 4 == 0 ? bytes.size() : kHeadBytes))];
      byte = random() % 2 == 0 ? char(byte ^ (1 << random() % 8)) : char(random());
    }
    if (random() % 16 == 0) bytes.resize(size_t(random() % bytes.size()));
    std::ofstream(path, std::ios::binary) << bytes;
    use_hostile(path);
    if (HasFatalFailure()) FAIL() << "in round " << round;
  }
}

TEST(Adapter, RefusesWhatDoesNotFit) {
  const Pair good{"blk.0.attn_q.weight", {64, 2}, {2, 64}};
  EXPECT_EQ(refusal_of({good}), "none");
  const auto expect_words = [](const std::string& message, const char* words) {
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  expect_words(refusal_of({good}, "qwen2"), "expected an adapter for llama");
  expect_words(refusal_of({good}, "llama", "control_vector"), "expected a LoRA adapter");
  for (const float alpha : {NAN, INFINITY}) {
    expect_words(refusal_of({good}, "llama", "lora", alpha), "finite scale");
  }
  expect_words(refusal_of({}), "found none");
  expect_words(refusal_of({good}, "llama", "lora", 4.0f, "adapter.alora.invocation_tokens"),
               "always on");
  expect_words(refusal_of({{good.name, good.a, {}}}), "lora_b beside it");
  expect_words(refusal_of({{good.name, {}, good.b}}), "lora_a beside it");
  expect_words(refusal_of({{good.name, {64, 2}, {3, 64}}}), "[64, rank]");
  expect_words(refusal_of({{good.name, {32, 2}, {2, 64}}}), "[64, rank]");
  expect_words(refusal_of({{good.name, {64, 2}, {2, 128}}}), "[rank, 64]");
  expect_words(refusal_of({{"blk.9.attn_q.weight", good.a, good.b}}), "found no blk.9");
  expect_words(refusal_of({{"blk.0.attn_norm.weight", good.a, good.b}}),
               "found no blk.0.attn_norm");
  expect_words(refusal_of({{good.name, {64, 2, 1, 2}, good.b}}), "[64, rank]");
  expect_words(refusal_of({{good.name, good.a, {2, 64, 3}}}), "[rank, 64]");
  expect_words(refusal_of({{"token_embd.weight", {64, 2}, {2, 384}}}), "found the embedding");
}

}  // namespace
}  // namespace cairn::test::adapter_test
