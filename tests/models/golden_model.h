// A golden model of tests/fixtures with its reference logits, and an engine on it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace cairn::test {

struct Golden {
  std::string name;
  std::vector<std::vector<Token>> sequences;
  std::vector<std::vector<float>> logits;  // [sequence][token * vocabulary + id]
  int32_t vocabulary_count = 0;
  int32_t greedy_prompt_count = 0;
  std::vector<Token> greedy;  // The prompt, then what greedy decoding gives.
  double deviation = 0;       // Of all reference logits.
};

inline std::string golden_path(const std::string& name, const std::string& ending) {
  return std::string(CAIRN_FIXTURES) + "/golden/" + name + ending;
}

// The cases of tests/fixtures/golden whose architecture is in the table.
inline std::vector<std::string> read_supported_cases() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(CAIRN_FIXTURES) + "/golden")) {
    if (entry.path().extension() != ".gguf") continue;
    Result<gguf::File> file = gguf::File::open(entry.path().string());
    if (!file) continue;
    Result<gguf::Metadata> meta = file->metadata();
    if (meta && models::find_architecture(meta->architecture())) {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Read once: many suites of a program ask, each time that it starts.
inline const std::vector<std::string>& supported_cases() {
  static const std::vector<std::string> names = read_supported_cases();
  return names;
}

inline std::vector<Token> tokens_of(const nlohmann::json& ids) {
  std::vector<Token> tokens;
  for (const auto& id : ids) tokens.push_back(Token(id.get<int32_t>()));
  return tokens;
}

inline Golden read_golden(const std::string& name) {
  Golden golden{.name = name};
  std::ifstream json_file(golden_path(name, ".json"));
  EXPECT_TRUE(json_file.good()) << golden_path(name, ".json");
  const nlohmann::json json = nlohmann::json::parse(json_file);
  golden.vocabulary_count = json["n_vocab"];
  std::ifstream logits_file(golden_path(name, ".f32"), std::ios::binary);
  double sum = 0, sum_squares = 0, count = 0;
  for (const auto& ids : json["sequences"]) {
    golden.sequences.push_back(tokens_of(ids));
    std::vector<float>& rows = golden.logits.emplace_back(golden.sequences.back().size() *
                                                          size_t(golden.vocabulary_count));
    logits_file.read(reinterpret_cast<char*>(rows.data()),
                     std::streamsize(rows.size() * sizeof(float)));
    EXPECT_TRUE(logits_file.good());
    for (const float logit : rows) {
      sum += logit;
      sum_squares += double(logit) * logit;
    }
    count += double(rows.size());
  }
  golden.deviation = std::sqrt(sum_squares / count - (sum / count) * (sum / count));
  const auto& greedy = json["greedy"];
  golden.greedy = tokens_of(greedy["prompt"]);
  golden.greedy_prompt_count = int32_t(golden.greedy.size());
  for (const Token token : tokens_of(greedy["tokens"])) golden.greedy.push_back(token);
  return golden;
}

inline std::unique_ptr<Engine> load_engine(const std::string& path, const EngineOptions& options) {
  Result<gguf::File> file = gguf::File::open(path);
  EXPECT_TRUE(bool(file)) << (file ? "" : file.error().message);
  if (!file) return nullptr;
  Result<std::unique_ptr<Engine>> engine = Engine::load(std::move(file).value(), options);
  EXPECT_TRUE(bool(engine)) << (engine ? "" : engine.error().message);
  return engine ? std::move(engine).value() : nullptr;
}

inline EngineOptions golden_options(KvType kv) {
  return {.thread_count = 2,
          .key_type = kv,
          .value_type = kv,
          .memory_budget = size_t(64) << 20,
          .row_count_max = 128};
}

// Appends tokens to the sequence in one step, after its state has been derived where it rests; the
// logits of all of them, row after row.
inline std::vector<float> append(Engine& engine, memory::Sequence& sequence,
                                 std::span<const Token> tokens,
                                 std::span<const int32_t> captures = {}) {
  std::vector<int32_t> outputs(tokens.size());
  std::iota(outputs.begin(), outputs.end(), 0);
  const StepItem item{
      .sequence = &sequence, .tokens = tokens, .outputs = outputs, .captures = captures};
  std::vector<float> logits;
  const Result<StepReport> report = engine.step({&item, 1}, [&](size_t, const StepOutputs& rows) {
    for (int32_t row = 0; row < rows.count(); ++row) {
      logits.insert(logits.end(), rows.logits(row).begin(), rows.logits(row).end());
    }
    return int32_t(tokens.size());
  });
  EXPECT_TRUE(bool(report)) << (report ? "" : report.error().message);
  return logits;
}

// In units of the standard deviation of all reference logits.
struct LogitError {
  double logit = 0;  // The worst single logit.
  double row = 0;    // The median row: root of its mean square.
};

inline LogitError error_of(const Golden& golden, Engine& engine) {
  LogitError worst;
  std::vector<double> rows;
  const size_t vocabulary = size_t(golden.vocabulary_count);
  for (size_t index = 0; index < golden.sequences.size(); ++index) {
    memory::Sequence sequence = engine.memory().new_sequence();
    const std::vector<float> logits = append(engine, sequence, golden.sequences[index]);
    EXPECT_EQ(logits.size(), golden.logits[index].size());
    for (size_t row = 0; row < logits.size(); row += vocabulary) {
      double sum_squares = 0;
      for (size_t entry = row; entry < row + vocabulary; ++entry) {
        const double difference = std::abs(double(logits[entry]) - golden.logits[index][entry]);
        const double error = std::isnan(difference) ? HUGE_VAL : difference;
        worst.logit = std::max(worst.logit, error);
        sum_squares += error * error;
      }
      rows.push_back(std::sqrt(sum_squares / double(vocabulary)) / golden.deviation);
    }
  }
  std::sort(rows.begin(), rows.end());
  return {worst.logit / golden.deviation, rows[rows.size() / 2]};
}

}  // namespace cairn::test
