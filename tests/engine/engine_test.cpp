// Loading refuses what is not right, by name.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

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

}  // namespace
}  // namespace cairn::testing
