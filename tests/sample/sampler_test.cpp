// The choice: its distribution against a plain one in f64, the same for the same seed and position,
// and defined for every input.
#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "sample/noise.h"

namespace cairn::sample {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> normal_logits(size_t count, uint32_t seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

Token chosen(Sampler& sampler, std::span<const float> logits, int32_t position) {
  return sampler.sample(logits, position).value();
}

// The documented chain, written plainly: probabilities by token, in f64, everything sorted.
std::vector<double> plain_distribution(std::span<const float> logits, const SamplingParams& p) {
  std::vector<size_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  if (p.top_k > 0) order.resize(std::min(order.size(), size_t(p.top_k)));
  const double best = double(logits[order[0]]);
  double total = 0;
  for (const size_t i : order) total += std::exp(double(logits[i]) - best);
  double reached = 0;
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || reached < double(p.top_p) * total)) {
    reached += std::exp(double(logits[order[kept++]]) - best);
  }
  if (p.top_p < 1) order.resize(kept);
  std::erase_if(order,
                [&](size_t i) { return std::exp(double(logits[i]) - best) < double(p.min_p); });
  std::vector<double> probabilities(logits.size(), 0);
  total = 0;
  for (const size_t i : order) {
    probabilities[i] = std::exp((double(logits[i]) - best) / double(p.temperature));
    total += probabilities[i];
  }
  for (double& probability : probabilities) probability /= total;
  return probabilities;
}

// Chi-square of draws against expectations, rare tokens joined in one cell; its mean is the number
// of cells less one and its deviation sqrt(2 * that). Returns deviations above the mean.
double surplus(const std::vector<int>& counts, const std::vector<double>& probabilities,
               int draw_count) {
  double chi_square = 0, rare_expected = 0, rare_count = 0;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    chi_square += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * draw_count;
    if (expected >= 10) {
      add(counts[i], expected);
    } else {
      rare_expected += expected;
      rare_count += counts[i];
    }
  }
  if (rare_expected >= 1) add(rare_count, rare_expected);
  const double freedom = std::max(1, cells - 1);
  return (chi_square - freedom) / std::sqrt(2 * freedom);
}

void expect_distribution(std::span<const float> logits, const SamplingParams& params) {
  constexpr int kDraws = 60000;
  const auto expected = plain_distribution(logits, params);
  Sampler sampler(params);
  std::vector<int> counts(logits.size(), 0);
  for (int32_t position = 0; position < kDraws; ++position) {
    Result<Token> token = sampler.sample(logits, position);
    ASSERT_TRUE(token);
    const size_t id = size_t(index_of(*token));
    ASSERT_GT(expected[id], 0) << "token " << id << " was cut by the chain";
    ++counts[id];
  }
  EXPECT_LT(surplus(counts, expected, kDraws), 5.0);
}

TEST(Sampler, DrawsFromTheDistributionOfTheWholeVocabulary) {
  expect_distribution(normal_logits(50, 1, 1.5f),
                      {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 11});
  expect_distribution(normal_logits(20, 2, 1),
                      {.temperature = 0.5f, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 12});
  expect_distribution(normal_logits(30, 3, 2),
                      {.temperature = 3, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 13});
}

TEST(Sampler, DrawsFromTheDistributionThatEachStageLeaves) {
  const auto logits = normal_logits(300, 4, 2);
  expect_distribution(logits, {.temperature = 1, .top_k = 7, .top_p = 1, .min_p = 0, .seed = 1});
  expect_distribution(logits, {.temperature = 1, .top_k = 0, .top_p = 0.7f, .min_p = 0, .seed = 2});
  expect_distribution(logits, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.1f, .seed = 3});
  expect_distribution(logits, {.seed = 4});
  expect_distribution(logits, {.temperature = 1.7f, .seed = 5});
}

TEST(Sampler, SeedAndPositionDecideAlone) {
  const auto logits = normal_logits(1000, 5, 1);
  const SamplingParams params{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 99};
  Sampler first(params), second(params);
  std::vector<Token> forward;
  for (int32_t position = 0; position < 100; ++position) {
    forward.push_back(chosen(first, logits, position));
  }
  // Backwards, with other samples in between, as after a rewind.
  for (int32_t position = 99; position >= 0; --position) {
    (void)second.sample(normal_logits(10, uint32_t(position), 1), 7);
    EXPECT_EQ(chosen(second, logits, position), forward[size_t(position)]);
  }
  EXPECT_GT(std::set<Token>(forward.begin(), forward.end()).size(), 50u);
  SamplingParams other_seed = params;
  other_seed.seed = 100;
  Sampler third(other_seed);
  int equal = 0;
  for (int32_t position = 0; position < 100; ++position) {
    equal += chosen(third, logits, position) == forward[size_t(position)] ? 1 : 0;
  }
  EXPECT_LT(equal, 20);
}

TEST(Sampler, HighAndLowWordsOfTheSeedCount) {
  EXPECT_NE(gumbel_noise(1, 0, NoiseStream::choice, Token(5)),
            gumbel_noise(uint64_t(1) << 32, 0, NoiseStream::choice, Token(5)));
  EXPECT_NE(gumbel_noise(1, 0, NoiseStream::choice, Token(5)),
            gumbel_noise(1, 1, NoiseStream::choice, Token(5)));
  EXPECT_NE(gumbel_noise(1, 0, NoiseStream::choice, Token(5)),
            gumbel_noise(1, 0, NoiseStream::choice, Token(6)));
}

// Leaving out hopeless tokens must not change a choice: compared with all tokens' scores.
TEST(Sampler, TokensThatAreSkippedCouldNotHaveWon) {
  const SamplingParams params{.temperature = 0.1f, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 3};
  for (uint32_t round = 0; round < 50; ++round) {
    const auto logits = normal_logits(2000, round, 3);
    Sampler sampler(params);
    size_t best = 0;
    float best_score = -kInfinity;
    for (size_t i = 0; i < logits.size(); ++i) {
      const float score = logits[i] / params.temperature +
                          gumbel_noise(params.seed, int32_t(round), NoiseStream::choice, Token(i));
      if (score > best_score) {
        best = i;
        best_score = score;
      }
    }
    EXPECT_EQ(chosen(sampler, logits, int32_t(round)), Token(best));
  }
}

TEST(Sampler, NoiseStaysInItsBoundsAtBothEnds) {
  for (const uint32_t word : {0u, 1u, 2u, 0x7fffffffu, 0x80000000u, 0xfffffffeu, 0xffffffffu}) {
    const float u = unit_interval(word);
    EXPECT_GT(u, 0);
    EXPECT_LT(u, 1);
    const double exact = -std::log1p(-double(u));
    EXPECT_NEAR(double(exponential(u)) / exact, 1, 1e-6) << word;
    const double noise = -std::log(exact);
    EXPECT_GE(noise, double(kNoiseMin));
    EXPECT_LE(noise, double(kNoiseMax));
  }
}

TEST(Sampler, GreedyTakesTheLowestIdOfTheLikeliest) {
  for (const float temperature : {0.0f, -1.0f}) {
    Sampler sampler({.temperature = temperature});
    EXPECT_EQ(chosen(sampler, std::vector<float>{kNan, 2, 7, 7, kNan}, 0), Token(2));
    EXPECT_EQ(chosen(sampler, std::vector<float>{kInfinity, 7}, 3), Token(0));
  }
}

TEST(Sampler, HostileLogitsNeverBreakTheChoice) {
  const std::vector<std::vector<float>> rows{
      {kNan, 1, kNan},         {kInfinity, kInfinity, 0}, {-kInfinity, -3, -kInfinity},
      {3e38f, -3e38f, kNan},   {-3.4e38f, kNan},          {1e-45f, -1e-45f, 0},
      {kInfinity, -kInfinity},
  };
  const SamplingParams all[] = {
      {.temperature = 0},
      {.temperature = 1e-45f},
      {.temperature = 100, .top_k = 0, .top_p = 1, .min_p = 0},
      {.temperature = 1, .top_k = 1},
      {.temperature = 1, .top_k = 0, .top_p = 0, .min_p = 1},
  };
  for (const auto& row : rows) {
    for (const SamplingParams& params : all) {
      Sampler sampler(params);
      Result<Token> token = sampler.sample(row, 1);
      ASSERT_TRUE(token);
      ASSERT_GE(index_of(*token), 0);
      ASSERT_LT(size_t(index_of(*token)), row.size());
      const float logit = row[size_t(index_of(*token))];
      EXPECT_FALSE(std::isnan(logit) || logit == -kInfinity);
    }
  }
}

TEST(Sampler, NoUsableLogitIsAnError) {
  for (const float temperature : {0.0f, 1.0f}) {
    Sampler sampler({.temperature = temperature});
    for (const auto& row : {std::vector<float>{kNan, kNan}, std::vector<float>{-kInfinity, kNan}}) {
      const Result<Token> token = sampler.sample(row, 0);
      ASSERT_FALSE(token);
      EXPECT_EQ(token.error().code, ErrorCode::invalid_data);
      EXPECT_NE(token.error().message.find("found 2"), std::string::npos) << token.error().message;
    }
  }
}

}  // namespace
}  // namespace cairn::sample
