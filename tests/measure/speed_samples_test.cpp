// What samples there are, and the counting of bytes and operations, by hand. Speeds depend on the
// machine and are not looked at. Covers step_costs.cpp, machine_limits.cpp, speed_report.cpp.
#include "measure/speed_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "measure/speed_report.h"
#include "synth/synth.h"
#include "tests/scratch_folder.h"

namespace cairn::measure::speed_samples_test {
namespace {

using test::ScratchFolder;

synth::SynthShape small(std::string_view like) {
  synth::SynthShape shape = synth::default_shape(like);
  shape.vocabulary = 512;
  shape.layers = 2;
  return shape;
}

std::unique_ptr<Engine> load(const ScratchFolder& folder, const synth::SynthShape& shape,
                             const SpeedWork& work) {
  const std::string path = folder.file("model.gguf");
  EXPECT_TRUE(synth::write_synthetic({.shape = shape, .out_path = path, .thread_count = 1}));
  const EngineOptions options{.thread_count = 1, .context_tokens = context_tokens(work)};
  return Engine::load(gguf::File::open(path).value(), options).value();
}

constexpr MachineLimits kLimits{
    .read_bytes_per_second = 1e9, .integer_ops_per_second = 1e9, .float_ops_per_second = 1e9};

std::vector<SpeedRow> rows_of(const synth::SynthShape& shape, const SpeedWork& work) {
  const ScratchFolder folder;
  const auto engine = load(folder, shape, work);
  auto rows = measure_speed(
      *engine, [] { return kLimits; }, work);
  EXPECT_TRUE(rows) << rows.error().message;
  return std::move(rows).value();
}

TEST(SpeedSamples, CountsWhatATokenReads) {
  // Q8_0: 34 bytes for 32 weights. A layer: queries and outputs 128 × 128, keys and values 128 ×
  // 64, three matrices of the feed-forward block 128 × 256; at the end the table, 512 × 128.
  synth::SynthShape shape = small("llama");
  shape.width = 128;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = 32;
  shape.mlp_width = 256;
  const double layer = 128.0 * (128 + 128 + 64 + 64 + 3 * 256);
  const std::vector<SpeedRow> rows = rows_of(
      shape,
      {.prompts = {600}, .new_tokens = 2, .depths = {0, 99}, .batches = {1, 4}, .round_count = 1});
  ASSERT_EQ(rows.size(), 6u);
  const double weights = 2 * layer + 512 * 128;
  const SpeedRow& decode = rows[4];
  EXPECT_EQ(decode.depth, 99);
  // And one row of the table to begin with.
  EXPECT_DOUBLE_EQ(decode.costs.weight_bytes, (weights + 128) * 34 / 32);
  EXPECT_DOUBLE_EQ(decode.costs.integer_ops, 2 * weights);
  // In the middle, 100 tokens behind and the own one: two layers, two heads of 32, f16.
  EXPECT_DOUBLE_EQ(decode.costs.kv_bytes, 2.0 * 101 * 2 * 2 * 32 * 2);
  EXPECT_DOUBLE_EQ(decode.costs.float_ops, 2.0 * 4 * 4 * 32 * 101);
  EXPECT_EQ(decode.costs.state_bytes, 0);
  EXPECT_DOUBLE_EQ(decode.limit_tokens_per_second(), 1 / least_seconds(decode.costs, kLimits));
  // Four sequences read weights and their common past once.
  const SpeedRow& batch = rows[5];
  EXPECT_DOUBLE_EQ(batch.costs.weight_bytes, (weights + 4 * 128) * 34 / 32);
  EXPECT_DOUBLE_EQ(batch.costs.kv_bytes, 2.0 * (100 + 4) * 2 * 2 * 32 * 2);
  EXPECT_DOUBLE_EQ(batch.limit_tokens_per_second(), 4 / least_seconds(batch.costs, kLimits));
  // A prompt of 600 takes two steps, and the logits of its last token.
  const SpeedRow& prompt = rows[0];
  EXPECT_EQ(prompt.prompt_tokens, 600);
  EXPECT_NEAR(prompt.costs.integer_ops, 2 * (600 * 2 * layer + 512.0 * 128), 1e-3);
  EXPECT_NEAR(prompt.costs.weight_bytes, (2 * 2 * layer + 512.0 * 128 + 600 * 128) * 34 / 32, 1e-3);
}

// Limits that change from one measurement to the next: each sample stands beside that which was
// taken before its round of its row, and the share is the median of these pairs.
TEST(SpeedSamples, EachRoundIsComparedWithTheLimitsBesideIt) {
  const ScratchFolder folder;
  const SpeedWork work{.prompts = {600}, .new_tokens = 20, .round_count = 3};
  const auto engine = load(folder, small("llama"), work);
  const double paces[] = {1e6, 8e6, 2e6, 64e6, 16e6, 4e6};
  const auto limits_at = [](double pace) {
    return MachineLimits{.read_bytes_per_second = pace,
                         .integer_ops_per_second = pace,
                         .float_ops_per_second = pace};
  };
  size_t asked_count = 0;
  auto rows = measure_speed(
      *engine, [&] { return limits_at(paces[asked_count++]); }, work);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(asked_count, std::size(paces));  // Two rows in three rounds.
  ASSERT_EQ(rows->size(), 2u);
  for (size_t row = 0; row < 2; ++row) {
    const SpeedRow& measured = (*rows)[row];
    const size_t per_round = row == 0 ? 1 : 2;  // A prompt; or two samples of ten tokens.
    EXPECT_EQ(measured.steps.size(), row == 0 ? 2u : 1u);
    ASSERT_EQ(measured.samples.size(), 3 * per_round);
    ASSERT_EQ(measured.limits.size(), 3 * per_round);
    std::vector<double> shares;
    for (size_t sample = 0; sample < measured.samples.size(); ++sample) {
      const MachineLimits beside = limits_at(paces[sample / per_round * 2 + row]);
      double seconds = 0;
      for (const StepCosts& step : measured.steps) seconds += least_seconds(step, beside);
      const double limit = (row == 0 ? 600 : 1) / seconds;
      EXPECT_DOUBLE_EQ(measured.limits[sample], limit);
      shares.push_back(measured.samples[sample] / limit);
    }
    EXPECT_DOUBLE_EQ(measured.share_of_limit(), median(shares));
    EXPECT_DOUBLE_EQ(measured.limit_tokens_per_second(), median(measured.limits));
  }
}

// Where pace and limit change alike, the share stays.
TEST(SpeedSamples, AMachineThatChangesItsPaceHasTheSameShare) {
  const SpeedRow row{.samples = {50, 400, 100}, .limits = {100, 800, 200}};
  EXPECT_DOUBLE_EQ(row.share_of_limit(), 0.5);
  const SpeedRow unlike{.samples = {90, 10, 20}, .limits = {100, 20, 80}};
  EXPECT_DOUBLE_EQ(unlike.share_of_limit(), 0.5);  // Not 20 / 80, the quotient of the medians.
  const SpeedRow unmeasured{.samples = {90}, .limits = {0}};
  EXPECT_EQ(unmeasured.share_of_limit(), 0);
}

TEST(SpeedSamples, MeasuringNeedsTheLimits) {
  const ScratchFolder folder;
  const SpeedWork work{.prompts = {8}, .round_count = 1};
  const auto engine = load(folder, small("llama"), work);
  const auto rows = measure_speed(
      *engine, []() -> Result<MachineLimits> { return fail(ErrorCode::io, "no threads"); }, work);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().message, "no threads");
}

TEST(SpeedSamples, CountsStates) {
  const std::vector<SpeedRow> rows = rows_of(small("mamba2"), {.new_tokens = 4, .round_count = 1});
  ASSERT_EQ(rows.size(), 1u);
  // 512 channels × 128 of state in each of two layers, and the tails of the convolution: 3 × (512 +
  // 2 × 128).
  EXPECT_EQ(rows[0].costs.state_bytes, 2 * 4 * (512 * 128 + 3 * (512 + 2 * 128)));
  EXPECT_EQ(rows[0].costs.kv_bytes, 0);
}

TEST(SpeedSamples, CountsTheExpertsInUse) {
  synth::SynthShape shape = small("qwen3moe");
  shape.width = 64;
  shape.expert_width = 32;
  shape.experts = 8;
  shape.experts_used = 2;
  const std::vector<SpeedRow> rows =
      rows_of(shape, {.new_tokens = 4, .batches = {1, 3}, .round_count = 1});
  // Of a layer's experts, one token uses a quarter, three tokens 1 - (3/4)^3.
  const double experts = 2.0 * 8 * 3 * 64 * 32 * 34 / 32;
  const double others = rows[0].costs.weight_bytes - experts / 4;
  EXPECT_GT(others, 0);
  const double look_ups = 2 * 64 * 34.0 / 32;  // Of two more tokens.
  EXPECT_NEAR(rows[1].costs.weight_bytes, others + look_ups + experts * 37 / 64, 1e-6);
}

TEST(SpeedSamples, EachSequenceMayHaveAPastOfItsOwn) {
  SpeedWork work{.new_tokens = 4, .depths = {0, 30}, .batches = {3}, .round_count = 1};
  const double shared = rows_of(small("granitehybrid"), work)[1].costs.kv_bytes;
  work.separate_prompts = true;
  const double separate = rows_of(small("granitehybrid"), work)[1].costs.kv_bytes;
  // 32 tokens behind, in the middle, for each or for all three; and the own one.
  EXPECT_NEAR(separate / shared, 33.0 / (32.0 / 3 + 1), 1e-9);
}

TEST(SpeedSamples, MeasuringCanBeStopped) {
  const ScratchFolder folder;
  int32_t told_count = 0;
  SpeedWork work{.prompts = {8}, .round_count = 1};
  work.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_LE(done, total);
    return ++told_count < 3;
  };
  const auto engine = load(folder, small("llama"), work);
  const auto rows = measure_speed(
      *engine, [] { return kLimits; }, work);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::cancelled);
  EXPECT_EQ(told_count, 3);
}

TEST(SpeedReport, TheStartIsMeasuredWhereLoadingWorks) {
  const ScratchFolder folder;
  const SpeedWork work{.prompts = {8}};
  const auto engine = load(folder, small("llama"), work);
  int32_t load_count = 0;
  LimitMeter meter = LimitMeter::start({.thread_count = 1}).value();
  auto report = measure_start(meter, [&]() -> Result<Engine*> {
    ++load_count;
    return engine.get();
  });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(load_count, 1);
  EXPECT_EQ(report->architecture, "llama");
  EXPECT_EQ(report->options.context_tokens, context_tokens(work));
  EXPECT_GT(report->limits.read_bytes_per_second, 0);
  EXPECT_GE(report->first_token_seconds, report->load_seconds);
  EXPECT_GT(report->resident_bytes, 0u);
  const auto failed =
      measure_start(meter, []() -> Result<Engine*> { return fail(ErrorCode::io, "no model"); });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "no model");
}

// Threads that compute pin whoever calls them; what is measured beside them is not pinned with it.
TEST(SpeedReport, LimitsAreMeasuredBesideAPoolThatIsAwake) {
  const int thread_count = std::min<int>(2, int(usable_cpus().size()));
  LimitMeter meter = LimitMeter::start({.thread_count = thread_count}).value();
  const std::vector<int> cpus = usable_cpus();
  {
    ThreadPool engine(thread_count);
    engine.run([](int) {});
    auto limits = meter.measure(kBriefRuns);
    ASSERT_TRUE(limits) << limits.error().message;
    EXPECT_GT(limits->read_bytes_per_second, 0);
  }
  EXPECT_EQ(usable_cpus(), cpus);  // As before: the thread is nobody's.
}

}  // namespace
}  // namespace cairn::measure::speed_samples_test
