// Programs: models with fewer layers, or other numbers of experts. Every architecture keeps all of
// its promises inside a program, or refuses it with a reason; and a program that skips layers is,
// bit for bit, a file from which these were removed.
#include "models/program.h"

#include <cstring>

#include "engine/verifier.h"
#include "gguf/writer.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"
#include "tests/small_pages.h"

namespace cairn::test::program_test {
namespace {

using models::Program;
using models::ProgramChoice;

std::string message(const auto& result) {
  return result ? "" : result.error().message;
}

TEST(Program, ListsOfLayers) {
  const auto parsed = [](std::string_view text) {
    auto layers = models::parse_layer_list("--skip-layers", text);
    return layers ? models::layer_list_text(*layers) : layers.error().message;
  };
  EXPECT_EQ(parsed("4-7,12"), "4-7, 12");
  EXPECT_EQ(parsed("0"), "0");
  EXPECT_EQ(parsed("1,2,3,5-5"), "1-3, 5");
  EXPECT_EQ(models::layer_list_text({}), "");
  for (const char* wrong : {"", "a", "3x", "-1", "5-4", "1,", ",1", "1--2", "1024", "99999999999",
                            "0-1023,0-1023,0-1023"}) {
    EXPECT_EQ(parsed(wrong),
              fmt::format("--skip-layers: expected layers and ranges of them, such as 4-7,12, "
                          "found \"{}\"",
                          wrong));
  }
}

TEST(Program, NamesWhatItSkips) {
  const Program program{.skipped_layers = {1, 12}, .expert_used_count = 0};
  EXPECT_TRUE(program.skips(12));
  EXPECT_FALSE(program.skips(2));
  EXPECT_TRUE(program.skips_tensor("blk.12.attn_q.weight"));
  EXPECT_TRUE(program.skips_tensor("blk.1.x"));
  for (const char* name : {"blk.11.attn_q.weight", "blk.2.x", "blk.1", "blk.x", "output.weight"}) {
    EXPECT_FALSE(program.skips_tensor(name)) << name;
  }
  EXPECT_EQ(program.text(), "all but layers 1, 12");
  EXPECT_EQ((Program{{3}, 1}.text()), "all but layer 3; 1 expert");
  EXPECT_EQ((Program{{}, 2}.text()), "all layers; 2 experts");
  EXPECT_TRUE(Program{}.is_default());
  EXPECT_FALSE((Program{{}, 2}.is_default()));
}

TEST(Program, ChoicesOfLayers) {
  const auto skipped = [](const ProgramChoice& choice) {
    auto layers = models::choose_skipped(choice, 6);
    return layers ? models::layer_list_text(*layers) : layers.error().message;
  };
  EXPECT_EQ(skipped({}), "");
  EXPECT_EQ(skipped({.exit_layer = 6}), "");
  EXPECT_EQ(skipped({.exit_layer = 4}), "4-5");
  EXPECT_EQ(skipped({.exit_layer = 4, .skipped_layers = {5, 2, 0, 2}}), "0, 2, 4-5");
  EXPECT_EQ(skipped({.exit_layer = 7}), "exit layer: expected 1 to 6 layers, found 7");
  EXPECT_EQ(skipped({.skipped_layers = {6}}), "skipped layers: expected 0 to 5, found 6");
  EXPECT_EQ(skipped({.exit_layer = 1, .skipped_layers = {0}}),
            "skipped layers: expected at least one of 6 layers to run, found none");
}

TEST(Program, ChoicesOfExperts) {
  const auto experts = [](const std::string& model, int32_t count) {
    const gguf::File file = gguf::File::open(golden_path(model, ".gguf")).value();
    return models::choose_experts({.expert_count = count}, file.metadata().value());
  };
  const gguf::File file = gguf::File::open(golden_path("mixtral", ".gguf")).value();
  const gguf::Metadata meta = file.metadata().value();
  const int32_t all = meta.count("expert_count").value();
  const int32_t usual = meta.count("expert_used_count").value();
  ASSERT_LT(usual, all);
  EXPECT_EQ(experts("mixtral", usual).value(), 0) << "that is the model itself";
  EXPECT_EQ(experts("mixtral", 1).value(), 1);
  EXPECT_EQ(experts("mixtral", all).value(), all);
  EXPECT_EQ(message(experts("mixtral", all + 1)),
            fmt::format("experts: expected 1 to {}, found {}", all, all + 1));
  EXPECT_EQ(message(experts("llama", 2)),
            "experts: expected a model with experts, found llama without");
  // 8 experts in groups, of which each token uses some: what stands in these.
  const gguf::File grouped = gguf::File::open(golden_path("deepseek3", ".gguf")).value();
  const gguf::Metadata groups = grouped.metadata().value();
  const int32_t open = groups.count("expert_group_used_count").value() *
                       groups.count("expert_count").value() /
                       groups.count("expert_group_count").value();
  EXPECT_EQ(experts("deepseek3", open).value(), open);
  EXPECT_NE(message(experts("deepseek3", open + 1)).find("in the groups"), std::string::npos);
}

std::vector<float> read_in_steps(Engine& engine, std::span<const Token> tokens, size_t step) {
  memory::Sequence sequence = engine.memory().new_sequence();
  std::vector<float> logits;
  for (size_t begin = 0; begin < tokens.size(); begin += step) {
    const auto part = tokens.subspan(begin, std::min(step, tokens.size() - begin));
    const std::vector<float> rows = append(engine, sequence, part);
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

EngineOptions with_program(const ProgramChoice& program) {
  EngineOptions options = golden_options(KvType::f16);
  options.log_step = 16;
  options.program = program;
  return options;
}

class ProgramTest : public test::SmallPagesTest<std::string> {
 protected:
  gguf::File file() const { return gguf::File::open(golden_path(GetParam(), ".gguf")).value(); }

  // Without the last layer; without one in the middle, and with one expert more or less.
  std::vector<ProgramChoice> programs() const {
    const gguf::File file = this->file();
    const gguf::Metadata meta = file.metadata().value();
    const auto whole = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
    const int32_t layer_count = whole->size().layer_count;
    std::vector<ProgramChoice> programs = {{.exit_layer = layer_count - 1}};
    ProgramChoice middle{.skipped_layers = {layer_count / 2}};
    const int32_t expert_count = meta.count_or("expert_count", 0).value();
    if (expert_count > 0) {
      const int32_t used = meta.count("expert_used_count").value();
      middle.expert_count = used > 1 ? used - 1 : used + 1;
      programs.push_back({.expert_count = used > 1 ? 1 : expert_count});
      ProgramChoice more{.expert_count = used + 1};
      if (used < expert_count && models::choose_experts(more, meta)) programs.push_back(more);
    }
    programs.push_back(middle);
    return programs;
  }

  Result<std::unique_ptr<Engine>> load(const EngineOptions& options) const {
    return Engine::load(file(), options);
  }
};

TEST_P(ProgramTest, KeepsEveryPromiseOrRefuses) {
  const Golden golden = read_golden(GetParam());
  const std::vector<Token>& tokens = golden.sequences.back();
  const auto whole = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
  ASSERT_NE(whole, nullptr);
  const std::vector<float> of_whole = read_in_steps(*whole, tokens, tokens.size());
  for (const ProgramChoice& choice : programs()) {
    EngineOptions options = with_program(choice);
    auto engine = load(options);
    if (!engine) {
      EXPECT_EQ(engine.error().code, ErrorCode::unsupported);
      EXPECT_NE(engine.error().message.find("expected it to run, as"), std::string::npos)
          << engine.error().message;
      const bool is_shared = GetParam() == "gemma4" && choice.exit_layer == 0;
      EXPECT_TRUE(GetParam() == "gemma3n" || is_shared)
          << GetParam() << ": " << engine.error().message;
      continue;
    }
    const Program& program = (*engine)->program();
    SCOPED_TRACE(program.text());
    ASSERT_FALSE(program.is_default());
    EXPECT_NE((*engine)->fingerprint({}), whole->fingerprint({}));
    const std::vector<float> expected = read_in_steps(**engine, tokens, tokens.size());
    EXPECT_FALSE(same_bits(expected, of_whole));
    for (const size_t step : {size_t(1), size_t(17)}) {
      EXPECT_TRUE(same_bits(read_in_steps(**engine, tokens, step), expected)) << step;
    }
    const VerifyReport report = verify(**engine, {.program_count = 1}).value();
    EXPECT_EQ(report.differing_bits(), 0) << report.first_difference;
    // Nothing is kept, and no weight is loaded, for what does not run.
    const memory::Layout& layout = (*engine)->memory().layout();
    for (const int32_t layer : program.skipped_layers) {
      EXPECT_EQ(layout.kv_plane_of_layer[size_t(layer)], -1);
      EXPECT_EQ(layout.state_tensor_of_layer[size_t(layer)], -1);
    }
    if (!program.skipped_layers.empty()) {
      EXPECT_LT((*engine)->parameter_count(), whole->parameter_count());
      EXPECT_LE((*engine)->fixed_bytes().weights, whole->fixed_bytes().weights);
    }
    if (test::kIsSanitized) continue;
    options.backend = "reference";
    options.thread_count = 1;
    engine = load(options);
    ASSERT_TRUE(bool(engine)) << message(engine);
    EXPECT_TRUE(same_bits(read_in_steps(**engine, tokens, tokens.size()), expected)) << "reference";
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ProgramTest, ::testing::ValuesIn(supported_cases()),
                         [](const auto& each) { return each.param; });

// "blk.3.x" as it is named where layers before it were removed; empty: it was itself.
std::string renamed(std::string_view name, const std::vector<int32_t>& removed) {
  if (!name.starts_with("blk.")) return std::string(name);
  const size_t dot = name.find('.', 4);
  const int32_t layer = std::stoi(std::string(name.substr(4, dot - 4)));
  int32_t before = 0;
  for (const int32_t other : removed) {
    if (other == layer) return "";
    before += other < layer ? 1 : 0;
  }
  return fmt::format("blk.{}{}", layer - before, name.substr(dot));
}

// Windows of each layer: what files say by a period, or leave to the architecture.
std::vector<bool> window_marks(const gguf::Metadata& meta, int32_t layer_count) {
  const std::string key = meta.key("attention.sliding_window_pattern");
  std::vector<bool> marks;
  const gguf::Value* value = meta.fields().find(key);
  if (value != nullptr && value->is_array()) {
    for (const int32_t mark :
         meta.per_layer("attention.sliding_window_pattern", layer_count).value())
      marks.push_back(mark != 0);
    return marks;
  }
  const int32_t period =
      meta.count_or("attention.sliding_window_pattern", meta.architecture() == "gemma3" ? 6 : 2)
          .value();
  for (int32_t layer = 0; layer < layer_count; ++layer) {
    marks.push_back((layer + 1) % period != 0);
  }
  return marks;
}

// The file with layers removed, and another number of experts that each token uses.
std::vector<std::byte> without_layers(const gguf::File& file, const std::vector<int32_t>& removed,
                                      int32_t used_experts) {
  const gguf::Metadata meta = file.metadata().value();
  const int32_t layer_count = meta.count("block_count").value();
  const auto is_removed = [&](size_t layer) {
    return std::find(removed.begin(), removed.end(), int32_t(layer)) != removed.end();
  };
  gguf::Writer writer;
  for (const gguf::Field& field : file.fields().all()) {
    if (field.key == meta.key("block_count")) {
      writer.add(field.key, uint32_t(layer_count) - uint32_t(removed.size()));
    } else if (field.key == meta.key("expert_used_count") && used_experts > 0) {
      writer.add(field.key, uint32_t(used_experts));
    } else if (field.key == meta.key("attention.sliding_window_pattern")) {
      continue;
    } else if (auto list = file.fields().get<gguf::Integers>(field.key);
               field.key.starts_with(meta.architecture()) && list &&
               list->size() == size_t(layer_count)) {
      std::vector<int32_t> kept;
      for (size_t layer = 0; layer < list->size(); ++layer) {
        if (!is_removed(layer)) kept.push_back(int32_t((*list)[layer]));
      }
      writer.add_array<int32_t>(field.key, kept);
    } else {
      writer.add(field.key, field.value);
    }
  }
  if (meta.has("attention.sliding_window")) {
    std::vector<bool> marks = window_marks(meta, layer_count), kept;
    for (size_t layer = 0; layer < marks.size(); ++layer) {
      if (!is_removed(layer)) kept.push_back(marks[layer]);
    }
    writer.add_booleans(meta.key("attention.sliding_window_pattern"), kept);
  }
  std::vector<std::span<const std::byte>> parts;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string name = renamed(tensor.name, removed);
    if (name.empty()) continue;
    writer.declare(name, std::span(tensor.dims).first(size_t(tensor.dim_count)), tensor.type_id);
    parts.push_back(tensor.bytes);
  }
  std::vector<std::byte> out;
  gguf::TensorStream stream = writer.open_memory(out).value();
  for (const auto bytes : parts) EXPECT_TRUE(bool(stream.append(bytes)));
  EXPECT_TRUE(bool(stream.finish()));
  return out;
}

// Dense, with windows, recurrent, both, with experts.
TEST(Program, EqualsTheFileWithoutTheseLayers) {
  struct Case {
    std::string model;
    std::vector<int32_t> layers;
    int32_t experts = 0;
  };
  for (const auto& [name, layers, experts] : std::vector<Case>{{"llama", {0}},
                                                               {"llama", {1}},
                                                               {"gemma3", {1}},
                                                               {"gemma3", {0, 2}},
                                                               {"gemma2", {1}},
                                                               {"mamba", {0}},
                                                               {"rwkv7", {1}},
                                                               {"granitehybrid", {0}},
                                                               {"granitehybrid", {1}},
                                                               {"nemotron_h", {1}},
                                                               {"mixtral", {1}, 1},
                                                               {"mixtral", {}, 5},
                                                               {"qwen3moe", {0}, 1}}) {
    SCOPED_TRACE(
        fmt::format("{} without {}, {} experts", name, models::layer_list_text(layers), experts));
    const gguf::File file = gguf::File::open(golden_path(name, ".gguf")).value();
    const std::vector<std::byte> thinner = without_layers(file, layers, experts);
    EngineOptions options = golden_options(KvType::f16);
    auto removed = Engine::load(gguf::File::from_bytes(thinner, "thinner").value(), options);
    ASSERT_TRUE(bool(removed)) << message(removed);
    options.program = {.skipped_layers = layers, .expert_count = experts};
    const auto skipped = load_engine(golden_path(name, ".gguf"), options);
    ASSERT_NE(skipped, nullptr);
    EXPECT_EQ(skipped->parameter_count(), (*removed)->parameter_count());
    const std::vector<Token> tokens = read_golden(name).sequences.back();
    EXPECT_TRUE(same_bits(read_in_steps(*skipped, tokens, 17),
                          read_in_steps(**removed, tokens, tokens.size())));
  }
}

// A layer that another needs is named, with the reason.
TEST(Program, RefusalsNameTheLayerAndTheReason) {
  const auto path_of = [](const std::string& name) {
    return name == "bert" ? std::string(CAIRN_FIXTURES) + "/golden_embeddings/bert.gguf"
                          : golden_path(name, ".gguf");
  };
  const auto refusal = [&](const std::string& name, const ProgramChoice& choice,
                           std::optional<Pooling> pooling = std::nullopt) {
    EngineOptions options = golden_options(KvType::f32);
    options.program = choice;
    options.pooling = pooling;
    return message(Engine::load(gguf::File::open(path_of(name)).value(), options));
  };
  EXPECT_EQ(refusal("gemma3n", {.skipped_layers = {1}}),
            "layer 1: expected it to run, as each layer predicts and corrects all of the model's "
            "streams (AltUp), found it skipped");
  EXPECT_EQ(refusal("rwkv7", {.skipped_layers = {0}}),
            "layer 0: expected it to run, as all others mix its values into theirs, found it "
            "skipped");
  EXPECT_EQ(refusal("rwkv7", {.exit_layer = 1}), "");
  EXPECT_EQ(refusal("gemma4", {.skipped_layers = {3}}),
            "layer 3: expected it to run, as layer 5 reads its keys and values, found it skipped");
  EXPECT_EQ(refusal("gemma4", {.exit_layer = 5}), "") << "nor do those that read them run";
  EXPECT_EQ(refusal("llama", {.exit_layer = 1}, Pooling::mean),
            "llama: expected all of the model for vectors and scores of texts, found a program of "
            "all but layers 1-3");
  EXPECT_EQ(refusal("bert", {.exit_layer = 1}, Pooling::mean).substr(0, 29),
            "bert: expected all of the mod");
}

}  // namespace
}  // namespace cairn::test::program_test
