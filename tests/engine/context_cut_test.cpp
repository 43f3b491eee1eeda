// Which turns of a text that is too long go: by hand, and as rules that hold for all texts.
#include "engine/context_cut.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cairn::context_cut_test {
namespace {

constexpr ContextLimits kLimits{.context_tokens = 64};

TEST(ContextCut, TextsWithoutTurnsLoseHalvesOfTheRoom) {
  const ContextLimits limits{.context_tokens = 64, .keep_tokens = 10};
  for (int64_t count = 1; count < 1000; ++count) {
    const ContextCut cut = cut_context(count, {}, limits);
    const int64_t excess = std::max<int64_t>(count - 64, 0);
    EXPECT_EQ(cut.left_out, (excess + 26) / 27 * 27) << count;
    EXPECT_EQ(cut.kept, 10);
    EXPECT_EQ(cut.turns, 0);
  }
}

TEST(ContextCut, WholeTurnsGoAndTheSystemMessageStays) {
  const std::vector<int32_t> starts = {6, 20, 34, 48, 62};
  const ContextCut none = cut_context(64, starts, kLimits);
  EXPECT_EQ(none.left_out, 0);
  EXPECT_EQ(none.turns, 0);
  // Half of the 58 behind the system message, up to the next message: 35 is in the third turn.
  const ContextCut cut = cut_context(65, starts, kLimits);
  EXPECT_EQ(cut.kept, 6);
  EXPECT_EQ(cut.kept + cut.left_out, 48);
  EXPECT_EQ(cut.turns, 3);
  // The last turn is long: the others go, also where they are less than half of the room.
  const std::vector<int32_t> long_last = {6, 12, 20};
  EXPECT_EQ(cut_context(65, long_last, kLimits).left_out, 14);
  EXPECT_EQ(cut_context(65, long_last, kLimits).turns, 2);
  // One turn alone that is too long loses a part.
  const ContextCut part = cut_context(200, std::vector<int32_t>{6}, kLimits);
  EXPECT_EQ(part.kept, 6);
  EXPECT_EQ(part.left_out, 5 * 29);
  EXPECT_EQ(part.turns, 0);
}

TEST(ContextCut, WhatIsToBeKeptEndsWithATurnWhereThatIsNear) {
  const std::vector<int32_t> starts = {6, 20, 34, 48, 62};
  EXPECT_EQ(cut_context(65, starts, {64, 3}).kept, 6);
  EXPECT_EQ(cut_context(65, starts, {64, 6}).kept, 6);
  EXPECT_EQ(cut_context(65, starts, {64, 7}).kept, 20);
  EXPECT_EQ(cut_context(65, starts, {64, 30}).kept, 30) << "34 is more than half of the context";
  // A system message that fills the context cannot stay.
  EXPECT_EQ(cut_context(80, std::vector<int32_t>{62}, kLimits).kept, 62);
  EXPECT_EQ(cut_context(80, std::vector<int32_t>{63}, kLimits).kept, 0);
}

TEST(ContextCut, RulesHoldForAllTexts) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const ContextLimits limits{.context_tokens = 4 + int32_t(random() % 90), .keep_tokens = 0};
    std::vector<int32_t> all;
    int32_t length = int32_t(random() % 20);
    while (length < 600) {
      all.push_back(length);
      length += 1 + int32_t(random() % (1 + random() % 120));
    }
    ContextCut last;
    for (int32_t count = 1; count < 600; ++count) {
      std::vector<int32_t> starts;
      for (const int32_t start : all) {
        if (start < count) starts.push_back(start);
      }
      const ContextCut cut = cut_context(count, starts, limits);
      const int32_t begin = cut.kept + cut.left_out;
      const auto is_start = [&](int32_t at) {
        return std::find(starts.begin(), starts.end(), at) != starts.end();
      };
      ASSERT_LE(count - cut.left_out, limits.context_tokens);
      ASSERT_GT(count, begin);
      ASSERT_GE(cut.left_out, last.left_out);
      if (cut.left_out == 0) continue;
      // It moves when the context is full, or from the inside of a turn to the next one.
      if (last.left_out > 0 && cut.left_out != last.left_out) {
        const bool was_full = count - last.left_out > limits.context_tokens;
        ASSERT_TRUE(was_full || (!is_start(last.kept + last.left_out) && is_start(begin))) << count;
      }
      // A part of a turn goes only where the last turn alone is too long.
      const bool has_first = !starts.empty() && cut.kept == starts.front();
      if (has_first && !is_start(begin)) {
        ASSERT_GT(begin, starts.back());
      }
      last = cut;
    }
  }
}

}  // namespace
}  // namespace cairn::context_cut_test
