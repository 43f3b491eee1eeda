// Every architecture that cairn has, against logits of Hugging Face transformers (float32), and
// against itself: the same bits however the tokens are cut, threaded, forked and rewound.
#include <cstring>

#include "base/cpu_levels.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"
#include "tests/small_pages.h"

namespace cairn::test::golden_test {
namespace {

class GoldenTest : public test::SmallPagesTest<std::string> {};

TEST_P(GoldenTest, LogitsEqualTheReference) {
  const Golden golden = read_golden(GetParam());
  const auto f32 = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f32));
  const auto f16 = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
  ASSERT_TRUE(f32 != nullptr && f16 != nullptr);
  const LogitError error_f32 = error_of(golden, *f32);
  const LogitError error_f16 = error_of(golden, *f16);
  std::printf("%-20s f32: worst logit %.1e; f16: median row %.1e, worst logit %.1e\n",
              GetParam().c_str(), error_f32.logit, error_f16.row, error_f16.logit);
  EXPECT_LE(error_f32.logit, 2e-4);
  // Rounding keys and values to f16 is an error of the whole row; a single logit may have more. So
  // may a row whose router was nearly undecided and now chooses another expert.
  EXPECT_LE(error_f16.row, 5e-3);
}

TEST_P(GoldenTest, GreedyTokensEqualTheReference) {
  const Golden golden = read_golden(GetParam());
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f32));
  ASSERT_NE(engine, nullptr);
  memory::Sequence sequence = engine->memory().new_sequence();
  const size_t vocabulary = size_t(golden.vocabulary_count);
  std::vector<Token> made(golden.greedy.begin(),
                          golden.greedy.begin() + golden.greedy_prompt_count);
  std::vector<float> logits = append(*engine, sequence, made);
  while (made.size() < golden.greedy.size()) {
    const auto last = logits.end() - std::ptrdiff_t(vocabulary);
    made.push_back(Token(std::max_element(last, logits.end()) - last));
    if (made.size() < golden.greedy.size()) {
      logits = append(*engine, sequence, std::span(made).last(1));
    }
  }
  EXPECT_EQ(made, golden.greedy);
}

// Logits of all tokens when they are read `step` at a time.
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

void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

TEST_P(GoldenTest, BitsDependOnNothingButTheTokens) {
  const Golden golden = read_golden(GetParam());
  const std::vector<Token>& tokens = golden.sequences.back();
  EngineOptions options = golden_options(KvType::f16);
  // Sanitizers look at addresses, not at bits: the best instruction set is as good to compare with.
  options.backend = test::kIsSanitized ? "cpu" : "reference";
  const auto reference = load_engine(golden_path(GetParam(), ".gguf"), options);
  ASSERT_NE(reference, nullptr);
  const std::vector<float> expected = read_in_steps(*reference, tokens, tokens.size());
  options.backend = "cpu";
  const size_t whole = tokens.size();
  const auto check = [&](IsaLevel isa, int32_t thread_count, std::initializer_list<size_t> steps) {
    options.isa = name(isa);
    options.thread_count = thread_count;
    const auto engine = load_engine(golden_path(GetParam(), ".gguf"), options);
    ASSERT_NE(engine, nullptr);
    for (const size_t step : steps) {
      expect_same_bits(read_in_steps(*engine, tokens, step), expected,
                       fmt::format("{} threads, steps of {}, {}", thread_count, step, name(isa)));
    }
  };
  // Everything with everything on the best; on the others, whose kernels have tests of their own,
  // each once.
  const IsaLevel best = best_isa(detect_cpu_features());
  for (const IsaLevel isa : levels_of(detect_cpu_features())) {
    if (test::kIsSanitized) {
      if (isa == best || isa == IsaLevel::avx2) check(isa, 2, {17});
    } else if (isa == best) {
      for (const int32_t threads : {1, 2, 5}) check(isa, threads, {1, 3, 17, whole});
    } else {
      check(isa, 1, {1});
      check(isa, 2, {3, whole});
      check(isa, 5, {17});
    }
  }
}

TEST_P(GoldenTest, ForksAndRewindsGiveTheSameBits) {
  const Golden golden = read_golden(GetParam());
  const std::vector<Token>& tokens = golden.sequences.back();
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
  ASSERT_NE(engine, nullptr);
  memory::Memory& memory = engine->memory();
  const size_t vocabulary = size_t(golden.vocabulary_count);
  const std::vector<float> expected = read_in_steps(*engine, tokens, tokens.size());
  const auto rows_from = [&](int32_t first) {
    return std::vector<float>(expected.begin() + std::ptrdiff_t(size_t(first) * vocabulary),
                              expected.end());
  };
  {
    memory::Sequence parent = memory.new_sequence();
    const int32_t captures[] = {5, 31, 32, 33, 50};
    append(*engine, parent, std::span(tokens).first(60), captures);
    for (const int32_t target : {0, 1, 5, 20, 31, 32, 33, 40, 50, 59, 60}) {
      memory::Sequence fork = memory.at(parent, target).value();
      EXPECT_EQ(fork.length(), memory.plan(parent, target).resume);
      // A branch with other tokens must not disturb the parent or its sibling.
      memory::Sequence other = fork;
      append(*engine, other, std::span(tokens).first(7));
      expect_same_bits(append(*engine, fork, std::span(tokens).subspan(size_t(fork.length()))),
                       rows_from(memory.plan(parent, target).resume),
                       fmt::format("rewound to {}", target));
    }
    expect_same_bits(append(*engine, parent, std::span(tokens).subspan(60)), rows_from(60),
                     "the parent after its forks");
  }
  EXPECT_EQ(memory.usage().page_bytes, 0u);
  EXPECT_EQ(memory.usage().state_bytes, 0u);
}

// Rewinds to where no state was kept, and tokens of a step that are not all accepted: the log gives
// the states back.
TEST_P(GoldenTest, TheLogGivesTheSameBits) {
  const Golden golden = read_golden(GetParam());
  const std::vector<Token>& tokens = golden.sequences.back();
  EngineOptions options = golden_options(KvType::f16);
  options.log_step = 16;
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), options);
  ASSERT_NE(engine, nullptr);
  for (const Op& op : engine->runner().plans().replay.ops) {
    EXPECT_FALSE(std::holds_alternative<op::MatMul>(op) || std::holds_alternative<op::Attend>(op));
  }
  memory::Memory& memory = engine->memory();
  const size_t vocabulary = size_t(golden.vocabulary_count);
  const std::vector<float> expected = read_in_steps(*engine, tokens, tokens.size());
  const auto rows_from = [&](int32_t first) {
    return std::vector<float>(expected.begin() + std::ptrdiff_t(size_t(first) * vocabulary),
                              expected.end());
  };
  memory::Sequence parent = memory.new_sequence();
  append(*engine, parent, std::span(tokens).first(45));
  for (const int32_t count : {1, 5, 1, 9}) {
    append(*engine, parent, std::span(tokens).subspan(size_t(parent.length()), size_t(count)));
  }
  for (int32_t target = 45; target <= 61; ++target) {
    memory::Sequence fork = memory.at(parent, target).value();
    ASSERT_EQ(fork.length(), target);
    expect_same_bits(append(*engine, fork, std::span(tokens).subspan(size_t(target))),
                     rows_from(target), fmt::format("rewound to {}", target));
  }
  for (const int32_t accepted : {0, 1, 4, 6}) {
    memory::Sequence fork = parent;
    std::vector<Token> guess(tokens.begin() + 61, tokens.begin() + 61 + accepted);
    guess.resize(7, Token(1));
    const StepItem item{.sequence = &fork, .tokens = guess};
    ASSERT_TRUE(engine->step({&item, 1}, [&](size_t, const StepOutputs&) { return accepted; }));
    expect_same_bits(append(*engine, fork, std::span(tokens).subspan(size_t(61 + accepted))),
                     rows_from(61 + accepted), fmt::format("{} of 7 accepted", accepted));
  }
}

TEST_P(GoldenTest, AHiddenRowGivesItsLogitsBack) {
  const Golden golden = read_golden(GetParam());
  const std::vector<Token>& tokens = golden.sequences.back();
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
  ASSERT_NE(engine, nullptr);
  const size_t vocabulary = size_t(golden.vocabulary_count);
  memory::Memory& memory = engine->memory();
  memory::Sequence sequence = memory.new_sequence();
  const std::vector<float> expected = read_in_steps(*engine, std::span(tokens).first(33), 33);
  const int32_t outputs[] = {7, 32};
  const StepItem item{.sequence = &sequence,
                      .tokens = std::span(tokens).first(33),
                      .outputs = outputs,
                      .keeps_hidden = true};
  ASSERT_TRUE(engine->step({&item, 1}));
  memory::Sequence other = memory.new_sequence();
  append(*engine, other, std::span(tokens).subspan(40));
  engine->runner().restore_logits(memory.hidden(sequence), sequence.variant());
  const std::span<const float> logits = engine->runner().logits(0);
  EXPECT_EQ(
      std::memcmp(logits.data(), expected.data() + 32 * vocabulary, vocabulary * sizeof(float)), 0);
}

TEST_P(GoldenTest, PartnersInABatchDoNotMatter) {
  const Golden golden = read_golden(GetParam());
  const std::vector<Token>& tokens = golden.sequences.back();
  const auto engine = load_engine(golden_path(GetParam(), ".gguf"), golden_options(KvType::f16));
  ASSERT_NE(engine, nullptr);
  const size_t vocabulary = size_t(golden.vocabulary_count);
  const std::vector<float> expected = read_in_steps(*engine, tokens, tokens.size());
  memory::Sequence first = engine->memory().new_sequence();
  memory::Sequence second = engine->memory().new_sequence();
  append(*engine, first, std::span(tokens).first(37));
  const int32_t outputs_a[] = {0};
  const int32_t outputs_b[] = {3, 40};
  const StepItem items[] = {
      {.sequence = &first, .tokens = std::span(tokens).subspan(37, 1), .outputs = outputs_a},
      {.sequence = &second, .tokens = std::span(tokens).first(41), .outputs = outputs_b}};
  std::vector<float> found;
  const auto keep = [&](size_t item, const StepOutputs& rows) {
    for (int32_t row = 0; row < rows.count(); ++row) {
      found.insert(found.end(), rows.logits(row).begin(), rows.logits(row).end());
    }
    return int32_t(items[item].tokens.size());
  };
  ASSERT_TRUE(engine->step(items, keep));
  ASSERT_EQ(found.size(), 3 * vocabulary);
  size_t output = 0;
  for (const size_t row : {size_t(37), size_t(3), size_t(40)}) {
    EXPECT_EQ(std::memcmp(found.data() + output++ * vocabulary, expected.data() + row * vocabulary,
                          vocabulary * sizeof(float)),
              0)
        << "row " << row;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::ValuesIn(supported_cases()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace cairn::test::golden_test
