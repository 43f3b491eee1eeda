// Walks the table of stages: each alone does what its parameters say. Against examples of
// llama.cpp's own tests (tests/test-sampling.cpp there: facts, not code), and against plain
// versions in f64. This covers all files of stages in src/sample.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "sample/dry_breakers.h"
#include "sample/stage.h"

namespace cairn::sample::stages_test {
namespace {

const SamplerStage* stage_named(std::string_view name) {
  for (const SamplerStage* stage : all_stages()) {
    if (stage->name == name) return stage;
  }
  return nullptr;
}

struct Given {
  std::vector<Token> history = {};
  std::vector<std::vector<Token>> breakers = {};
  bool as_list = false;
  int32_t position = 0;
};

// What is left of the logits.
std::map<int32_t, float> apply(std::string_view name, const SamplingParams& params,
                               std::span<const float> logits, const Given& given = {}) {
  const DryBreakers breakers(given.breakers);
  StageContext context{.params = params,
                       .position = given.position,
                       .history = given.history,
                       .breakers = &breakers};
  Candidates candidates;
  candidates.reset(logits);
  if (given.as_list) candidates.list();
  const SamplerStage* stage = stage_named(name);
  if (stage->is_on(params)) stage->apply(candidates, context);
  std::map<int32_t, float> kept;
  for (const Candidate& c : candidates.list()) kept[index_of(c.token)] = c.logit;
  return kept;
}

std::vector<double> probabilities(const std::map<int32_t, float>& kept, size_t count) {
  std::vector<double> result(count, 0);
  double total = 0;
  for (const auto& [id, logit] : kept) total += std::exp(double(logit));
  for (const auto& [id, logit] : kept) result[size_t(id)] = std::exp(double(logit)) / total;
  return result;
}

// Applies a stage to probabilities and compares what is left, as a whole and as a list.
void expect(std::string_view name, const SamplingParams& params, std::vector<double> before,
            std::vector<double> after, Given given = {}) {
  std::vector<float> logits;
  for (const double p : before) logits.push_back(float(std::log(p)));
  double total = 0;
  for (const double p : after) total += p;
  for (const bool as_list : {false, true}) {
    given.as_list = as_list;
    const auto found = probabilities(apply(name, params, logits, given), before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_NEAR(found[i], after[i] / total, 1e-5) << name << ", token " << i;
    }
  }
}

std::vector<float> normal_logits(size_t count, uint32_t seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = spread * normal(random);
  return logits;
}

std::vector<Token> tokens(std::initializer_list<int> ids) {
  std::vector<Token> result;
  for (const int id : ids) result.push_back(Token(id));
  return result;
}

const std::vector<double> kTenths{0.1, 0.2, 0.3, 0.4};

TEST(Stages, EveryStageOfAnOrderHasALetterAndAName) {
  std::string letters;
  for (const SamplerStage* stage : all_stages()) {
    if (stage->letter != 0) letters += stage->letter;
  }
  std::sort(letters.begin(), letters.end());
  EXPECT_EQ(letters, "adeikmpstxy");
}

TEST(Stages, ThoseThatSaySoKeepTheLikeliestToken) {
  const SamplingParams params{.temperature = 0.5f,
                              .top_k = 3,
                              .top_p = 0.3f,
                              .min_p = 0.9f,
                              .top_n_sigma = 0.5f,
                              .dynatemp_range = 0.3f};
  int count = 0;
  for (const SamplerStage* stage : all_stages()) {
    if (!stage->keeps_likeliest) continue;
    ++count;
    for (uint32_t round = 0; round < 100; ++round) {
      const auto logits = normal_logits(1 + round * 3, round, 4);
      const auto kept = apply(stage->name, params, logits);
      ASSERT_EQ(kept.count(index_of(likeliest(logits))), 1u) << stage->name;
      const float best = kept.at(index_of(likeliest(logits)));
      for (const auto& [id, logit] : kept) EXPECT_LE(logit, best);
    }
  }
  EXPECT_EQ(count, 5);
}

TEST(Stages, OffMeansAll) {
  const SamplingParams off{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
  const auto logits = normal_logits(40, 1, 2);
  const Given given{.history = tokens({1, 2, 1, 2, 1, 2})};
  for (const SamplerStage* stage : all_stages()) {
    if (stage->needs_words) continue;
    EXPECT_FALSE(stage->is_on(off)) << stage->name;
    EXPECT_EQ(apply(stage->name, off, logits, given).size(), 40u) << stage->name;
  }
}

TEST(Stages, Temperature) {
  expect("temperature", {.temperature = 1}, kTenths, kTenths);
  expect("temperature", {.temperature = 0}, kTenths, {0, 0, 0, 1});
  expect("temperature", {.temperature = 0.5f}, kTenths, {0.01, 0.04, 0.09, 0.16});
}

TEST(Stages, DynamicTemperature) {
  for (const float exponent : {0.0f, 0.5f, 1.0f, 2.0f}) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      const auto logits = normal_logits(50 + seed, seed, float(seed) * 0.3f);
      double total = 0, entropy = 0;
      for (const float x : logits) total += std::exp(double(x));
      for (const float x : logits) {
        const double p = std::exp(double(x)) / total;
        entropy -= p * std::log(p);
      }
      const double share = std::pow(entropy / std::log(double(logits.size())), double(exponent));
      const double temperature = 0.3 + (1.3 - 0.3) * share;
      const auto kept = apply(
          "temperature",
          {.temperature = 0.8f, .dynatemp_range = 0.5f, .dynatemp_exponent = exponent}, logits);
      ASSERT_EQ(kept.size(), logits.size());
      for (const auto& [id, logit] : kept) {
        EXPECT_NEAR(double(logit), double(logits[size_t(id)]) / temperature, 2e-4);
      }
    }
  }
  expect("temperature", {.temperature = 1, .dynatemp_range = 0}, kTenths, kTenths);
  expect("temperature", {.temperature = 0, .dynatemp_range = 0}, kTenths, {0, 0, 0, 1});
}

TEST(Stages, TopK) {
  expect("top_k", {.top_k = 1}, kTenths, {0, 0, 0, 1});
  expect("top_k", {.top_k = 3}, kTenths, {0, 0.22222, 0.33333, 0.44444});
  expect("top_k", {.top_k = 4}, kTenths, kTenths);
  expect("top_k", {.top_k = 0}, kTenths, kTenths);
  expect("top_k", {.top_k = -1}, kTenths, kTenths);
  expect("top_k", {.top_k = 2}, {0.25, 0.25, 0.25, 0.25}, {0.5, 0.5, 0, 0});
}

TEST(Stages, TopP) {
  expect("top_p", {.top_p = 0}, kTenths, {0, 0, 0, 1});
  expect("top_p", {.top_p = 0.69f}, kTenths, {0, 0, 0.428571, 0.571429});
  expect("top_p", {.top_p = 0.8f}, kTenths, {0, 0.22222, 0.33333, 0.44444});
  expect("top_p", {.top_p = 1}, kTenths, kTenths);
  expect("top_p", {.top_p = 0.1f, .min_keep = 3}, kTenths, {0, 2, 3, 4});
}

TEST(Stages, MinP) {
  expect("min_p", {.min_p = 0}, kTenths, kTenths);
  expect("min_p", {.min_p = 0.24f}, kTenths, kTenths);
  expect("min_p", {.min_p = 0.26f}, kTenths, {0, 2, 3, 4});
  expect("min_p", {.min_p = 0.49f}, kTenths, {0, 2, 3, 4});
  expect("min_p", {.min_p = 0.51f}, kTenths, {0, 0, 3, 4});
  expect("min_p", {.min_p = 0.74f}, kTenths, {0, 0, 3, 4});
  expect("min_p", {.min_p = 0.76f}, kTenths, {0, 0, 0, 4});
  expect("min_p", {.min_p = 1}, kTenths, {0, 0, 0, 4});
  expect("min_p", {.min_p = 1, .min_keep = 2}, kTenths, {0, 0, 3, 4});
}

TEST(Stages, TopNSigma) {
  expect("top_n_sigma", {.top_n_sigma = 1}, kTenths, {0, 0, 0.428571, 0.571429});
  expect("top_n_sigma", {.top_n_sigma = 0}, kTenths, kTenths);
  expect("top_n_sigma", {.top_n_sigma = 3}, kTenths, kTenths);
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto logits = normal_logits(3000, seed, 3);
    double mean = 0, square = 0;
    for (const float x : logits) mean += double(x) / double(logits.size());
    for (const float x : logits) square += std::pow(double(x) - mean, 2) / double(logits.size());
    const double floor =
        double(*std::max_element(logits.begin(), logits.end())) - 1.5 * std::sqrt(square);
    size_t wanted = 0;
    for (const float x : logits) wanted += double(x) >= floor ? 1 : 0;
    EXPECT_EQ(apply("top_n_sigma", {.top_n_sigma = 1.5f}, logits).size(), wanted) << seed;
  }
}

TEST(Stages, Typical) {
  expect("typ_p", {.typical_p = 0.5f}, {0.97, 0.01, 0.01, 0.01}, {1, 0, 0, 0});
  expect("typ_p", {.typical_p = 0.5f}, {0.4, 0.2, 0.2, 0.2}, {0, 1, 1, 1});
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto logits = normal_logits(2000, seed, 2);
    double total = 0, entropy = 0;
    for (const float x : logits) total += std::exp(double(x));
    std::vector<std::pair<double, size_t>> order;
    for (const float x : logits) {
      const double p = std::exp(double(x)) / total;
      entropy -= p * std::log(p);
    }
    for (size_t i = 0; i < logits.size(); ++i) {
      const double surprise = std::log(total) - double(logits[i]);
      order.emplace_back(std::abs(surprise - entropy), i);
    }
    std::sort(order.begin(), order.end());
    std::vector<int32_t> wanted;
    double reached = 0;
    for (const auto& [distance, i] : order) {
      if (reached > 0.6) break;
      wanted.push_back(int32_t(i));
      reached += std::exp(double(logits[i])) / total;
    }
    std::sort(wanted.begin(), wanted.end());
    for (const bool as_list : {false, true}) {
      std::vector<int32_t> found;
      for (const auto& [id, logit] :
           apply("typ_p", {.typical_p = 0.6f}, logits, {.as_list = as_list})) {
        found.push_back(id);
        EXPECT_EQ(logit, logits[size_t(id)]);
      }
      EXPECT_EQ(found, wanted) << seed;
    }
  }
}

TEST(Stages, Xtc) {
  const std::vector<double> tenths{0.4, 0.3, 0.2, 0.1};
  const auto params = [](float threshold) {
    return SamplingParams{.xtc_probability = 1, .xtc_threshold = threshold};
  };
  expect("xtc", params(0.09f), tenths, {0, 0, 0, 1});
  expect("xtc", params(0.19f), tenths, {0, 0, 2, 1});
  expect("xtc", params(0.29f), tenths, {0, 3, 2, 1});
  expect("xtc", params(0.39f), tenths, tenths);
  expect("xtc", params(0.51f), tenths, tenths);
  SamplingParams keeping = params(0.09f);
  keeping.min_keep = 2;
  expect("xtc", keeping, tenths, tenths);
  // It happens as often as asked for, and at the same positions each time.
  const auto logits = normal_logits(100, 2, 1);
  const SamplingParams some{.xtc_probability = 0.3f, .xtc_threshold = 0.01f, .seed = 4};
  int happened = 0;
  for (int32_t position = 0; position < 3000; ++position) {
    const size_t left = apply("xtc", some, logits, {.position = position}).size();
    EXPECT_EQ(left, apply("xtc", some, logits, {.as_list = true, .position = position}).size());
    happened += left < logits.size() ? 1 : 0;
  }
  EXPECT_NEAR(happened, 900, 4 * std::sqrt(3000 * 0.3 * 0.7));
}

TEST(Stages, Penalties) {
  const std::vector<double> fifths(5, 0.2);
  const SamplingParams factor{.repeat_penalty = 50};
  expect("penalties", factor, fifths, {0, 1, 1, 1, 1}, {.history = tokens({0})});
  expect("penalties", factor, fifths, {0, 0, 0, 1, 1}, {.history = tokens({0, 1, 2})});
  expect("penalties", factor, fifths, {0, 0, 0, 1, 1}, {.history = tokens({0, 1, 2, 0, 0})});
  const SamplingParams amounts{.presence_penalty = 5, .frequency_penalty = 5};
  expect("penalties", amounts, fifths, {0.000011, 0.249997, 0.249997, 0.249997, 0.249997},
         {.history = tokens({0})});
  expect("penalties", amounts, fifths, {0.000023, 0.000023, 0.000023, 0.499966, 0.499966},
         {.history = tokens({0, 1, 2})});
  expect("penalties", amounts, fifths, {0.000000, 0.000023, 0.000023, 0.499977, 0.499977},
         {.history = tokens({0, 1, 2, 0, 0})});
  // Positive logits are divided; only the last tokens count; strange ids do no harm.
  const std::vector<float> logits{2, -2, 1};
  const SamplingParams last_two{.repeat_last_count = 2, .repeat_penalty = 2};
  const auto kept = apply("penalties", last_two, logits, {.history = tokens({2, -1, 99999, 0, 1})});
  EXPECT_EQ(kept, (std::map<int32_t, float>{{0, 1}, {1, -4}, {2, 1}}));
  const SamplingParams all{.repeat_last_count = -1, .repeat_penalty = 2};
  EXPECT_EQ(apply("penalties", all, logits, {.history = tokens({2, -1, 99999, 0, 1})}),
            (std::map<int32_t, float>{{0, 1}, {1, -4}, {2, 0.5f}}));
}

TEST(Stages, DryAsInTheOriginal) {
  const auto params = [](float multiplier, int32_t allowed, int32_t last) {
    return SamplingParams{.dry_multiplier = multiplier,
                          .dry_base = 1.1f,
                          .dry_allowed_length = allowed,
                          .dry_last_count = last};
  };
  const std::vector<double> quarters(4, 0.25), fifths(5, 0.2);
  expect("dry", params(1, 2, 4), quarters, quarters, {.history = tokens({0, 1})});
  expect("dry", params(1, 2, 5), quarters, {0.296923, 0.296923, 0.109232, 0.296923},
         {.history = tokens({0, 1, 2, 0, 1})});
  expect("dry", params(1, 2, 6), fifths, fifths,
         {.history = tokens({0, 1, 3, 4, 0, 1}), .breakers = {tokens({3})}});
  expect("dry", params(2, 2, 5), fifths, {0.241818, 0.241818, 0.032727, 0.241818, 0.241818},
         {.history = tokens({0, 1, 2, 0, 1})});
  expect("dry", params(1, 4, 7), fifths, fifths, {.history = tokens({0, 1, 2, 3, 4, 0, 1})});
}

// By comparing the end of the tokens with every earlier place.
TEST(Stages, DryEqualsComparingEverywhere) {
  std::mt19937 random(8);
  for (int round = 0; round < 300; ++round) {
    std::vector<Token> history(1 + random() % 60);
    for (Token& token : history) token = Token(random() % 4);
    const int32_t allowed = int32_t(random() % 4);
    std::vector<std::vector<Token>> breakers;
    if (round % 3 == 0) breakers = {tokens({3}), tokens({2, 1})};
    const size_t count = history.size();
    // The last breaker ends where its last token stands; nothing reaches across it.
    size_t limit = count;
    for (size_t behind = 0; behind < count && limit == count && !breakers.empty(); ++behind) {
      const size_t at = count - 1 - behind;
      if (history[at] == Token(3)) limit = behind;
      if (history[at] == Token(2) && behind > 0 && history[at + 1] == Token(1)) limit = behind - 1;
    }
    std::map<Token, size_t> longest;
    for (size_t end = 1; end < count && limit >= size_t(allowed); ++end) {
      size_t length = 0;
      while (length < end && history[end - 1 - length] == history[count - 1 - length]) ++length;
      length = std::min(length, limit);
      const bool is_free = !breakers.empty() && history[end] == Token(3);
      if (length >= size_t(allowed) && !is_free && count > size_t(allowed)) {
        longest[history[end]] = std::max(longest[history[end]], length);
      }
    }
    const std::vector<float> logits(4, 1.0f);
    const SamplingParams params{
        .dry_multiplier = 0.5f, .dry_base = 2, .dry_allowed_length = allowed, .dry_last_count = -1};
    const auto kept = apply("dry", params, logits, {.history = history, .breakers = breakers});
    for (int32_t id = 0; id < 4; ++id) {
      const auto found = longest.find(Token(id));
      const double penalty =
          found == longest.end() ? 0 : 0.5 * std::pow(2.0, double(found->second) - allowed);
      ASSERT_NEAR(double(kept.at(id)), 1 - penalty, std::abs(penalty) * 1e-6) << round;
    }
  }
}

TEST(Stages, DryPenaltiesStayFinite) {
  const std::vector<Token> same(2000, Token(1));
  const std::vector<float> logits{0, 0, 0};
  for (const float base : {1.0f, 1.0000011f, 2.0f, 100.0f, 0.5f}) {
    const auto kept = apply("dry", {.dry_multiplier = 1, .dry_base = base, .dry_last_count = -1},
                            logits, {.history = same});
    EXPECT_EQ(kept.size(), 3u) << base;
    EXPECT_LT(kept.at(1), 0);
    EXPECT_TRUE(std::isfinite(kept.at(1)));
  }
}

struct Learned {
  std::map<int32_t, float> kept;
  StageMemory memory;
};

Learned apply_and_learn(std::string_view name, const SamplingParams& params,
                        std::span<const float> logits, Token chosen, const StageMemory* before) {
  StageContext context{.params = params, .before = before};
  Candidates candidates;
  candidates.reset(logits);
  stage_named(name)->apply(candidates, context);
  Learned learned;
  for (const Candidate& c : candidates.list()) learned.kept[index_of(c.token)] = c.logit;
  if (chosen == Token(-1)) chosen = candidates.list()[0].token;
  stage_named(name)->learn(candidates, chosen, context);
  learned.memory = context.memory;
  return learned;
}

TEST(Stages, Mirostat2DropsWhatIsTooSurprising) {
  const SamplingParams params{.mirostat = 2, .mirostat_tau = 2, .mirostat_eta = 0.5f};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const auto logits = normal_logits(500, seed, 3);
    double total = 0;
    for (const float x : logits) total += std::exp(double(x));
    const StageMemory before{3.25f, 0};
    for (const StageMemory* memory : {(const StageMemory*)nullptr, &before}) {
      const double mu = memory != nullptr ? 3.25 : 4.0;
      std::map<int32_t, double> wanted;
      double left = 0;
      for (size_t i = 0; i < logits.size(); ++i) {
        const double p = std::exp(double(logits[i])) / total;
        if (-std::log2(p) > mu && Token(i) != likeliest(logits)) continue;
        wanted[int32_t(i)] = p;
        left += p;
      }
      const Learned found = apply_and_learn("mirostat", params, logits, likeliest(logits), memory);
      ASSERT_EQ(found.kept.size(), wanted.size()) << seed;
      for (const auto& [id, p] : wanted) EXPECT_EQ(found.kept.count(id), 1u);
      const double surprise = -std::log2(wanted.at(index_of(likeliest(logits))) / left);
      EXPECT_NEAR(double(found.memory.first), mu - 0.5 * (surprise - 2), 1e-4);
    }
  }
}

TEST(Stages, Mirostat1KeepsARankFromTheSlope) {
  const SamplingParams params{.mirostat = 1, .mirostat_tau = 3, .mirostat_eta = 0.1f};
  for (uint32_t seed = 0; seed < 20; ++seed) {
    // Probabilities that fall as a power of the rank, which is what version 1 supposes.
    std::vector<float> logits = normal_logits(1000, seed, 0.05f);
    for (size_t i = 0; i < logits.size(); ++i) {
      logits[i] += float(-1.3 * std::log(double((i * 7) % 1000 + 1)));
    }
    std::vector<double> order(logits.begin(), logits.end());
    std::sort(order.rbegin(), order.rend());
    double above = 0, below = 0;
    for (size_t i = 0; i < 99; ++i) {
      const double t = std::log(double(i + 2) / double(i + 1));
      above += t * (order[i] - order[i + 1]);
      below += t * t;
    }
    const double s = above / below, epsilon = s - 1;
    const double k =
        std::pow(epsilon * std::pow(2.0, 6.0) / (1 - std::pow(1000.0, -epsilon)), 1 / s);
    const Learned found = apply_and_learn("mirostat", params, logits, Token(-1), nullptr);
    EXPECT_NEAR(double(found.kept.size()), std::max(1.0, std::floor(k)), 1) << seed;
  }
  // Flat and extreme slopes have no sensible rank, but some rank.
  for (const std::vector<float>& row : {std::vector<float>(50, 0.0f), std::vector<float>{5},
                                        std::vector<float>{3e38f, -3e38f, 0}}) {
    const Learned found = apply_and_learn("mirostat", params, row, likeliest(row), nullptr);
    EXPECT_GE(found.kept.size(), 1u);
    EXPECT_TRUE(std::isfinite(found.memory.first));
  }
}

TEST(Stages, AdaptivePrefersTokensNearTheTarget) {
  const SamplingParams params{.adaptive_target = 0.3f, .adaptive_decay = 0.8f};
  const std::vector<double> p{0.5, 0.3, 0.15, 0.05};
  std::vector<float> logits;
  for (const double x : p) logits.push_back(float(std::log(x)));
  const StageMemory before{1.5f, 3.0f};  // An average of 0.5: the target moves down to 0.1.
  for (const StageMemory* memory : {(const StageMemory*)nullptr, &before}) {
    const double target = memory == nullptr ? 0.3 : 0.1;
    const Learned found = apply_and_learn("adaptive_p", params, logits, Token(2), memory);
    for (size_t i = 0; i < p.size(); ++i) {
      const double d = std::abs(p[i] - target) / 0.3;
      EXPECT_NEAR(double(found.kept.at(int32_t(i))), 5 - 10 * d * d / (1 + d), 1e-4);
    }
    const double first = memory == nullptr ? 0.3 / 0.2 : 1.5;
    const double second = memory == nullptr ? 1 / 0.2 : 3.0;
    EXPECT_NEAR(double(found.memory.first), 0.15 + 0.8 * first, 1e-5);
    EXPECT_NEAR(double(found.memory.second), 1 + 0.8 * second, 1e-5);
  }
}

}  // namespace
}  // namespace cairn::sample::stages_test
