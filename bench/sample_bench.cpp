// What choosing a token costs with a vocabulary of 262144 tokens: the default chain, the chains
// that cannot narrow it early, masks, and log-probabilities. Logits as models make them: a few
// likely tokens above a bell of unlikely ones.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "sample/sampler.h"

namespace cairn::sample {
namespace {

constexpr size_t kVocabulary = 262144;
constexpr int32_t kRows = 4;  // Several rows, so that branches are not learned by heart.

std::vector<std::vector<float>> make_rows() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2.2f);
  std::vector<std::vector<float>> rows(kRows, std::vector<float>(kVocabulary));
  for (auto& row : rows) {
    for (float& logit : row) logit = normal(random);
    for (int i = 0; i < 60; ++i) row[random() % kVocabulary] = 8 + std::abs(normal(random)) * 3;
  }
  return rows;
}

void run(benchmark::State& state, const SamplingParams& params, const TokenMask* allowed = nullptr,
         bool reports = false) {
  static const auto rows = make_rows();
  std::vector<Token> history;
  for (int i = 0; i < 4000; ++i) history.push_back(Token((i * 7919) % 50021));
  Sampler sampler(params);
  int32_t position = 4000;
  for (auto _ : state) {
    const auto& row = rows[size_t(position % kRows)];
    Result<Token> token = sampler.sample(
        {.logits = row, .position = position++, .history = history, .allowed = allowed});
    benchmark::DoNotOptimize(*token);
    if (reports) benchmark::DoNotOptimize(sampler.probabilities());
  }
}

void default_chain(benchmark::State& state) {
  run(state, {.seed = 1});
}
BENCHMARK(default_chain)->Unit(benchmark::kMicrosecond);

void greedy(benchmark::State& state) {
  run(state, {.temperature = 0});
}
BENCHMARK(greedy)->Unit(benchmark::kMicrosecond);

void penalties_and_dry(benchmark::State& state) {
  run(state, {.repeat_penalty = 1.1f, .dry_multiplier = 0.8f, .seed = 1, .dry_breakers = {}});
}
BENCHMARK(penalties_and_dry)->Unit(benchmark::kMicrosecond);

void top_p_alone(benchmark::State& state) {
  run(state, {.temperature = 1, .top_k = 0, .top_p = 0.9f, .min_p = 0, .seed = 1});
}
BENCHMARK(top_p_alone)->Unit(benchmark::kMicrosecond);

void min_p_alone(benchmark::State& state) {
  run(state, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0.05f, .seed = 1});
}
BENCHMARK(min_p_alone)->Unit(benchmark::kMicrosecond);

void no_cut_at_all(benchmark::State& state) {
  run(state, {.temperature = 0.9f, .top_k = 0, .top_p = 1, .min_p = 0, .seed = 1});
}
BENCHMARK(no_cut_at_all)->Unit(benchmark::kMicrosecond);

void typical_alone(benchmark::State& state) {
  run(state, {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0, .typical_p = 0.9f, .seed = 1});
}
BENCHMARK(typical_alone)->Unit(benchmark::kMicrosecond);

void mirostat2(benchmark::State& state) {
  run(state, {.temperature = 1, .mirostat = 2, .seed = 1});
}
BENCHMARK(mirostat2)->Unit(benchmark::kMicrosecond);

// Of 100 tokens so many are allowed.
void masked(benchmark::State& state) {
  std::mt19937 random(2);
  std::vector<uint64_t> words(kVocabulary / 64);
  for (size_t i = 0; i < kVocabulary; ++i) {
    if (random() % 100 < uint32_t(state.range(0))) words[i / 64] |= uint64_t(1) << (i % 64);
  }
  const TokenMask mask = words;
  run(state, {.seed = 1}, &mask);
}
BENCHMARK(masked)->Unit(benchmark::kMicrosecond)->Arg(1)->Arg(50)->Arg(95);

void default_chain_and_top_20(benchmark::State& state) {
  SamplingParams params{.seed = 1};
  params.probability_count = 20;
  run(state, params, nullptr, true);
}
BENCHMARK(default_chain_and_top_20)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cairn::sample

BENCHMARK_MAIN();
