// Files of saved logits: rows within a step of their codes, and files that are not whole.
#include "measure/saved_logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/scratch_folder.h"

namespace cairn::measure::saved_logits_test {
namespace {

using test::contents_of;
using test::ScratchFolder;
using test::write_to;

TEST(SavedLogits, RowsComeBackWithinTheirStep) {
  const ScratchFolder folder;
  const std::string path = folder.file("logits");
  const LogitsShape shape{.context = 8, .vocabulary = 101, .chunk_count = 2};
  std::vector<Token> tokens(16, Token(7));
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  std::vector<std::vector<float>> rows(size_t(shape.row_count()) * 2);
  KeptLogits kept(101);
  LogitsWriter writer = LogitsWriter::open(OutputFile::open(path).value(), shape, tokens).value();
  for (auto& row : rows) {
    double total = 0;
    for (int i = 0; i < 101; ++i) row.push_back(normal(random));
    row[3] = -100;
    for (const float x : row) total += std::exp(double(x));
    ASSERT_TRUE(writer.append(row, std::log(total)));
    kept.append(row, std::log(total));
    for (float& x : row) x = float(double(x) - std::log(total));
  }
  ASSERT_TRUE(writer.commit());
  const SavedLogits saved = SavedLogits::open(path).value();
  EXPECT_EQ(saved.shape().context, 8);
  EXPECT_EQ(saved.shape().vocabulary, 101);
  EXPECT_EQ(saved.tokens(), tokens);
  for (size_t r = 0; r < rows.size(); ++r) {
    const SavedRow row = saved.row(int64_t(r)), other = kept.row(int64_t(r));
    EXPECT_EQ(row.scale, other.scale);
    EXPECT_EQ(row.lowest, other.lowest);
    EXPECT_TRUE(std::equal(row.codes.begin(), row.codes.end(), other.codes.begin()));
    const float best = *std::max_element(rows[r].begin(), rows[r].end());
    for (size_t i = 0; i < 101; ++i) {
      const float expected = std::max(rows[r][i], best - 16);
      EXPECT_NEAR(row.log_probability(i), expected, 16.0 / 65535) << i;
    }
  }
  EXPECT_EQ(kept.row_count(), int64_t(rows.size()));
  kept.clear();
  EXPECT_EQ(kept.row_count(), 0);
  const std::string whole = contents_of(path);
  EXPECT_EQ(whole.size(), 20 + 64 + 6 * (8 + 2 * 102u));
  for (const size_t size : {size_t(1), size_t(19), size_t(50), whole.size() - 1}) {
    write_to(path, whole.substr(0, size));
    EXPECT_FALSE(SavedLogits::open(path)) << size;
  }
  for (const size_t at : {0, 8, 11, 12, 15, 16, 19, 20}) {
    std::string broken = whole;
    broken[at] = char(0xff);
    write_to(path, broken);
    EXPECT_FALSE(SavedLogits::open(path)) << at;
  }
}

}  // namespace
}  // namespace cairn::measure::saved_logits_test
