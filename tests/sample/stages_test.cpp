// Walks the table of stages: each alone does what its parameters say and leaves the likeliest
// token. This covers src/sample/top_k.cpp, top_p.cpp, min_p.cpp and temperature.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <string_view>
#include <vector>

#include "sample/stage.h"

namespace cairn::sample {
namespace {

const SamplerStage* stage_named(std::string_view name) {
  for (const SamplerStage* stage : all_stages()) {
    if (stage->name == name) return stage;
  }
  return nullptr;
}

std::map<int32_t, float> apply(std::string_view name, const SamplingParams& params,
                               std::span<const float> logits) {
  Candidates candidates;
  candidates.reset(logits);
  stage_named(name)->apply(candidates, params);
  std::map<int32_t, float> kept;
  for (const Candidate& c : candidates.list()) kept[index_of(c.token)] = c.logit;
  return kept;
}

// Probabilities 8/16, 4/16, 2/16, 1/16, 1/16.
const std::vector<float> kHalves{std::log(8.0f), std::log(4.0f), std::log(2.0f), 0.0f, 0.0f};

TEST(Stages, EveryStageKeepsTheLikeliestToken) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  for (const SamplerStage* stage : all_stages()) {
    for (int round = 0; round < 100; ++round) {
      std::vector<float> logits(1 + random() % 200);
      for (float& logit : logits) logit = normal(random);
      SamplingParams params{.temperature = 0.5f, .top_k = 3, .top_p = 0.3f, .min_p = 0.9f};
      const auto kept = apply(stage->name, params, logits);
      EXPECT_EQ(kept.count(index_of(likeliest(logits))), 1u) << stage->name;
    }
  }
}

TEST(Stages, OffMeansAll) {
  const SamplingParams off{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
  for (const SamplerStage* stage : all_stages()) {
    const auto kept = apply(stage->name, off, kHalves);
    ASSERT_EQ(kept.size(), kHalves.size()) << stage->name;
    for (const auto& [id, logit] : kept) EXPECT_EQ(logit, kHalves[size_t(id)]) << stage->name;
  }
}

TEST(Stages, TopK) {
  EXPECT_EQ(apply("top_k", {.top_k = 2}, kHalves).size(), 2u);
  EXPECT_EQ(apply("top_k", {.top_k = 4}, kHalves).count(3), 1u) << "of equals the lower id";
  EXPECT_EQ(apply("top_k", {.top_k = 99}, kHalves).size(), 5u);
}

TEST(Stages, TopP) {
  EXPECT_EQ(apply("top_p", {.top_p = 0}, kHalves).size(), 1u);
  EXPECT_EQ(apply("top_p", {.top_p = 0.45f}, kHalves).size(), 1u);
  EXPECT_EQ(apply("top_p", {.top_p = 0.55f}, kHalves).size(), 2u);
  EXPECT_EQ(apply("top_p", {.top_p = 0.9f}, kHalves).size(), 4u);
}

TEST(Stages, MinP) {
  EXPECT_EQ(apply("min_p", {.min_p = 1}, kHalves).size(), 1u);
  EXPECT_EQ(apply("min_p", {.min_p = 0.45f}, kHalves).size(), 2u);
  EXPECT_EQ(apply("min_p", {.min_p = 0.2f}, kHalves).size(), 3u);
  EXPECT_EQ(apply("min_p", {.min_p = 0.1f}, kHalves).size(), 5u);
}

TEST(Stages, Temperature) {
  const auto kept = apply("temperature", {.temperature = 2}, kHalves);
  for (const auto& [id, logit] : kept) EXPECT_EQ(logit, kHalves[size_t(id)] / 2);
}

}  // namespace
}  // namespace cairn::sample
