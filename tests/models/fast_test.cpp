// Whole models under numerics id fast-1: near the reference's logits, though not as near as under
// exact-1; the same bits however a text is cut into steps, whoever shares them and for any number
// of threads; and nothing of it is found under exact-1.
#include <cstring>
#include <filesystem>

#include "tests/fast_here.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::fast_test {
namespace {

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

// A prompt and an answer behind it, which is known.
struct Text {
  std::span<const Token> tokens;
  int32_t prompt_count;
  memory::Sequence sequence;
  std::vector<int32_t> outputs = {};
  std::vector<float> logits = {};  // [token][vocabulary]

  bool is_read() const { return sequence.length() == int32_t(tokens.size()); }
  StepItem next(int32_t prompt_rows, int32_t answer_rows) {
    const int32_t begin = sequence.length();
    const bool is_answer = begin >= prompt_count;
    const int32_t end = is_answer ? std::min(int32_t(tokens.size()), begin + answer_rows)
                                  : std::min(prompt_count, begin + prompt_rows);
    outputs.resize(size_t(end - begin));
    std::iota(outputs.begin(), outputs.end(), 0);
    return {.sequence = &sequence,
            .tokens = tokens.subspan(size_t(begin), outputs.size()),
            .outputs = outputs,
            .is_answer = is_answer};
  }
};

// So many rows a step. Drafts that are checked are rows of an answer too.
struct Cut {
  int32_t prompt_rows, answer_rows;
  bool is_shared = false;  // By another prompt that is read, and an answer.
  int32_t thread_count = 2;
};

// The logits of the longest sequence, whose first tokens are the prompt's.
std::vector<float> read_cut(const Golden& golden, int32_t prompt_count, const Cut& cut) {
  EngineOptions options = options_for(Numerics::fast_1);
  options.thread_count = cut.thread_count;
  const auto engine = load_engine(golden_path(golden.name, ".gguf"), options);
  if (engine == nullptr) return {};
  const std::span<const Token> tokens = golden.sequences.back(), other = golden.greedy;
  std::vector<Text> texts;
  texts.push_back({tokens, prompt_count, engine->memory().new_sequence()});
  if (cut.is_shared) {
    texts.push_back({tokens, int32_t(tokens.size()), engine->memory().new_sequence()});
    texts.push_back({other, 1, engine->memory().new_sequence()});
  }
  while (!texts.front().is_read()) {
    std::vector<StepItem> items;
    std::vector<Text*> read;
    for (Text& text : texts) {
      if (text.is_read()) continue;
      const bool is_first = &text == &texts.front();
      items.push_back(is_first ? text.next(cut.prompt_rows, cut.answer_rows) : text.next(7, 1));
      read.push_back(&text);
    }
    const auto take = [&](size_t item, const StepOutputs& rows) {
      std::vector<float>& logits = read[item]->logits;
      for (int32_t row = 0; row < rows.count(); ++row) {
        logits.insert(logits.end(), rows.logits(row).begin(), rows.logits(row).end());
      }
      return int32_t(items[item].tokens.size());
    };
    const Result<StepReport> report = engine->step(items, take);
    EXPECT_TRUE(report && Result<StepReport>(report).value().item_count == items.size());
    if (!report) return {};
  }
  return texts.front().logits;
}

TEST_P(FastTest, CutsAndSharedStepsDoNotChangeABit) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  const Golden golden = read_golden(GetParam());
  const int32_t prompt_count = int32_t(golden.sequences.back().size()) * 2 / 3;
  const std::vector<float> expected = read_cut(golden, prompt_count, {128, 1});
  ASSERT_FALSE(expected.empty());
  for (const Cut cut : {Cut{1, 1, true, 1}, Cut{2, 2}, Cut{5, 13, false, 1}, Cut{13, 5, true},
                        Cut{128, 14, true, 3}}) {
    const std::vector<float> found = read_cut(golden, prompt_count, cut);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0)
        << cut.prompt_rows << " and " << cut.answer_rows << " rows a step";
  }
}

TEST_P(FastTest, AnswersAreExact) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  const Golden golden = read_golden(GetParam());
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), options_for(Numerics::exact_1));
  ASSERT_NE(engine, nullptr);
  const std::vector<float> expected = read(*engine, golden);
  const std::vector<float> found = read_cut(golden, 0, {.prompt_rows = 0, .answer_rows = 14});
  ASSERT_EQ(found.size(), expected.size());
  EXPECT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0);
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
