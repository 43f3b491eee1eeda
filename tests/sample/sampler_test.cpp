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

#include "sample/dry_breakers.h"
#include "sample/noise.h"
#include "tests/sanitized.h"
#include "tests/tokenize/small_vocabularies.h"
#include "tokenize/tokenizer.h"

namespace cairn::sample::sampler_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> normal_logits(size_t count, uint32_t seed, float spread) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = spread * normal(random);
  return logits;
}

Token chosen(Sampler& sampler, std::span<const float> logits, int32_t position) {
  return sampler.sample(logits, position).value();
}

// The default chain, written plainly: probabilities by token, in f64, everything sorted.
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
  constexpr int kDraws = test::kIsSanitized ? 6000 : 60000;
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

TEST(Sampler, MasksAreObeyedAtAnyTemperature) {
  const auto logits = normal_logits(300, 4, 2);
  std::mt19937_64 random(3);
  std::vector<uint64_t> words(3);  // Tokens from 192 on are forbidden.
  for (uint64_t& word : words) word = random() & random();
  const TokenMask allowed = words;
  std::vector<float> masked = logits;
  for (size_t i = 0; i < masked.size(); ++i) {
    if (i >= 192 || (words[i / 64] >> (i % 64) & 1) == 0) masked[i] = -kInfinity;
  }
  for (const float temperature : {0.0f, 1.0f}) {
    for (const int32_t top_k : {0, 40}) {
      Sampler with_mask({.temperature = temperature, .top_k = top_k, .seed = 5});
      Sampler without({.temperature = temperature, .top_k = top_k, .seed = 5});
      for (int32_t position = 0; position < 200; ++position) {
        const Token token = with_mask.sample(logits, position, &allowed).value();
        ASSERT_EQ(token, chosen(without, masked, position));
        ASSERT_GT(masked[size_t(index_of(token))], -kInfinity);
      }
    }
  }
  const std::vector<uint64_t> nothing(5, 0);
  const TokenMask none = nothing;
  Sampler sampler({});
  const Result<Token> token = sampler.sample(logits, 0, &none);
  ASSERT_FALSE(token);
  EXPECT_NE(token.error().message.find("allowed"), std::string::npos);
}

// A temperature of 2 before min_p leaves more tokens than behind it.
TEST(Sampler, TheOrderOfStagesIsData) {
  const auto logits = normal_logits(200, 6, 2);
  const auto different = [&](std::string_view order) {
    SamplingParams params{.temperature = 2, .top_k = 0, .min_p = 0.2f, .seed = 1};
    params.samplers = sampler_order(order).value();
    Sampler sampler(params);
    std::set<Token> seen;
    for (int32_t position = 0; position < 3000; ++position) {
      seen.insert(chosen(sampler, logits, position));
    }
    return seen.size();
  };
  const float best = *std::max_element(logits.begin(), logits.end());
  size_t behind = 0, before = 0;
  for (const float x : logits) {
    behind += double(x) >= double(best) + std::log(0.2) ? 1 : 0;
    before += double(x) >= double(best) + 2 * std::log(0.2) ? 1 : 0;
  }
  EXPECT_LT(behind, before);
  EXPECT_EQ(different("mt"), behind);
  EXPECT_EQ(different("tm"), before);
  EXPECT_GT(different("t"), before);
}

TEST(Sampler, NoStagesMeanTheModelsOwnDistribution) {
  const auto logits = normal_logits(40, 7, 1);
  SamplingParams params{.temperature = 0.1f, .top_k = 1, .seed = 6};
  params.samplers.clear();
  const auto expected =
      plain_distribution(logits, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0});
  Sampler sampler(params);
  std::vector<int> counts(logits.size(), 0);
  for (int32_t position = 0; position < 40000; ++position) {
    ++counts[size_t(index_of(chosen(sampler, logits, position)))];
  }
  EXPECT_LT(surplus(counts, expected, 40000), 5.0);
}

TEST(Sampler, BiasesMoveTheDistribution) {
  const auto logits = normal_logits(40, 8, 1);
  SamplingParams params{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 9};
  params.logit_bias = {{.token = Token(3), .bias = 1.5f},
                       {.token = Token(3), .bias = 0.5f},
                       {.token = likeliest(logits), .bias = -kInfinity},
                       {.token = Token(4000), .bias = 100},
                       {.token = Token(-5), .bias = 100}};
  std::vector<float> biased = logits;
  biased[3] += 2;
  biased[size_t(index_of(likeliest(logits)))] = -60;
  const auto expected = plain_distribution(biased, params);
  Sampler sampler(params);
  std::vector<int> counts(logits.size(), 0);
  for (int32_t position = 0; position < 40000; ++position) {
    ++counts[size_t(index_of(chosen(sampler, logits, position)))];
  }
  EXPECT_LT(surplus(counts, expected, 40000), 5.0);
  EXPECT_EQ(counts[size_t(index_of(likeliest(logits)))], 0);
  params.temperature = 0;
  Sampler greedy(params);
  EXPECT_EQ(chosen(greedy, logits, 0), likeliest(biased));
}

TEST(Sampler, PenaltiesReadTheHistoryEvenWhereTheLikeliestIsTaken) {
  const std::vector<float> logits{3, 2.5f, 2};
  Sampler sampler({.temperature = 0, .presence_penalty = 1});
  const std::vector<Token> history{Token(0), Token(1)};
  EXPECT_EQ(sampler.sample({.logits = logits, .position = 2, .history = history}).value(),
            Token(0));
  EXPECT_EQ(
      sampler.sample({.logits = logits, .position = 1, .history = std::span(history).first(1)})
          .value(),
      Token(1));
}

// A sequence whose logits depend on its tokens, as a model's do.
class History {
 public:
  explicit History(const SamplingParams& params) : sampler(params) {}
  void go_to(size_t length) {
    while (tokens.size() < length) {
      const uint32_t last = tokens.empty() ? 0 : uint32_t(index_of(tokens.back()));
      const auto logits = normal_logits(400, last * 1000 + uint32_t(tokens.size()), 3);
      const SampleInput input{
          .logits = logits, .position = int32_t(tokens.size()), .history = tokens};
      tokens.push_back(sampler.sample(input).value());
    }
  }
  Sampler sampler;
  std::vector<Token> tokens;
};

std::vector<SamplingParams> params_with_memory() {
  SamplingParams adaptive{.temperature = 1, .adaptive_target = 0.4f, .seed = 3};
  adaptive.samplers = sampler_order("kma").value();
  return {{.temperature = 0.9f, .mirostat = 1, .mirostat_tau = 2, .mirostat_eta = 1, .seed = 3},
          {.temperature = 1.1f, .mirostat = 2, .mirostat_tau = 2, .mirostat_eta = 1, .seed = 4},
          adaptive,
          {.temperature = 1.5f,
           .xtc_probability = 0.5f,
           .repeat_last_count = -1,
           .repeat_penalty = 1.3f,
           .dry_multiplier = 0.8f,
           .seed = 6,
           .dry_breakers = {}}};
}

TEST(Sampler, ARewindIsExactForEveryStateThatStagesHave) {
  for (const SamplingParams& params : params_with_memory()) {
    History straight(params);
    straight.go_to(120);
    EXPECT_GT(std::set<Token>(straight.tokens.begin(), straight.tokens.end()).size(), 20u);
    // Another way on and back.
    History rewound(params);
    rewound.go_to(70);
    rewound.tokens.resize(30);
    rewound.tokens[25] = Token(399);
    rewound.go_to(90);
    rewound.tokens.assign(straight.tokens.begin(), straight.tokens.begin() + 25);
    rewound.go_to(120);
    EXPECT_EQ(rewound.tokens, straight.tokens);
    // A snapshot taken up by another sampler.
    History forked(params);
    forked.tokens.assign(straight.tokens.begin(), straight.tokens.begin() + 60);
    forked.sampler.set_state(straight.sampler.state());
    forked.go_to(120);
    EXPECT_EQ(forked.tokens, straight.tokens);
  }
}

TEST(Sampler, MemoriesMatter) {
  for (SamplingParams params : params_with_memory()) {
    if (params.mirostat == 0 && params.adaptive_target < 0) continue;
    // A memory says little of one token, so that some seeds choose alike without it.
    int different = 0;
    for (params.seed = 1; params.seed <= 10; ++params.seed) {
      History straight(params), forgetful(params);
      straight.go_to(100);
      forgetful.tokens.assign(straight.tokens.begin(), straight.tokens.begin() + 60);
      forgetful.go_to(100);
      different += forgetful.tokens != straight.tokens ? 1 : 0;
      EXPECT_EQ(straight.sampler.state().size(), 100u);
      EXPECT_EQ(forgetful.sampler.state().size(), 40u);
    }
    EXPECT_GT(different, 0);
  }
}

TEST(Sampler, MirostatHoldsItsSurprise) {
  for (const int32_t version : {1, 2}) {
    Sampler sampler({.temperature = 1, .mirostat = version, .mirostat_tau = 3, .seed = 2});
    double surprise = 0;
    constexpr int kTokens = 2000, kStart = 200;
    for (int32_t position = 0; position < kTokens; ++position) {
      std::vector<float> logits = normal_logits(1000, uint32_t(position), 0.2f);
      for (size_t i = 0; i < logits.size(); ++i) logits[i] -= 1.1f * std::log(float(i + 1));
      const Token token = chosen(sampler, logits, position);
      if (position < kStart) continue;
      surprise -=
          double(log_probabilities(logits, token, 0).chosen.log_probability) / std::log(2.0);
    }
    EXPECT_NEAR(surprise / (kTokens - kStart), 3, version == 1 ? 1.5 : 1.0) << version;
  }
}

tokenize::SmallVocabulary small_vocabulary() {
  tokenize::SmallVocabulary small = tokenize::byte_level_vocabulary();
  small.source.eos = small.add("<eos>", tokenize::TokenType::control);
  return small;
}

TEST(Sampler, EndsAreIgnoredOnlyWhereAskedFor) {
  const tokenize::SmallVocabulary small = small_vocabulary();
  const auto tokenizer = tokenize::Tokenizer::build(small.source).value();
  const Token end = Token(int32_t(*small.source.eos));
  ASSERT_TRUE(tokenizer->is_end_of_generation(end));
  std::vector<float> logits(tokenizer->token_count(), 0);
  logits[size_t(index_of(end))] = 50;
  SamplingParams params;
  EXPECT_FALSE(Sampler::needs_tokenizer(params));
  Sampler sampler(params);
  EXPECT_EQ(chosen(sampler, logits, 0), end);
  params.ignore_eos = true;
  EXPECT_TRUE(Sampler::needs_tokenizer(params));
  Sampler ignoring(params, tokenizer.get());
  EXPECT_NE(chosen(ignoring, logits, 0), end);
}

TEST(Sampler, BiasesByTextMeanAllItsTokens) {
  const auto tokenizer = tokenize::Tokenizer::build(small_vocabulary().source).value();
  SamplingParams params{.temperature = 0};
  params.logit_bias = {{.text = "the!", .bias = 2}};
  Sampler sampler(params, tokenizer.get());
  const auto tokens = tokenizer->encode("the!");
  ASSERT_EQ(tokens.size(), 2u);
  for (const Token token : tokens) {
    std::vector<float> logits(tokenizer->token_count(), 0);
    logits[0] = 1.5f;
    logits[size_t(index_of(tokens[token == tokens[0] ? 1 : 0]))] = -9;
    EXPECT_EQ(chosen(sampler, logits, 0), token);
  }
}

TEST(Sampler, DryBreakersAreFoundInTokensAndAcrossThem) {
  const auto tokenizer = tokenize::Tokenizer::build(small_vocabulary().source).value();
  const auto token = [&](std::string_view text) { return tokenizer->encode(text).at(0); };
  const std::vector<std::string> texts{"h", "aab"};
  const DryBreakers breakers(*tokenizer, texts);
  EXPECT_TRUE(breakers.is_breaker(token("h")));
  EXPECT_TRUE(breakers.is_breaker(token("the")));
  EXPECT_FALSE(breakers.is_breaker(token("t")));
  EXPECT_FALSE(breakers.is_breaker(token("aa")));
  const auto limit = [&](std::vector<Token> tokens) { return breakers.repetition_limit(tokens); };
  EXPECT_EQ(limit({token("x"), token("y")}), 2u);
  EXPECT_EQ(limit({token("the"), token("x"), token("y")}), 2u);
  EXPECT_EQ(limit({token("x"), token("the")}), 0u);
  EXPECT_EQ(limit({token("x"), token("aa"), token("b"), token("x")}), 1u);
  EXPECT_EQ(limit({token("x"), token("aa"), token("c"), token("x")}), 4u);
  EXPECT_EQ(limit({token("x"), token("aa")}), 2u);
  // The whole way: the same repetition, with a breaker in it and without.
  const auto likely = [&](std::vector<std::string> breaker_texts) {
    SamplingParams params{.temperature = 0, .dry_multiplier = 5, .dry_allowed_length = 1};
    params.dry_breakers = std::move(breaker_texts);
    Sampler sampler(params, tokenizer.get());
    const std::vector<Token> history{token("x"), token("y"), token("z"), token("x"), token("y")};
    std::vector<float> logits(tokenizer->token_count(), 0);
    logits[size_t(index_of(token("z")))] = 1;
    return sampler.sample({.logits = logits, .position = 5, .history = history}).value();
  };
  EXPECT_NE(likely({}), token("z"));
  EXPECT_NE(likely({"q"}), token("z"));
  EXPECT_EQ(likely({"y"}), token("z"));
}

TEST(Sampler, InfillEndsTheTextOrKeepsWhatIsAhead) {
  const tokenize::SmallVocabulary small = small_vocabulary();
  const auto tokenizer = tokenize::Tokenizer::build(small.source).value();
  const Token end = Token(int32_t(*small.source.eos));
  const auto token = [&](std::string_view text) { return tokenizer->encode(text).at(0); };
  SamplingParams params{.seed = 1};
  params.samplers = sampler_order("ki").value();
  ASSERT_TRUE(Sampler::needs_tokenizer(params));
  Sampler sampler(params, tokenizer.get());
  const auto choices = [&](std::vector<std::pair<Token, float>> shares) {
    std::vector<float> logits(tokenizer->token_count(), -kInfinity);
    for (const auto& [id, share] : shares) logits[size_t(index_of(id))] = std::log(share);
    std::set<Token> seen;
    for (int32_t position = 0; position < 200; ++position) {
      seen.insert(chosen(sampler, logits, position));
    }
    return seen;
  };
  // 3 * 0.2 * 3 tokens is more than 0.8.
  EXPECT_EQ(choices({{end, 0.2f}, {token("x"), 0.5f}, {token("y"), 0.3f}}), std::set<Token>{end});
  // "t" and "th" give their shares to the likelier "the", which is then clearly ahead.
  EXPECT_EQ(choices({{token("the"), 0.3f},
                     {token("th"), 0.2f},
                     {token("t"), 0.1f},
                     {token("x"), 0.25f},
                     {token("y"), 0.15f}}),
            std::set<Token>{token("the")});
  EXPECT_EQ(choices({{token("x"), 0.5f}, {token("y"), 0.45f}, {token("z"), 0.05f}}),
            (std::set<Token>{token("x"), token("y")}));
}

TEST(Sampler, ProbabilitiesBeforeAndAfterTheChain) {
  const auto logits = normal_logits(500, 12, 2);
  double total = 0;
  for (const float x : logits) total += std::exp(double(x));
  SamplingParams params{.temperature = 0.7f, .top_k = 5, .seed = 8};
  params.probability_count = 20;
  Sampler before(params);
  const Token token = chosen(before, logits, 3);
  const LogProbabilities found = before.probabilities();
  EXPECT_EQ(found.chosen.token, token);
  EXPECT_NEAR(double(found.chosen.log_probability),
              double(logits[size_t(index_of(token))]) - std::log(total), 1e-5);
  ASSERT_EQ(found.top.size(), 20u);
  EXPECT_EQ(found.top[0].token, likeliest(logits));
  for (size_t i = 1; i < 20; ++i) {
    EXPECT_LE(found.top[i].log_probability, found.top[i - 1].log_probability);
  }
  params.post_sampling_probs = true;
  Sampler after(params);
  EXPECT_EQ(chosen(after, logits, 3), token);
  const auto expected = plain_distribution(logits, params);
  const LogProbabilities left = after.probabilities();
  EXPECT_LE(left.top.size(), 5u);
  double sum = 0;
  for (const TokenProbability& p : left.top) {
    EXPECT_NEAR(std::exp(double(p.log_probability)), expected[size_t(index_of(p.token))], 1e-5);
    sum += std::exp(double(p.log_probability));
  }
  EXPECT_NEAR(sum, 1, 1e-5);
  // A token that cannot be chosen.
  EXPECT_EQ(
      log_probabilities(std::vector<float>{0, -kInfinity}, Token(1), 0).chosen.log_probability,
      -kInfinity);
}

}  // namespace
}  // namespace cairn::sample::sampler_test
