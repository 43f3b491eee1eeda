// Whole models under numerics id fast-1: near the reference's logits, though not as near as under
// exact-1; the same bits for any number of threads; and nothing of it is found under exact-1.
#include <cstring>
#include <filesystem>

#include "base/cpu_features.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::fast_test {
namespace {

bool has_fast() {
  const CpuFeatures features = detect_cpu_features();
  return runs_on(IsaLevel::avx512_vnni, features) && features.avx512_bf16 &&
         (!runs_on(IsaLevel::amx, features) || features.amx_bf16);
}

EngineOptions options_for(Numerics numerics) {
  EngineOptions options = golden_options(KvType::f32);
  options.numerics = numerics;
  return options;
}

// The logits of the longest sequence, read in one step.
std::vector<float> read(Engine& engine, const Golden& golden) {
  memory::Sequence sequence = engine.memory().new_sequence();
  return append(engine, sequence, golden.sequences.back());
}

// Of the median row, in deviations of the logits. These small models amplify any rounding: keys and
// values in bf16 alone are an error of 3e-2 in Gemma 4's, and a router that is nearly undecided
// chooses another expert.
double error_bound(const std::string& name) {
  constexpr std::pair<std::string_view, double> kSensitive[] = {
      {"gemma3n", 1e-1},    {"gemma4", 1e-1}, {"gemma4_31b", 1e-1},
      {"gemma4_moe", 6e-1}, {"phimoe", 1e-1}, {"qwen3next", 1e-1},
  };
  for (const auto& [sensitive, bound] : kSensitive) {
    if (name == sensitive) return bound;
  }
  return 2e-2;
}

class FastTest : public test::SmallPagesTest<std::string> {};

TEST_P(FastTest, LogitsAreNearTheReference) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  const Golden golden = read_golden(GetParam());
  const std::string path = golden_path(GetParam(), ".gguf");
  const auto fast = load_engine(path, options_for(Numerics::fast_1));
  const auto exact = load_engine(path, options_for(Numerics::exact_1));
  ASSERT_TRUE(fast != nullptr && exact != nullptr);
  EXPECT_EQ(fast->numerics(), Numerics::fast_1);
  const std::vector<float> found = read(*fast, golden);
  const std::vector<float>& expected = golden.logits.back();
  ASSERT_EQ(found.size(), expected.size());
  std::vector<double> rows;
  const size_t vocabulary = size_t(golden.vocabulary_count);
  for (size_t row = 0; row < found.size(); row += vocabulary) {
    double squares = 0;
    for (size_t entry = row; entry < row + vocabulary; ++entry) {
      const double error = double(found[entry]) - expected[entry];
      squares += error * error;
    }
    rows.push_back(std::sqrt(squares / double(vocabulary)) / golden.deviation);
  }
  std::sort(rows.begin(), rows.end());
  std::printf("%-20s fast: median row %.1e, worst %.1e\n", GetParam().c_str(),
              rows[rows.size() / 2], rows.back());
  EXPECT_LE(rows[rows.size() / 2], error_bound(GetParam()));
  // It is another id: a prompt does round.
  const std::vector<float> exact_logits = read(*exact, golden);
  EXPECT_NE(std::memcmp(found.data(), exact_logits.data(), found.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, FastTest, ::testing::ValuesIn(supported_cases()),
                         [](const auto& each) { return each.param; });

TEST(Fast, ThreadsDoNotChangeABit) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  const std::string name = supported_cases().front();
  const Golden golden = read_golden(name);
  std::vector<float> expected;
  for (const int32_t thread_count : {1, 2, 5}) {
    EngineOptions options = options_for(Numerics::fast_1);
    options.thread_count = thread_count;
    const auto engine = load_engine(golden_path(name, ".gguf"), options);
    ASSERT_NE(engine, nullptr);
    const std::vector<float> found = read(*engine, golden);
    if (expected.empty()) expected = found;
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0);
  }
}

// What both ids share is packed weights, which are exact.
TEST(Fast, NothingOfItIsFoundUnderExact) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  const std::string name = supported_cases().front(), path = golden_path(name, ".gguf");
  const Golden golden = read_golden(name);
  const auto alone = load_engine(path, {options_for(Numerics::exact_1)});
  ASSERT_NE(alone, nullptr);
  const std::vector<float> exact = read(*alone, golden);
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "cairn-fast-test";
  std::filesystem::remove_all(folder);
  std::vector<float> fast;
  for (const Numerics numerics : {Numerics::fast_1, Numerics::exact_1, Numerics::fast_1}) {
    EngineOptions options = options_for(numerics);
    options.pack_cache = folder.string();
    const auto engine = load_engine(path, options);
    ASSERT_NE(engine, nullptr);
    const std::vector<float> found = read(*engine, golden);
    if (fast.empty()) fast = found;
    const std::vector<float>& expected = numerics == Numerics::exact_1 ? exact : fast;
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0);
  }
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

TEST(Fast, IsNotTheDefaultAndIsRefusedWhereItIsSlower) {
  const std::string path = golden_path(supported_cases().front(), ".gguf");
  const auto engine = load_engine(path, golden_options(KvType::f32));
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->numerics(), Numerics::exact_1);
  EngineOptions options = options_for(Numerics::fast_1);
  options.isa = name(IsaLevel::scalar);
  const auto refused = Engine::load(gguf::File::open(path).value(), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace cairn::test::fast_test
