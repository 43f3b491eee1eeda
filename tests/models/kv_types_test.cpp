// Every form of keys and values on whole models: the same bits however the tokens are cut, threaded
// and computed, and logits that stay near those with keys and values in f32.
#include <fmt/format.h>

#include <cstring>
#include <ostream>
#include <string>
#include <string_view>

#include "base/cpu_levels.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::kv_types_test {
namespace {

struct KvCase {
  std::string model;
  KvType keys, values;
  double error_max;  // Median over rows of the root mean square, in deviations of the logits.

  std::string name() const {
    constexpr std::string_view kNames[] = {"f32", "f16", "bf16", "q8_0", "q4_0"};
    return fmt::format("{}_{}_{}", model, kNames[int(keys)], kNames[int(values)]);
  }
};

void PrintTo(const KvCase& tested, std::ostream* out) {
  *out << tested.name();
}

std::vector<float> logits_in_steps(Engine& engine, std::span<const Token> tokens, size_t step) {
  memory::Sequence sequence = engine.memory().new_sequence();
  std::vector<float> logits;
  for (size_t begin = 0; begin < tokens.size(); begin += step) {
    const auto part = tokens.subspan(begin, std::min(step, tokens.size() - begin));
    const std::vector<float> rows = append(engine, sequence, part);
    logits.insert(logits.end(), rows.begin(), rows.end());
  }
  return logits;
}

double median_row_error(const Golden& golden, const std::vector<float>& logits) {
  const size_t vocabulary = size_t(golden.vocabulary_count);
  std::vector<double> rows;
  for (size_t row = 0; row < logits.size(); row += vocabulary) {
    double squares = 0;
    for (size_t i = row; i < row + vocabulary; ++i) {
      const double error = double(logits[i]) - double(golden.logits.back()[i]);
      squares += error * error;
    }
    rows.push_back(std::sqrt(squares / double(vocabulary)) / golden.deviation);
  }
  std::nth_element(rows.begin(), rows.begin() + int64_t(rows.size() / 2), rows.end());
  return rows[rows.size() / 2];
}

class KvTypesTest : public test::SmallPagesTest<KvCase> {};

TEST_P(KvTypesTest, BitsAreTheReferencesAndLogitsStayNear) {
  const Golden golden = read_golden(GetParam().model);
  const std::vector<Token>& tokens = golden.sequences.back();
  EngineOptions options = golden_options(KvType::f16);
  options.key_type = GetParam().keys;
  options.value_type = GetParam().values;
  const std::string path = golden_path(GetParam().model, ".gguf");
  options.backend = "reference";
  const auto reference = load_engine(path, options);
  ASSERT_NE(reference, nullptr);
  const std::vector<float> expected = logits_in_steps(*reference, tokens, tokens.size());
  const double error = median_row_error(golden, expected);
  std::printf("%-12s keys %d values %d: median row %.1e\n", GetParam().model.c_str(),
              int(GetParam().keys), int(GetParam().values), error);
  EXPECT_LE(error, GetParam().error_max);
  options.backend = "cpu";
  for (const IsaLevel isa : levels_of(detect_cpu_features())) {
    for (const int32_t thread_count : {1, 3}) {
      options.isa = name(isa);
      options.thread_count = thread_count;
      const auto engine = load_engine(path, options);
      ASSERT_NE(engine, nullptr);
      for (const size_t step : {size_t(1), size_t(17), tokens.size()}) {
        const std::vector<float> found = logits_in_steps(*engine, tokens, step);
        ASSERT_EQ(found.size(), expected.size());
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
            << name(isa) << ", " << thread_count << " threads, steps of " << step;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, KvTypesTest,
                         ::testing::Values(KvCase{"llama", KvType::q8_0, KvType::q8_0, 0.02},
                                           KvCase{"llama", KvType::q4_0, KvType::q4_0, 0.3},
                                           KvCase{"gptoss", KvType::q8_0, KvType::q4_0, 0.3},
                                           KvCase{"cohere2", KvType::q4_0, KvType::q8_0, 0.3},
                                           KvCase{"gemma3", KvType::bf16, KvType::q8_0, 0.1}),
                         [](const auto& each) { return each.param.name(); });

}  // namespace
}  // namespace cairn::test::kv_types_test
