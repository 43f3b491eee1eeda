// Loading refuses what is not right, by name.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>

#include "engine/parameter_loader.h"
#include "gguf/writer.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"

namespace cairn::test::engine_test {
namespace {

struct Change {
  std::string without_tensor;   // Left out.
  std::string narrower_tensor;  // Half of its second dimension.
  std::string wider_tensor;     // Twice as much of it.
  std::string architecture;     // Instead of the file's.
  std::optional<bool> causal;   // Said again.
};

// A golden model written again with one thing changed.
std::vector<std::byte> rewritten(const std::string& name, const Change& change) {
  const gguf::File file = gguf::File::open(golden_path(name, ".gguf")).value();
  gguf::Writer writer;
  for (const gguf::Field& field : file.fields().all()) {
    if (field.key == "general.architecture" && !change.architecture.empty()) {
      writer.add(field.key, std::string_view(change.architecture));
    } else if (!change.causal || !field.key.ends_with(".attention.causal")) {
      writer.add(field.key, field.value);
    }
  }
  if (change.causal) {
    const std::string prefix(file.metadata().value().architecture());
    writer.add(prefix + ".attention.causal", *change.causal);
  }
  std::vector<std::span<const std::byte>> parts;
  std::vector<std::byte> twice;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.name == change.without_tensor) continue;
    std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.dim_count);
    std::span<const std::byte> bytes = tensor.bytes;
    if (tensor.name == change.narrower_tensor) {
      dims[1] /= 2;
      bytes = bytes.first(bytes.size() / 2);
    }
    if (tensor.name == change.wider_tensor) {
      dims[1] *= 2;
      twice.assign(bytes.begin(), bytes.end());
      twice.insert(twice.end(), bytes.begin(), bytes.end());
      bytes = twice;
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

std::string load_error(const std::vector<std::byte>& bytes, const EngineOptions& options,
                       std::optional<ErrorCode> code = std::nullopt) {
  Result<gguf::File> file = gguf::File::from_bytes(bytes, "model");
  EXPECT_TRUE(bool(file)) << (file ? "" : file.error().message);
  const auto engine = Engine::load(std::move(file).value(), options);
  if (!engine && code) {
    EXPECT_EQ(engine.error().code, *code);
  }
  return engine ? "" : engine.error().message;
}

TEST(Engine, NamesAnUnknownArchitectureAndTheKnownOnes) {
  const std::string error =
      load_error(rewritten("llama", {.architecture = "nonesuch"}), golden_options(KvType::f16));
  EXPECT_NE(error.find("nonesuch"), std::string::npos) << error;
  EXPECT_NE(error.find("granitehybrid"), std::string::npos) << error;
}

// Weights that do not fit are not taken to find that out.
TEST(Engine, ComparesWhatItNeedsWithTheLimitBeforeWeightsAreTaken) {
  bool has_packed = false;
  EngineOptions options = golden_options(KvType::f16);
  options.memory_room = MemoryRoom{.bytes = 54321, .limited_by = "control group"};
  options.on_progress = [&](size_t, size_t) { has_packed = true; };
  const std::string error = load_error(rewritten("llama", {}), options, ErrorCode::memory_full);
  EXPECT_EQ(error.find("model: needs "), 0u) << error;
  EXPECT_NE(error.find("found 54321 (limit: control group)"), std::string::npos) << error;
  EXPECT_FALSE(has_packed);
  options.memory_room->bytes = size_t(1) << 30;
  EXPECT_EQ(load_error(rewritten("llama", {}), options), "");
}

// Attack 17: there is no id between the vocabulary and the width of the logits, because a file in
// which they differ is refused.
TEST(Engine, LogitsAreAsManyAsTheVocabulary) {
  int count = 0;
  const gguf::File file = gguf::File::open(golden_path("llama", ".gguf")).value();
  for (const char* name : {"output.weight", "token_embd.weight"}) {
    if (file.find(name) == nullptr) continue;
    const std::string error =
        load_error(rewritten("llama", {.wider_tensor = name}), golden_options(KvType::f16));
    EXPECT_NE(error.find(name), std::string::npos) << error;
    ++count;
  }
  EXPECT_GT(count, 0);
}

// Who owns several engines decides what each one gets, before it takes anything.
TEST(Engine, TellsWhatItCountsBeforeWeightsAreTaken) {
  bool has_packed = false;
  FixedBytes told;
  EngineOptions options = golden_options(KvType::f16);
  options.on_progress = [&](size_t, size_t) { has_packed = true; };
  options.on_counted = [&](const Counted& counted) -> Result<size_t> {
    EXPECT_FALSE(has_packed);
    EXPECT_EQ(counted.conversations, options.memory_budget);
    told = counted.fixed;
    return counted.conversations - 4096;
  };
  const auto engine = load_engine(golden_path("llama", ".gguf"), options);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->options().memory_budget, options.memory_budget - 4096);
  EXPECT_EQ(engine->fixed_bytes().total(), told.total());
  EXPECT_GT(told.total(), told.weights);
  has_packed = false;
  options.on_counted = [](const Counted&) -> Result<size_t> {
    return fail(ErrorCode::memory_full, "no room for this one");
  };
  EXPECT_EQ(load_error(rewritten("llama", {}), options, ErrorCode::memory_full),
            "no room for this one");
  EXPECT_FALSE(has_packed);
}

TEST(Engine, ConversationsGetHalfOfWhatWeightsLeave) {
  const auto budget_of = [](MemoryRoom room, bool is_unpacked = false) {
    EngineOptions options = golden_options(KvType::f16);
    options.memory_budget = 0;
    options.is_unpacked = is_unpacked;
    options.memory_room = room;
    const auto engine = load_engine(golden_path("llama", ".gguf"), options);
    EXPECT_NE(engine, nullptr);
    return engine == nullptr ? 0 : engine->options().memory_budget;
  };
  constexpr size_t kGiB = size_t(1) << 30;
  const size_t budget = budget_of({.bytes = kGiB});
  EXPECT_LT(budget, kGiB / 2);
  EXPECT_GT(budget, kGiB / 2 - (size_t(64) << 20));
  EXPECT_EQ(budget_of({.bytes = 2 * kGiB}), budget + kGiB / 2);
  EXPECT_GT(budget_of({.bytes = kGiB}, true), budget) << "unpacked weights take nothing";
  // Each group of layers reserves addresses for it: pages, and hidden rows.
  EXPECT_LT(2 * budget_of({.bytes = 4 * kGiB, .address_bytes = kGiB}), kGiB);
  EXPECT_EQ(budget_of({}), kGiB) << "nobody says";
}

// Files of the same architecture may see both ways; read the other way, all would be wrong.
TEST(Engine, RefusesTheOtherDirectionOfAttention) {
  const EngineOptions options = golden_options(KvType::f16);
  EXPECT_EQ(load_error(rewritten("llama", {.causal = false}), options),
            "llama.attention.causal: expected true, found false");
  EXPECT_EQ(load_error(rewritten("llama", {.causal = true}), options), "");
  const std::string bert = "../golden_embeddings/bert";
  EXPECT_EQ(load_error(rewritten(bert, {.causal = true}), options),
            "bert.attention.causal: expected false, found true");
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

TEST(Engine, EveryTensorOfTheGoldenModelsIsRead) {
  for (const std::string& name : supported_cases()) {
    const gguf::File file = gguf::File::open(golden_path(name, ".gguf")).value();
    const gguf::Metadata meta = file.metadata().value();
    auto model = models::find_architecture(meta.architecture()).value()->create(meta).value();
    ParameterLoader loader(&file);
    ASSERT_TRUE(bool(model->visit_parameters(loader))) << name;
    for (const std::string_view unread : loader.unread()) ADD_FAILURE() << name << ": " << unread;
  }
}

// A gate that is a matrix of its own and the same gate in one matrix with the rest are one model.
TEST(Engine, FusedExpertsWithBiasesComputeTheSame) {
  const gguf::File file = gguf::File::open(golden_path("gptoss", ".gguf")).value();
  gguf::Writer writer;
  for (const gguf::Field& field : file.fields().all()) writer.add(field.key, field.value);
  std::vector<std::vector<std::byte>> parts;
  for (const gguf::Tensor& tensor : file.tensors()) {
    std::string name(tensor.name);
    std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.dim_count);
    if (name.find("ffn_up_exps.") != std::string::npos) continue;
    std::vector<std::byte>& part = parts.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
    if (const size_t at = name.find("ffn_gate_exps."); at != std::string::npos) {
      const gguf::Tensor& up = *file.find(std::string(name).replace(at, 13, "ffn_up_exps"));
      name.replace(at, 13, "ffn_gate_up_exps");
      const size_t expert_bytes = tensor.bytes.size() / size_t(dims.back());
      part.clear();
      for (size_t from = 0; from < tensor.bytes.size(); from += expert_bytes) {
        for (const gguf::Tensor* half : {&tensor, &up}) {
          const auto bytes = half->bytes.subspan(from, expert_bytes);
          part.insert(part.end(), bytes.begin(), bytes.end());
        }
      }
      dims[dims.size() - 2] *= 2;
    }
    writer.declare(name, dims, tensor.type_id);
  }
  std::vector<std::byte> out;
  gguf::TensorStream stream = writer.open_memory(out).value();
  for (const auto& part : parts) EXPECT_TRUE(bool(stream.append(part)));
  EXPECT_TRUE(bool(stream.finish()));

  const std::vector<Token> tokens = read_golden("gptoss").sequences.front();
  const auto logits_of = [&](gguf::File model) {
    const auto engine = Engine::load(std::move(model), golden_options(KvType::f16)).value();
    memory::Sequence sequence = engine->memory().new_sequence();
    return append(*engine, sequence, tokens);
  };
  EXPECT_EQ(logits_of(gguf::File::from_bytes(out, "fused").value()),
            logits_of(gguf::File::open(golden_path("gptoss", ".gguf")).value()));
}

// Whenever that is: nothing unfinished is left, and the next time it is loaded as ever.
TEST(Engine, LoadingIsGivenUpAtAnyMoment) {
  const std::vector<std::byte> bytes = rewritten("llama", {});
  const test::ScratchFolder folder;
  EngineOptions options = golden_options(KvType::f16);
  options.pack_cache = folder.path().string();
  int given_up = 0;
  for (std::string error = "not loaded yet"; !error.empty(); ++given_up) {
    ASSERT_LT(given_up, 10000);
    std::atomic<int> asked{0};
    // Wanted again behind that one question, whose thread may have left something out.
    options.is_given_up = [&] { return asked++ == given_up; };
    error = load_error(bytes, options, ErrorCode::cancelled);
    EXPECT_TRUE(error.empty() || error.find("given up") != std::string::npos) << error;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      EXPECT_EQ(file.path().extension(), ".cairnpack");
    }
  }
  EXPECT_GT(given_up, 4);
}

TEST(Engine, RefusesOptionsThatCannotBe) {
  const std::vector<std::byte> bytes = rewritten("llama", {});
  EngineOptions options = golden_options(KvType::f16);
  options.backend = "abacus";
  EXPECT_NE(load_error(bytes, options).find("abacus"), std::string::npos);
  options = golden_options(KvType::f16);
  options.context_tokens = 513;
  EXPECT_NE(load_error(bytes, options).find("512"), std::string::npos);
  options = golden_options(KvType::f16);
  options.is_unpacked = true;
  options.pack_cache = ".";
  EXPECT_NE(load_error(bytes, options).find("pack cache"), std::string::npos);
}

// Models whose weights are packed, mapped from a cache or packed on the way are one model.
TEST(Engine, WhereWeightsComeFromChangesNoBit) {
  const test::ScratchFolder folder;
  for (const char* name : {"llama", "qwen3moe", "gptoss", "granitehybrid", "gemma3"}) {
    const std::vector<Token> tokens = read_golden(name).greedy;
    ASSERT_GT(tokens.size(), 8u);
    const auto logits_of = [&](const EngineOptions& options) {
      const auto engine = load_engine(golden_path(name, ".gguf"), options);
      memory::Sequence sequence = engine->memory().new_sequence();
      // Many rows, then one, then two: each has products of its own.
      const std::span<const Token> all(tokens);
      std::vector<float> logits = append(*engine, sequence, all.first(all.size() - 3));
      for (const size_t from : {all.size() - 3, all.size() - 2}) {
        const size_t count = from + 3 == all.size() ? 1 : 2;
        const std::vector<float> more = append(*engine, sequence, all.subspan(from, count));
        logits.insert(logits.end(), more.begin(), more.end());
      }
      return logits;
    };
    EngineOptions options = golden_options(KvType::f16);
    const std::vector<float> packed = logits_of(options);
    options.is_unpacked = true;
    EXPECT_EQ(logits_of(options), packed) << name;
    options.is_unpacked = false;
    options.pack_cache = folder.path();
    EXPECT_EQ(logits_of(options), packed) << name;
    EXPECT_EQ(logits_of(options), packed) << name;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 5);
}

}  // namespace
}  // namespace cairn::test::engine_test
