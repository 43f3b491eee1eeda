// Walks the table of architectures: a tiny random model of each is written, read, run in pieces,
// rewound, given to the cache and taken up again, and refused, by name, with each of its tensors
// missing in turn. Of those that make vectors a text has the same ones whatever stands beside it.
// What a plan says of its header alone is what it takes.
#include <algorithm>
#include <cstring>

#include "engine/embedder.h"
#include "gguf/hollow.h"
#include "measure/model_plan.h"
#include "models/model.h"
#include "synth/synth.h"
#include "tests/cli/run_program.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"
#include "tests/test_name.h"

namespace cairn::cli::every_architecture_test {
namespace {

using test::append;

std::vector<std::string> names_of_architectures() {
  std::vector<std::string> names;
  for (const models::Architecture* architecture : models::all_architectures()) {
    names.emplace_back(architecture->name);
  }
  return names;
}

// Small, and where heads and rows may be of any width no multiples of what machines like.
std::string write_tiny(const ScratchFolder& folder, const std::string& architecture) {
  synth::SynthShape shape = synth::default_shape(architecture);
  if (shape.shared_kv_layers == 0) shape.layers = 4;
  shape.width = 96;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 24;
  shape.mlp_width = 112;
  shape.expert_width = shape.experts > 0 ? 56 : 0;
  shape.vocabulary = 300;
  shape.context = 256;
  synth::SynthOptions options{.shape = shape,
                              .type = "F16",
                              .seed = 11,
                              .out_path = folder.file("model.gguf"),
                              .thread_count = 1};
  const auto report = synth::write_synthetic(options);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  return options.out_path;
}

EngineOptions tiny_options() {
  EngineOptions options = test::golden_options(KvType::f16);
  options.memory_budget = size_t(16) << 20;
  options.thread_count = 1;
  return options;
}

// Biases and the like that synthetic models have, and whose absence means something else.
bool may_be_missing(const std::string& name) {
  return name.ends_with("ssm_conv1d.bias") || name.ends_with("attn_v.weight");
}

bool makes_text(const std::string& path) {
  const gguf::File file = gguf::File::open(path).value();
  const gguf::Metadata meta = file.metadata().value();
  return models::find_architecture(meta.architecture()).value()->create(meta).value()->makes_text();
}

void expect_same_vectors_beside_others(const std::string& path, std::span<const Token> tokens) {
  EngineOptions options = tiny_options();
  options.pooling = Pooling::none;
  const auto engine = test::load_engine(path, options);
  ASSERT_NE(engine, nullptr);
  Embedder embedder(engine.get(), {});
  std::vector<std::vector<Token>> texts;
  for (const size_t count : {70, 1, 33, 64}) {
    texts.emplace_back(tokens.begin(), tokens.begin() + std::ptrdiff_t(count));
  }
  auto together = embedder.embed(texts);
  ASSERT_TRUE(together) << together.error().message;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ((*together)[i].values, embedder.embed({&texts[i], 1}).value()[0].values);
    EXPECT_TRUE(std::all_of((*together)[i].values.begin(), (*together)[i].values.end(),
                            [](float value) { return std::isfinite(value); }));
  }
}

class EveryArchitecture : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryArchitecture, RunsInPiecesRewindsAndIsKept) {
  const ScratchFolder folder;
  const std::string path = write_tiny(folder, GetParam());
  std::vector<Token> tokens;
  for (int32_t i = 0; i < 70; ++i) tokens.push_back(Token(3 + i * 37 % 290));
  if (!makes_text(path)) return expect_same_vectors_beside_others(path, tokens);
  const auto engine = test::load_engine(path, tiny_options());
  ASSERT_NE(engine, nullptr);
  memory::Memory& memory = engine->memory();
  memory::Sequence whole = memory.new_sequence();
  const std::vector<float> expected = append(*engine, whole, tokens);
  EXPECT_TRUE(std::all_of(expected.begin(), expected.end(),
                          [](float logit) { return std::isfinite(logit); }));
  const auto rows_from = [&](int32_t row) {
    const size_t vocabulary = expected.size() / tokens.size();
    return std::vector<float>(expected.begin() + std::ptrdiff_t(size_t(row) * vocabulary),
                              expected.end());
  };
  memory::Sequence pieces = memory.new_sequence();
  std::vector<float> found;
  for (const size_t count : {1, 30, 2, 31, 6}) {
    const std::vector<float> rows = append(
        *engine, pieces, std::span<const Token>(tokens).subspan(size_t(pieces.length()), count));
    found.insert(found.end(), rows.begin(), rows.end());
  }
  EXPECT_EQ(found, expected);
  for (const int32_t target : {0, 31, 40, 69}) {
    memory::Sequence fork = memory.at(whole, target).value();
    const auto rest = std::span<const Token>(tokens).subspan(size_t(fork.length()));
    const int32_t first = fork.length();
    EXPECT_EQ(append(*engine, fork, rest), rows_from(first)) << "rewound to " << target;
  }
  // What goes on behind all of it, with the logits of a sequence that was never given away.
  const std::vector<Token> more = {Token(5), Token(250), Token(17)};
  memory::Sequence stayed = memory.at(whole, whole.length()).value();
  const std::vector<float> rows = append(*engine, stayed, more);
  engine->cache().keep(std::move(whole));
  const auto kept = engine->cache().find(tokens, memory::Variant::plain, false);
  ASSERT_NE(kept.sequence, nullptr);
  memory::Sequence again = memory.at(*kept.sequence, kept.shared_tokens).value();
  EXPECT_EQ(again.length(), int32_t(tokens.size()));
  EXPECT_EQ(append(*engine, again, more), rows);
}

TEST_P(EveryArchitecture, IsRefusedWithAnyTensorMissing) {
  const ScratchFolder folder;
  const std::string path = write_tiny(folder, GetParam());
  const bool is_text = makes_text(path);
  const std::string bytes = contents_of(path);
  std::vector<std::string> names;
  {
    auto file = gguf::File::open(path);
    ASSERT_TRUE(file);
    for (const gguf::Tensor& tensor : file->tensors()) names.emplace_back(tensor.name);
  }
  constexpr size_t kEvery = test::kIsSanitized ? 3 : 1;
  for (size_t index = 0; index < names.size(); index += kEvery) {
    const std::string& name = names[index];
    // Its length stands before it; other names may end alike.
    const size_t at = bytes.find(std::string(1, char(name.size())) + std::string(7, '\0') + name);
    ASSERT_NE(at, std::string::npos) << name;
    std::vector<std::byte> other(bytes.size());
    std::memcpy(other.data(), bytes.data(), bytes.size());
    other[at + 8 + name.size() - 1] = std::byte{'?'};
    auto file = gguf::File::from_bytes(other, "model.gguf");
    ASSERT_TRUE(file) << file.error().message;
    EngineOptions options = tiny_options();
    if (!is_text) options.pooling = Pooling::none;
    const auto engine = Engine::load(std::move(file).value(), options);
    if (may_be_missing(name)) continue;
    ASSERT_FALSE(engine) << name;
    EXPECT_NE(engine.error().message.find(name), std::string::npos) << engine.error().message;
  }
}

TEST_P(EveryArchitecture, TakesWhatAPlanOfItsHeaderSays) {
  const ScratchFolder folder;
  const std::string path = write_tiny(folder, GetParam());
  const gguf::File file = gguf::File::open(path).value();
  EngineOptions options = tiny_options();
  const gguf::File* const parts[] = {&file};
  auto hollow = gguf::make_hollow(parts);
  ASSERT_TRUE(hollow) << hollow.error().message;
  auto plan = measure::plan_model(std::move(hollow->file), {.engine = options});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->makes_text, makes_text(path));
  if (!plan->makes_text) options.pooling = Pooling::none;
  const auto engine = test::load_engine(path, options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(plan->fixed.weights, engine->fixed_bytes().weights);
  EXPECT_EQ(plan->fixed.plans, engine->fixed_bytes().plans);
  EXPECT_EQ(plan->fixed.workspace, engine->fixed_bytes().workspace);
  EXPECT_EQ(plan->context_tokens, engine->options().context_tokens);
}

INSTANTIATE_TEST_SUITE_P(Architectures, EveryArchitecture,
                         ::testing::ValuesIn(names_of_architectures()),
                         [](const auto& each) { return test::test_name(each.param); });

}  // namespace
}  // namespace cairn::cli::every_architecture_test
