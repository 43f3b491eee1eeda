// For tests: models whose files have a layer that predicts further tokens.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "tests/models/golden_model.h"

namespace cairn::test {

inline constexpr std::array kPredictingModels = {"glm4moe", "qwen35-tiny", "deepseek3"};

// Of a golden model, with a predicting layer behind the others: the last one again. See
// tools/make_predictor_reference.py, which has the same norms and projection.
inline std::vector<std::byte> with_predicting_layer(const gguf::File& file) {
  const gguf::Metadata meta = file.metadata().value();
  const std::string key = meta.architecture() + ".";
  const int32_t layers = meta.count("block_count").value();
  const std::string last = "blk." + std::to_string(layers - 1) + ".";
  const std::string added = "blk." + std::to_string(layers) + ".";
  gguf::Writer writer;
  for (const gguf::Field& field : file.fields().all()) {
    if (field.key != key + "block_count") writer.add(field.key, field.value);
  }
  writer.add(key + "block_count", uint32_t(layers + 1));
  writer.add(key + "nextn_predict_layers", uint32_t(1));
  std::vector<std::vector<std::byte>> contents;
  const auto add = [&](const std::string& name, const gguf::Tensor& like,
                       std::span<const std::byte> bytes) {
    writer.declare(name, std::span(like.dims).first(size_t(like.dim_count)), like.type_id);
    contents.emplace_back(bytes.begin(), bytes.end());
  };
  for (const gguf::Tensor& tensor : file.tensors()) {
    const std::string name(tensor.name);
    add(name, tensor, tensor.bytes);
    if (name.starts_with(last)) add(added + name.substr(last.size()), tensor, tensor.bytes);
  }
  const gguf::Tensor& norm = *file.find("output_norm.weight");
  for (const char* name : {"enorm", "hnorm", "shared_head_norm"}) {
    add(added + "nextn." + name + ".weight", norm, norm.bytes);
  }
  const int64_t width = norm.dims[0];
  std::vector<float> projection;
  for (int64_t row = 0; row < width; ++row) {
    for (int64_t column = 0; column < 2 * width; ++column) {
      projection.push_back(float(std::sin(0.37 * double(row) + 0.91 * double(column)) / 8));
    }
  }
  const std::vector<int64_t> dims = {2 * width, width};
  writer.declare(added + "nextn.eh_proj.weight", dims, norm.type_id);
  const auto bytes = std::as_bytes(std::span(projection));
  contents.emplace_back(bytes.begin(), bytes.end());
  std::vector<std::byte> out;
  Result<gguf::TensorStream> stream = writer.open_memory(out);
  EXPECT_TRUE(stream) << (stream ? "" : stream.error().message);
  for (const auto& content : contents) EXPECT_TRUE(stream->append(content));
  EXPECT_TRUE(stream->finish());
  return out;
}

inline std::unique_ptr<Engine> load_predicting(const std::string& name, EngineOptions options,
                                               bool has_predictor = true) {
  options.loads_predictor = has_predictor;
  if (name != "deepseek3") {
    return load_engine(std::string(CAIRN_FIXTURES) + "/folders/" + name + ".gguf", options);
  }
  // The engine reads the bytes as long as it lives.
  static const std::vector<std::byte> bytes =
      with_predicting_layer(gguf::File::open(golden_path(name, ".gguf")).value());
  Result<gguf::File> extended = gguf::File::from_bytes(bytes, name);
  EXPECT_TRUE(extended) << (extended ? "" : extended.error().message);
  Result<std::unique_ptr<Engine>> engine = Engine::load(std::move(extended).value(), options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? std::move(engine).value() : nullptr;
}

}  // namespace cairn::test
