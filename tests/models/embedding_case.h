// A golden model that makes vectors (tools/make_embedding_golden.py): what transformers gives for
// each token, pooled and scored, and an engine on the file.
#pragma once

#include <map>
#include <utility>

#include "engine/embedder.h"
#include "tests/models/golden_model.h"

namespace cairn::test {

struct EmbeddingCase {
  std::string name;
  int32_t width = 0, score_count = 0;
  struct Sequence {
    std::vector<Token> tokens;
    std::vector<float> rows;                        // [token][width]
    std::map<Pooling, std::vector<float>> vectors;  // Of length 1; with rank the scores.
  };
  std::vector<Sequence> sequences;
};

inline std::string embedding_path(const std::string& name, const std::string& ending) {
  return std::string(CAIRN_FIXTURES) + "/golden_embeddings/" + name + ending;
}

inline std::vector<std::string> embedding_cases() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(CAIRN_FIXTURES) + "/golden_embeddings")) {
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline EmbeddingCase read_embedding_case(const std::string& name) {
  EmbeddingCase out{.name = name, .sequences = {}};
  std::ifstream json_file(embedding_path(name, ".json"));
  EXPECT_TRUE(json_file.good()) << embedding_path(name, ".json");
  const nlohmann::json json = nlohmann::json::parse(json_file);
  out.width = json["width"];
  out.score_count = json["scores"];
  std::ifstream numbers(embedding_path(name, ".f32"), std::ios::binary);
  const auto read = [&](size_t count) {
    std::vector<float> values(count);
    numbers.read(reinterpret_cast<char*>(values.data()),
                 std::streamsize(values.size() * sizeof(float)));
    EXPECT_TRUE(numbers.good());
    return values;
  };
  for (const auto& ids : json["sequences"]) {
    EmbeddingCase::Sequence sequence{.tokens = tokens_of(ids), .rows = {}, .vectors = {}};
    sequence.rows = read(sequence.tokens.size() * size_t(out.width));
    for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::last}) {
      sequence.vectors[pooling] = read(size_t(out.width));
    }
    if (out.score_count > 0) sequence.vectors[Pooling::rank] = read(size_t(out.score_count));
    out.sequences.push_back(std::move(sequence));
  }
  return out;
}

inline EngineOptions embedding_options(Pooling pooling, KvType kv = KvType::f32) {
  EngineOptions options = golden_options(kv);
  options.pooling = pooling;
  return options;
}

// The worst single number, in units of the reference's standard deviation.
inline double worst_of(std::span<const float> found, std::span<const float> expected) {
  EXPECT_EQ(found.size(), expected.size());
  double worst = 0, squares = 0;
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const double difference = std::abs(double(found[i]) - double(expected[i]));
    worst = std::max(worst, std::isnan(difference) ? HUGE_VAL : difference);
    squares += double(expected[i]) * double(expected[i]);
  }
  return worst / std::sqrt(squares / double(expected.size()));
}

// Of all tokens' vectors.
inline double error_of(const EmbeddingCase& golden, Engine& engine) {
  Embedder embedder(&engine, {});
  double worst = 0;
  for (const EmbeddingCase::Sequence& sequence : golden.sequences) {
    auto found = embedder.embed({&sequence.tokens, 1});
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    if (found) worst = std::max(worst, worst_of((*found)[0].values, sequence.rows));
  }
  return worst;
}

}  // namespace cairn::test
