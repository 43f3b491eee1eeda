// Perplexity and divergence: against the same sums made from all rows of logits, of a model with
// itself, and of one with fewer bits. Covers sequence_logits.cpp.
#include "measure/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "measure/sequence_logits.h"
#include "quantize/quantize.h"
#include "tests/scratch_folder.h"

namespace cairn::measure::perplexity_test {
namespace {

using test::contents_of;
using test::ScratchFolder;

constexpr char kModel[] = CAIRN_SOURCE "/assets/nano.gguf";
constexpr int32_t kContext = 32;
constexpr char kText[] =
    "What is the capital of Norway? Oslo is the capital of Norway. My name is Ada. Hello Ada, it "
    "is good to meet you. What is my name? Your name is Ada. Count from one to five: one, two, "
    "three, four, five. The opposite of hot is cold, and the opposite of day is night. Spell the "
    "word river: r i v e r. Copy this: seven green apples lie on the table by the window.";

std::unique_ptr<Engine> load(const std::string& path) {
  const EngineOptions options{.thread_count = 2};
  return Engine::load(gguf::File::open(path).value(), fit_for_perplexity(options, kContext))
      .value();
}

// The text in whole chunks, and the work that they are.
struct Chunks {
  std::vector<Token> tokens;
  PerplexityWork work;

  explicit Chunks(const Engine& engine)
      : tokens(engine.tokenizer()->encode(kText, {.add_special = true})) {
    work.shape = {kContext, engine.size().vocabulary_count, int32_t(tokens.size()) / kContext};
    tokens.resize(size_t(kContext) * size_t(work.shape.chunk_count));
    work.tokens = tokens;
  }
};

TEST(Estimate, MeanAndStandardError) {
  const Estimate found = estimate({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(found.mean, 2.5);
  EXPECT_NEAR(found.error, std::sqrt(5.0 / 4 / 3), 1e-12);
  EXPECT_EQ(estimate({7}).error, 0);
}

// Chunks of 32 tokens, of which 16 to 30 are judged.
TEST(Perplexity, EqualsTheSumOverLogits) {
  const ScratchFolder folder;
  const auto engine = load(kModel);
  const Chunks chunks(*engine);
  const size_t chunk_count = size_t(chunks.work.shape.chunk_count);
  ASSERT_GE(chunk_count, 2u);
  auto report = measure_perplexity(*engine, chunks.work);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->chunk_count, int32_t(chunk_count));
  OutputFile out = OutputFile::open(folder.file("logits")).value();
  const auto bos = engine->tokenizer()->special_ids().bos;
  for (size_t chunk = 0; chunk < chunk_count; ++chunk) {
    const auto text = std::span(chunks.tokens).subspan(chunk * kContext, kContext);
    std::vector<Token> computed(text.begin(), text.end());
    if (bos && engine->tokenizer()->adds_bos()) computed[0] = *bos;
    ASSERT_TRUE(append_logits(*engine, computed, out));
  }
  ASSERT_TRUE(out.commit());
  const std::string bytes = contents_of(folder.file("logits"));
  const size_t vocabulary = size_t(engine->size().vocabulary_count);
  ASSERT_EQ(bytes.size(), chunks.tokens.size() * vocabulary * sizeof(float));
  double surprise = 0;
  int64_t count = 0;
  for (size_t i = 0; i < chunks.tokens.size(); ++i) {
    if (i % kContext < 16 || i % kContext == 31) continue;
    std::vector<float> row(vocabulary);
    std::memcpy(row.data(), bytes.data() + i * vocabulary * sizeof(float),
                vocabulary * sizeof(float));
    double total = 0;
    for (const float x : row) total += std::exp(double(x));
    surprise += std::log(total) - double(row[size_t(index_of(chunks.tokens[i + 1]))]);
    ++count;
  }
  EXPECT_EQ(report->token_count, count);
  EXPECT_NEAR(report->perplexity, std::exp(surprise / double(count)), 1e-3);
  EXPECT_GT(report->error, 0);
  EXPECT_FALSE(report->has_comparison);
}

// Chunk by chunk beside it, or all kept before: the figures are the same.
TEST(Perplexity, OfAProgramBesideTheWholeModel) {
  const auto whole = load(kModel);
  EngineOptions options{.thread_count = 2};
  options.program.skipped_layers = {1};
  const auto program =
      Engine::load(gguf::File::open(kModel).value(), fit_for_perplexity(options, kContext)).value();
  const Chunks chunks(*whole);
  const BothReports both = compare_perplexity(*whole, *program, chunks.work).value();
  const PerplexityReport alone = measure_perplexity(*whole, chunks.work).value();
  EXPECT_EQ(both.base.perplexity, alone.perplexity);
  EXPECT_EQ(both.base.error, alone.error);
  EXPECT_FALSE(both.base.has_comparison);
  EXPECT_GT(both.base.tokens_per_second, 0);
  EXPECT_GT(both.other.tokens_per_second, 0);
  const KeptLogits kept = keep_logits(*whole, chunks.work).value();
  EXPECT_EQ(kept.row_count(), both.base.token_count);
  const PerplexityReport against = measure_against(*program, chunks.work, kept).value();
  EXPECT_EQ(both.other.perplexity, against.perplexity);
  const Comparison& a = both.other.comparison;
  const Comparison& b = against.comparison;
  EXPECT_EQ(a.divergence.mean, b.divergence.mean);
  EXPECT_EQ(a.divergence_99, b.divergence_99);
  EXPECT_EQ(a.same_top.mean, b.same_top.mean);
  EXPECT_GT(a.divergence.mean, 0.01);
  EXPECT_LT(a.same_top.mean, 1);
  const PerplexityReport same = measure_against(*whole, chunks.work, kept).value();
  EXPECT_LT(std::abs(same.comparison.divergence.mean), 1e-4);
  EXPECT_NEAR(same.comparison.same_top.mean, 1, 1e-9);
}

TEST(Perplexity, DivergenceGrowsAsBitsGetFewer) {
  const ScratchFolder folder;
  const auto engine = load(kModel);
  Chunks chunks(*engine);
  OutputFile out = OutputFile::open(folder.file("logits")).value();
  LogitsWriter writer =
      LogitsWriter::open(std::move(out), chunks.work.shape, chunks.tokens).value();
  chunks.work.writer = &writer;
  int64_t told_tokens = 0;
  chunks.work.on_progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, told_tokens);
    EXPECT_LE(done, total);
    told_tokens = done;
  };
  auto alone = measure_perplexity(*engine, chunks.work);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(told_tokens, int64_t(chunks.tokens.size()));
  ASSERT_TRUE(writer.commit());
  const SavedLogits base = SavedLogits::open(folder.file("logits")).value();
  const auto compare_with = [&](const std::string& path) {
    auto report = measure_perplexity(
        *load(path), {.shape = base.shape(), .tokens = base.tokens(), .base = &base});
    EXPECT_TRUE(report) << report.error().message;
    return std::move(report).value();
  };
  const PerplexityReport same = compare_with(kModel);
  ASSERT_TRUE(same.has_comparison);
  EXPECT_NEAR(same.perplexity, alone->perplexity, 1e-9);
  // What is less likely than e^-16 is kept as that.
  EXPECT_GT(same.comparison.base_perplexity, 1);
  EXPECT_LT(same.comparison.base_perplexity, alone->perplexity * 1.001);
  EXPECT_LT(std::abs(same.comparison.divergence.mean), 1e-4);
  EXPECT_NEAR(same.comparison.same_top.mean, 1, 1e-9);
  double before = std::abs(same.comparison.divergence.mean);
  for (const std::string mix : {"Q8_0", "Q5_0", "Q3_K_S"}) {
    const std::string path = folder.file(mix + ".gguf");
    ASSERT_TRUE(quantize::quantize({.in_path = kModel, .out_path = path, .mix = mix}));
    const Comparison found = compare_with(path).comparison;
    if (mix != "Q8_0") {  // The model's own type may be that.
      EXPECT_GT(found.divergence.mean, before) << mix;
    }
    EXPECT_GE(found.divergence_max, found.divergence_99);
    EXPECT_GE(found.divergence_99, found.divergence_median);
    before = found.divergence.mean;
  }
  EXPECT_LT(before, 3);
}

// A damaged file must not become a report of "nan".
TEST(Perplexity, SavedLogitsThatAreNoNumbersAreErrors) {
  const ScratchFolder folder;
  const auto engine = load(kModel);
  Chunks chunks(*engine);
  const std::string path = folder.file("saved");
  OutputFile out = OutputFile::open(path).value();
  LogitsWriter writer =
      LogitsWriter::open(std::move(out), chunks.work.shape, chunks.tokens).value();
  chunks.work.writer = &writer;
  ASSERT_TRUE(measure_perplexity(*engine, chunks.work));
  ASSERT_TRUE(writer.commit());
  chunks.work.writer = nullptr;
  const std::string good = contents_of(path);
  const size_t vocabulary = size_t(chunks.work.shape.vocabulary);
  const size_t row_bytes = 8 + 2 * ((vocabulary + 1) / 2 * 2);
  for (const size_t field : {size_t(0), size_t(4)}) {
    for (const float value : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      std::string bad = good;
      std::memcpy(bad.data() + bad.size() - row_bytes + field, &value, sizeof value);
      test::write_to(path, bad);
      const SavedLogits base = SavedLogits::open(path).value();
      chunks.work.base = &base;
      const auto report = measure_perplexity(*engine, chunks.work);
      ASSERT_FALSE(report) << field << " " << value;
      EXPECT_EQ(report.error().code, ErrorCode::invalid_data);
      EXPECT_TRUE(report.error().message.starts_with("the logits to compare with: row "))
          << report.error().message;
    }
  }
}

}  // namespace
}  // namespace cairn::measure::perplexity_test
