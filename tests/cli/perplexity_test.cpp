// Perplexity and divergence: against the same sums made from `cairn logits`, of a model with
// itself, and of one with fewer bits; and files of saved logits. Covers saved_logits.cpp.
#include "cli/commands/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "cli/commands/load.h"
#include "cli/commands/logits.h"
#include "measure/saved_logits.h"
#include "quantize/quantize.h"
#include "tests/cli/run_program.h"

namespace cairn::cli {
namespace {

constexpr char kText[] =
    "What is the capital of Norway? Oslo is the capital of Norway. My name is Ada. Hello Ada, it "
    "is good to meet you. What is my name? Your name is Ada. Count from one to five: one, two, "
    "three, four, five. The opposite of hot is cold, and the opposite of day is night. Spell the "
    "word river: r i v e r. Copy this: seven green apples lie on the table by the window.";

TEST(Estimate, MeanAndStandardError) {
  const Estimate found = estimate({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(found.mean, 2.5);
  EXPECT_NEAR(found.error, std::sqrt(5.0 / 4 / 3), 1e-12);
  EXPECT_EQ(estimate({7}).error, 0);
}

TEST(SavedLogits, RowsComeBackWithinTheirStep) {
  const ScratchFolder folder;
  const std::string path = folder.file("logits");
  const measure::LogitsShape shape{.context = 8, .vocabulary = 101, .chunk_count = 2};
  std::vector<Token> tokens(16, Token(7));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  std::vector<std::vector<float>> rows(size_t(shape.row_count()) * 2);
  measure::LogitsWriter writer = measure::LogitsWriter::open(path, shape, tokens).value();
  for (auto& row : rows) {
    double total = 0;
    for (int i = 0; i < 101; ++i) row.push_back(normal(random));
    row[3] = -100;
    for (const float x : row) total += std::exp(double(x));
    ASSERT_TRUE(writer.append(row, std::log(total)));
    for (float& x : row) x = float(double(x) - std::log(total));
  }
  ASSERT_TRUE(writer.commit());
  const measure::SavedLogits saved = measure::SavedLogits::open(path).value();
  EXPECT_EQ(saved.shape().context, 8);
  EXPECT_EQ(saved.shape().vocabulary, 101);
  EXPECT_EQ(saved.tokens(), tokens);
  for (size_t r = 0; r < rows.size(); ++r) {
    const measure::SavedRow row = saved.row(int64_t(r));
    const float best = *std::max_element(rows[r].begin(), rows[r].end());
    for (size_t i = 0; i < 101; ++i) {
      const float expected = std::max(rows[r][i], best - 16);
      EXPECT_NEAR(row.log_probability(i), expected, 16.0 / 65535) << i;
    }
  }
  const std::string whole = contents_of(path);
  EXPECT_EQ(whole.size(), 20 + 64 + 6 * (8 + 2 * 102u));
  for (const size_t size : {size_t(1), size_t(19), size_t(50), whole.size() - 1}) {
    write_to(path, whole.substr(0, size));
    EXPECT_FALSE(measure::SavedLogits::open(path)) << size;
  }
  for (const size_t at : {0, 8, 11, 12, 15, 16, 19, 20}) {
    std::string broken = whole;
    broken[at] = char(0xff);
    write_to(path, broken);
    EXPECT_FALSE(measure::SavedLogits::open(path)) << at;
  }
}

// From logits that another command writes: chunks of 32 tokens, of which 16 to 30 are judged.
TEST(Perplexity, EqualsTheSumOverLogits) {
  const ScratchFolder folder;
  write_to(folder.file("text"), kText);
  PerplexityOptions options{.text_path = folder.file("text"), .context = 32};
  options.engine.thread_count = 2;
  auto report = measure_perplexity(options);
  ASSERT_TRUE(report) << report.error().message;
  const auto engine = load_engine("", options.engine).value();
  auto tokens = engine->tokenizer()->encode(kText, {.add_special = true});
  const size_t chunk_count = tokens.size() / 32;
  ASSERT_GE(chunk_count, 2u);
  EXPECT_EQ(report->chunk_count, int32_t(chunk_count));
  std::string lines;
  const auto bos = engine->tokenizer()->special_ids().bos;
  for (size_t i = 0; i < chunk_count * 32; ++i) {
    const bool is_first = i % 32 == 0 && bos && engine->tokenizer()->adds_bos();
    lines += fmt::format("{}{}", index_of(is_first ? *bos : tokens[i]), i % 32 == 31 ? "\n" : " ");
  }
  write_to(folder.file("tokens"), lines);
  LogitsOptions logits{.tokens_path = folder.file("tokens"), .out_path = folder.file("logits")};
  logits.engine = options.engine;
  ASSERT_TRUE(write_logits(logits));
  const std::string bytes = contents_of(folder.file("logits"));
  const size_t vocabulary = size_t(engine->size().vocabulary_count);
  ASSERT_EQ(bytes.size(), chunk_count * 32 * vocabulary * sizeof(float));
  double surprise = 0;
  int64_t count = 0;
  for (size_t i = 0; i < chunk_count * 32; ++i) {
    if (i % 32 < 16 || i % 32 == 31) continue;
    std::vector<float> row(vocabulary);
    std::memcpy(row.data(), bytes.data() + i * vocabulary * sizeof(float),
                vocabulary * sizeof(float));
    double total = 0;
    for (const float x : row) total += std::exp(double(x));
    surprise += std::log(total) - double(row[size_t(index_of(tokens[i + 1]))]);
    ++count;
  }
  EXPECT_EQ(report->token_count, count);
  EXPECT_NEAR(report->perplexity, std::exp(surprise / double(count)), 1e-3);
  EXPECT_GT(report->error, 0);
}

TEST(Perplexity, DivergenceGrowsAsBitsGetFewer) {
  const ScratchFolder folder;
  write_to(folder.file("text"), kText);
  const std::string model = CAIRN_SOURCE "/assets/nano.gguf";
  PerplexityOptions options{.model_path = model,
                            .text_path = folder.file("text"),
                            .context = 32,
                            .save_path = folder.file("logits")};
  options.engine.thread_count = 2;
  auto base = measure_perplexity(options);
  ASSERT_TRUE(base) << base.error().message;
  options.save_path.clear();
  options.kl_path = folder.file("logits");
  const auto compare_with = [&](const std::string& path) {
    options.model_path = path;
    auto report = measure_perplexity(options);
    EXPECT_TRUE(report) << report.error().message;
    return std::move(report).value();
  };
  const PerplexityReport same = compare_with(model);
  ASSERT_TRUE(same.has_comparison);
  EXPECT_NEAR(same.perplexity, base->perplexity, 1e-9);
  // What is less likely than e^-16 is kept as that.
  EXPECT_GT(same.comparison.base_perplexity, 1);
  EXPECT_LT(same.comparison.base_perplexity, base->perplexity * 1.001);
  EXPECT_LT(std::abs(same.comparison.divergence.mean), 1e-4);
  EXPECT_NEAR(same.comparison.same_top.mean, 1, 1e-9);
  double before = std::abs(same.comparison.divergence.mean);
  for (const std::string mix : {"Q8_0", "Q5_0", "Q3_K_S"}) {
    const std::string path = folder.file(mix + ".gguf");
    ASSERT_TRUE(quantize::quantize({.in_path = model, .out_path = path, .mix = mix}));
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

TEST(Perplexity, TheCommandAndItsMistakes) {
  const ScratchFolder folder;
  write_to(folder.file("text"), kText);
  Finished done =
      run_program({"perplexity", "-f", folder.file("text"), "-c", "32", "--json", "--chunks", "1"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("\"chunks\":1"), std::string::npos) << done.out;
  done = run_program({"perplexity", "-f", folder.file("text"), "-c", "32"});
  EXPECT_TRUE(done.out.starts_with("perplexity ")) << done.out;
  done = run_program({"perplexity", "-f", folder.file("text"), "-c", "4096"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_NE(done.err.find("expected at least"), std::string::npos) << done.err;
  done = run_program({"perplexity"});
  EXPECT_NE(done.err.find("--file: expected a value"), std::string::npos) << done.err;
  done = run_program({"perplexity", "--kl", folder.file("text")});
  EXPECT_NE(done.err.find("saved logits"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace cairn::cli
