// Every runtime of the table on models of the golden set: what it claims is measured, and its
// logits are those of cairn's own engine. A runtime whose packages are not here is skipped by name.
#include "tests/runtimes/contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "runtimes/selection.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"

namespace cairn::contract_test {
namespace {

using runtimes::LoadedRuntime;
using runtimes::ModelProbe;
using runtimes::RuntimeType;

class Runtimes : public testing::TestWithParam<const RuntimeType*> {
 protected:
  void SetUp() override {
    const Status available = GetParam()->available();
    if (!available) GTEST_SKIP() << GetParam()->name << ": " << available.error().message;
  }

  // Null, and why, where it cannot compute the model.
  std::unique_ptr<LoadedRuntime> load(const std::string& name, std::string& why_not) {
    const std::string path = test::golden_path(name, ".gguf");
    auto file = gguf::File::open(path);
    EXPECT_TRUE(file);
    const ModelProbe probe{path, &*file};
    if (const Status can = GetParam()->can_serve(probe); !can) {
      why_not = can.error().message;
      return nullptr;
    }
    auto loaded = GetParam()->load(probe, {.thread_count = 2});
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().message);
    return loaded ? std::move(*loaded) : nullptr;
  }
  std::unique_ptr<LoadedRuntime> load(const std::string& name) {
    std::string why_not;
    auto made = load(name, why_not);
    EXPECT_NE(made, nullptr) << why_not;
    return made;
  }
};

const std::string kFamilies[] = {"llama", "qwen3", "gemma3"};

TEST_P(Runtimes, ClaimNoMoreThanIsMeasured) {
  for (const std::string& name : kFamilies) {
    SCOPED_TRACE(name);
    const auto runtime = load(name);
    ASSERT_NE(runtime, nullptr);
    const auto level = test::measured(*runtime, test::cases(40));
    std::printf("%s, %s: measured %d, claimed %d\n", std::string(GetParam()->name).c_str(),
                name.c_str(), int(level), int(runtime->claims().exactness));
    EXPECT_GE(level, runtime->claims().exactness);
  }
}

std::vector<float> append(runtimes::RuntimeSession& session, std::span<const Token> tokens) {
  auto row = session.append(tokens);
  EXPECT_TRUE(row) << (row ? "" : row.error().message);
  return row ? std::vector<float>(row->begin(), row->end()) : std::vector<float>();
}

// Each in the middle of the other: rewinds beyond the window, snapshots, and forks.
TEST_P(Runtimes, SessionsKnowNothingOfEachOther) {
  for (const std::string& name : kFamilies) {
    SCOPED_TRACE(name);
    const auto runtime = load(name);
    ASSERT_NE(runtime, nullptr);
    const test::Golden golden = test::read_golden(name);
    const std::span<const Token> tokens = golden.sequences.back();
    ASSERT_GE(tokens.size(), 60u);
    const auto fresh = [&](std::initializer_list<size_t> ends) {
      return test::fresh_logits(
          *runtime,
          {{tokens.begin(), tokens.begin() + std::ptrdiff_t(std::rbegin(ends)[0])}, ends});
    };
    auto a = runtime->open_session(), b = runtime->open_session();
    ASSERT_TRUE(a && b);
    append(**a, tokens.first(30));
    append(**b, tokens.subspan(20, 30));
    auto state = (*a)->snapshot();
    ASSERT_TRUE(state);
    EXPECT_GT((*state)->bytes(), 0u);
    append(**a, tokens.subspan(30, 30));
    ASSERT_TRUE((*b)->restore(**state));
    EXPECT_EQ((*b)->length(), 30u);
    const auto forked = append(**b, tokens.subspan(30, 5));
    EXPECT_TRUE(test::same_bits(forked, fresh({30, 35})));
    ASSERT_TRUE((*a)->rewind(10));
    // Rows that one chunk has made together are those of any, where only their borders count.
    ASSERT_TRUE((*a)->restore(**state));
    EXPECT_TRUE(test::same_bits(append(**a, tokens.subspan(30, 9)), fresh({30, 39})));
    ASSERT_TRUE((*a)->rewind(30));
    EXPECT_TRUE(test::same_bits(append(**a, tokens.subspan(30, 20)), fresh({30, 50})));
    ASSERT_TRUE((*b)->rewind(0));
    EXPECT_TRUE(test::same_bits(append(**b, tokens.first(8)), fresh({8})));
  }
}

TEST_P(Runtimes, CancelledCallsAreAsIfNeverMade) {
  const auto runtime = load("llama");
  ASSERT_NE(runtime, nullptr);
  const std::vector<Token> tokens(500, Token(7));
  auto session = runtime->open_session();
  ASSERT_TRUE(session);
  append(**session, std::span(tokens).first(8));
  const auto whole =
      test::fresh_logits(*runtime, {{tokens.begin(), tokens.end()}, {8, tokens.size()}});
  int cancelled_count = 0;
  for (int round = 0; round < 40; ++round) {
    std::atomic<bool> has_ended = false;
    std::thread canceller([&, session = session->get()] {
      std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
      while (!has_ended) session->cancel();
    });
    const auto row = (*session)->append(std::span(tokens).subspan(8));
    has_ended = true;
    canceller.join();
    if (!row) {
      ASSERT_EQ(row.error().code, ErrorCode::cancelled) << row.error().message;
      ++cancelled_count;
    }
    ASSERT_EQ((*session)->length(), row ? tokens.size() : 8u);
    if (row) {
      ASSERT_TRUE((*session)->rewind(8));
    }
  }
  EXPECT_GT(cancelled_count, 0);
  EXPECT_TRUE(test::same_bits(append(**session, std::span(tokens).subspan(8)), whole));
}

TEST_P(Runtimes, ContextsAndVocabulariesHaveEnds) {
  const auto runtime = load("llama");
  ASSERT_NE(runtime, nullptr);
  auto session = runtime->open_session();
  ASSERT_TRUE(session);
  const std::vector<Token> tokens(size_t(runtime->context_tokens()), Token(3));
  append(**session, std::span(tokens).first(tokens.size() - 1));
  EXPECT_FALSE((*session)->append(std::span(tokens).first(2)));
  append(**session, std::span(tokens).first(1));
  const auto full = (*session)->append(std::span(tokens).first(1));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::context_full);
  ASSERT_TRUE((*session)->rewind(1));
  const std::vector<Token> wrong = {Token(runtime->vocabulary_count())};
  EXPECT_FALSE((*session)->append(wrong));
  EXPECT_EQ((*session)->length(), 1u);
}

// All models that it computes, beside cairn's own engine with f32 everywhere; whole sequences and
// in pieces. The unit is the deviation of the model's logits.
TEST_P(Runtimes, LogitsAreThoseOfCairn) {
  size_t model_count = 0;
  double worst_of_all = 0;
  const std::vector<std::string>& names = test::supported_cases();
  constexpr size_t kEvery = test::kIsSlow ? 4 : 1;
  for (size_t i = 0; i < names.size(); i += kEvery) {
    const std::string& name = names[i];
    SCOPED_TRACE(name);
    std::string why_not;
    const auto runtime = load(name, why_not);
    if (runtime == nullptr) {
      EXPECT_TRUE(why_not.find("which other runtimes do not compute") != std::string::npos)
          << why_not;
      continue;
    }
    ++model_count;
    const test::Golden golden = test::read_golden(name);
    const auto engine =
        test::load_engine(test::golden_path(name, ".gguf"), test::golden_options(KvType::f32));
    ASSERT_NE(engine, nullptr);
    auto session = runtime->open_session();
    ASSERT_TRUE(session);
    double worst = 0;
    for (const std::vector<Token>& tokens : golden.sequences) {
      memory::Sequence sequence = engine->memory().new_sequence();
      const std::vector<float> all = test::append(*engine, sequence, tokens);
      const size_t vocabulary = size_t(golden.vocabulary_count);
      const std::span<const float> expected = std::span(all).last(vocabulary);
      ASSERT_TRUE((*session)->rewind(0));
      const size_t middle = tokens.size() / 2;
      if (middle > 0) append(**session, std::span(tokens).first(middle));
      const auto found = append(**session, std::span(tokens).subspan(middle));
      ASSERT_EQ(found.size(), vocabulary);
      for (size_t id = 0; id < vocabulary; ++id) {
        const double difference = std::abs(double(found[id]) - expected[id]) / golden.deviation;
        worst = std::max(worst, std::isnan(difference) ? HUGE_VAL : difference);
      }
    }
    const bool is_family = std::ranges::find(kFamilies, name) != std::end(kFamilies);
    EXPECT_LE(worst, is_family ? 1e-5 : 2e-5);
    if (is_family) std::printf("%s: worst difference %g\n", name.c_str(), worst);
    worst_of_all = std::max(worst_of_all, worst);
  }
  std::printf("%s: %zu models, worst difference %g\n", std::string(GetParam()->name).c_str(),
              model_count, worst_of_all);
  EXPECT_GE(model_count, test::kIsSlow ? 8u : 40u);
}

// Those that compute GGUF files.
std::vector<const RuntimeType*> all_types() {
  std::vector<const RuntimeType*> types;
  for (const RuntimeType* type : runtimes::runtime_types()) {
    if (type->name != "litert-lm" && type->name != "coreml") types.push_back(type);
  }
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, Runtimes, testing::ValuesIn(all_types()), [](const auto& given) {
  std::string name(given.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace cairn::contract_test
