// Synthetic models: every architecture's file opens, has sane weights and the same bytes for the
// same seed. Covers synth_shape.cpp, synth_vocabulary.cpp, synth_weights.cpp.
#include "synth/synth.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "gguf/gguf.h"
#include "models/model.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"

namespace cairn::synth::synth_test {
namespace {

using test::contents_of;
using test::ScratchFolder;

SynthReport write(const SynthOptions& options) {
  auto report = write_synthetic(options);
  EXPECT_TRUE(report) << report.error().message;
  return std::move(report).value();
}

TEST(Synth, EveryArchitectureIsWrittenWholeAndWithSaneWeights) {
  const ScratchFolder folder;
  // Sanitizers look at each way of writing, of which many architectures share one.
  constexpr size_t kStep = test::kIsSanitized ? 5 : 1;
  const auto all = models::all_architectures();
  for (size_t index = 0; index < all.size(); index += kStep) {
    const models::Architecture* architecture = all[index];
    SynthOptions options{.shape = default_shape(architecture->name),
                         .type = "Q4_0",
                         .seed = 5,
                         .out_path = folder.file("model.gguf")};
    const SynthReport report = write(options);
    EXPECT_EQ(contents_of(options.out_path).size(), report.file_bytes);
    auto file = gguf::File::open(options.out_path);
    ASSERT_TRUE(file) << file.error().message;
    auto meta = file->metadata();
    ASSERT_TRUE(meta) << meta.error().message;
    EXPECT_EQ(meta->architecture(), architecture->name);
    EXPECT_EQ(file->tensors().size(), size_t(report.tensor_count));
    for (const gguf::Tensor& tensor : file->tensors()) {
      std::vector<float> weights(size_t(tensor.weight_count));
      quant::decode_row(*tensor.type, tensor.bytes, weights);
      double sum_squares = 0;
      for (const float weight : weights) sum_squares += double(weight) * double(weight);
      const double rms = std::sqrt(sum_squares / double(weights.size()));
      ASSERT_TRUE(std::isfinite(rms)) << tensor.name;
      EXPECT_GT(rms, 0.005) << tensor.name;
      EXPECT_LT(rms, 16.0) << tensor.name;
      if (tensor.name.ends_with("ffn_up.weight")) {
        EXPECT_NEAR(rms * std::sqrt(double(tensor.dims[0])), 1.0, 0.05) << tensor.name;
      }
    }
  }
}

TEST(Synth, PredictingLayersStandBehindTheOthers) {
  const ScratchFolder folder;
  for (const char* architecture : {"qwen35", "qwen35moe", "qwen3next", "glm4moe", "deepseek2"}) {
    SynthOptions options{.shape = default_shape(architecture),
                         .out_path = folder.file("model.gguf")};
    const int64_t plain_count = write(options).tensor_count;
    options.shape.predicting_layers = 1;
    EXPECT_GT(write(options).tensor_count, plain_count + 8) << architecture;
    auto file = gguf::File::open(options.out_path);
    ASSERT_TRUE(file) << file.error().message;
    const std::string name =
        "blk." + std::to_string(options.shape.layers) + ".nextn.eh_proj.weight";
    ASSERT_NE(file->find(name), nullptr) << architecture;
  }
  SynthOptions options{.shape = default_shape("llama"), .out_path = folder.file("model.gguf")};
  options.shape.predicting_layers = 1;
  const auto none = write_synthetic(options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "predicting-layers: expected 0 for llama, found 1");
}

TEST(Synth, WhatWouldChangeNothingIsRefused) {
  const ScratchFolder folder;
  const auto error_with = [&](std::string_view like, std::string_view name, int32_t value) {
    SynthOptions options{.shape = default_shape(like), .out_path = folder.file("model.gguf")};
    for (const SynthField& field : synth_fields()) {
      if (field.name == name) options.shape.*field.member = value;
      if (name == "experts" && field.name == "experts-used") options.shape.*field.member = 1;
    }
    const auto report = write_synthetic(options);
    return report ? std::string() : report.error().message;
  };
  for (const char* name :
       {"window", "window-period", "window-head-dim", "shared-kv-layers", "layer-input-width"}) {
    EXPECT_EQ(error_with("llama", name, 2), fmt::format("{}: expected 0 for llama, found 2", name));
  }
  EXPECT_EQ(error_with("gemma3", "window-head-dim", 2),
            "window-head-dim: expected 0 for gemma3, found 2");
  EXPECT_EQ(error_with("gemma3", "shared-kv-layers", 2),
            "shared-kv-layers: expected 0 for gemma3, found 2");
  EXPECT_EQ(error_with("llama", "expert-width", 64),
            "expert-width: expected 0 without experts, found 64");
  EXPECT_EQ(error_with("gpt2", "experts", 4), "experts: expected 0 for gpt2, found 4");
  EXPECT_EQ(error_with("gemma3", "window", 32), "");
  EXPECT_EQ(error_with("gemma4", "window-head-dim", 16), "");
  EXPECT_EQ(error_with("qwen3moe", "expert-width", 64), "");
}

TEST(Synth, SeedDecidesTheBytesAndThreadsDoNot) {
  const ScratchFolder folder;
  SynthOptions options{.shape = default_shape("qwen3moe"), .type = "Q8_0", .seed = 1};
  const auto bytes_with = [&](uint64_t seed, int32_t thread_count) {
    options.seed = seed;
    options.thread_count = thread_count;
    options.out_path = folder.file("model.gguf");
    write(options);
    return contents_of(options.out_path);
  };
  const std::string one = bytes_with(1, 1);
  EXPECT_EQ(bytes_with(1, 3), one);
  EXPECT_NE(bytes_with(2, 1), one);
}

TEST(Synth, RowsThatDoNotFitGetAnotherTypeWithANote) {
  const ScratchFolder folder;
  SynthOptions options{.shape = default_shape("llama"),
                       .type = "Q4_K",
                       .seed = 1,
                       .out_path = folder.file("model.gguf")};
  EXPECT_TRUE(write(options).notes.empty());
  options.shape.width = 96;
  options.shape.head_dim = 10;
  options.shape.mlp_width = 256;
  const SynthReport report = write(options);
  ASSERT_EQ(report.notes.size(), 2u);
  EXPECT_TRUE(report.notes[0].ends_with(
      "matrices with rows of 40 are F16: Q4_K has blocks of 256 weights (as llama.cpp does it)"))
      << report.notes[0];
  const gguf::File file = gguf::File::open(options.out_path).value();
  EXPECT_EQ(file.find("blk.0.ffn_up.weight")->type->name, "Q5_0");      // Rows of 96.
  EXPECT_EQ(file.find("blk.0.attn_output.weight")->type->name, "F16");  // Rows of 40.
  EXPECT_EQ(file.find("blk.0.ffn_down.weight")->type->name, "Q4_K");    // Rows of 256.
}

// Encoding these takes long: their codes are random, and still have the spread of other weights.
TEST(Synth, FormatsThatTakeLongAreMadeOfCodes) {
  const ScratchFolder folder;
  for (const char* type : {"IQ1_S", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"}) {
    write({.shape = default_shape("llama"), .type = type, .out_path = folder.file("model.gguf")});
    const gguf::File file = gguf::File::open(folder.file("model.gguf")).value();
    const auto* tensor = file.find("blk.1.ffn_down.weight");
    ASSERT_EQ(tensor->type->name, type);
    std::vector<float> weights(768 * 256);
    quant::decode_row(*tensor->type, tensor->bytes, weights);
    double sum = 0, squares = 0;
    for (const float weight : weights) {
      sum += weight;
      squares += weight * weight;
    }
    EXPECT_NEAR(squares, 256, 3) << type;  // 1 / inputs each.
    EXPECT_LT(std::abs(sum), 5000 * std::sqrt(1.0 / 768)) << type;
  }
}

TEST(Synth, PresetsAreTrueShapes) {
  for (const SynthPreset& preset : synth_presets()) {
    EXPECT_TRUE(check(preset.shape)) << preset.name;
    EXPECT_TRUE(models::find_architecture(preset.shape.architecture)) << preset.name;
  }
  const auto unknown = preset_shape("no-such");
  ASSERT_FALSE(unknown);
  EXPECT_TRUE(unknown.error().message.starts_with("preset: expected one of llama-1b"))
      << unknown.error().message;
}

TEST(Synth, BadShapesAreNamed) {
  const auto message_of = [](auto change) {
    SynthShape shape = default_shape("llama");
    change(shape);
    const Status status = check(shape);
    return status ? std::string("fine") : status.error().message;
  };
  EXPECT_EQ(message_of([](SynthShape& s) { s.heads = 0; }), "heads: expected 1 to 1024, found 0");
  EXPECT_EQ(message_of([](SynthShape& s) { s.kv_heads = 3; }),
            "kv-heads: expected a divisor of 4 heads, found 3");
  EXPECT_EQ(message_of([](SynthShape& s) { s.head_dim = 63; }),
            "head-dim: expected an even number, found 63");
  EXPECT_EQ(message_of([](SynthShape& s) {
              s.experts = 4;
              s.experts_used = 5;
            }),
            "experts-used: expected 1 to 4, found 5");
}

TEST(Synth, UnknownTypesAreNamed) {
  EXPECT_TRUE(matrix_type("Q4_K"));
  const auto unknown = matrix_type("Q4_Z");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "type: expected a type such as Q8_0, Q4_K or F16, found \"Q4_Z\"");
}

}  // namespace
}  // namespace cairn::synth::synth_test
