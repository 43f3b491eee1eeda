// How many rows drafts get, on made-up machines; and that nobody is asked who has none.
#include "engine/schedule/draft_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <random>

namespace cairn::draft_rows_test {
namespace {

// Proposes tokens of one chance each, and notes what it is told.
class Proposer final : public DraftedAnswer {
 public:
  Proposer(float chance, size_t count) {
    float reach = 1;
    for (size_t i = 0; i < count; ++i) reach_.push_back(reach *= chance);
  }
  std::span<const float> propose(int32_t count_max) override {
    ++asked;
    return std::span(reach_).first(std::min(reach_.size(), size_t(std::max(count_max, 0))));
  }
  void check(int32_t count) override { checked = count; }
  int32_t take(const StepOutputs&) override { return 1; }
  void learn(double step_seconds, double plain_seconds) override {
    seconds = step_seconds;
    plain = plain_seconds;
  }

  int asked = 0;
  int32_t checked = -1;
  double seconds = 0, plain = 0;

 private:
  std::vector<float> reach_;
};

constexpr DecodeLoad kOne{.sequences = 1, .positions = 100};

// A step takes 10 ms, and each row of it beyond the eighth 2 ms more.
double machine(int32_t rows) {
  return 0.010 + 0.002 * std::max(rows - 8, 0);
}

void step(DraftRows& rows, std::span<Proposer* const> answers) {
  rows.begin(64);
  for (Proposer* answer : answers) rows.add(answer, 100);
  rows.choose();
  int32_t count = 0;
  for (size_t i = 0; i < answers.size(); ++i) count += rows.rows(i);
  rows.learn(machine(count), 0);
}

TEST(DraftRows, AreAsManyAsPay) {
  Proposer sure(1.0f, 40), unsure(0.5f, 40);
  for (const auto& [answer, least, most] : {std::tuple(&sure, 7, 40), std::tuple(&unsure, 3, 12)}) {
    DraftRows rows;
    for (int i = 0; i < 60; ++i) step(rows, std::span(&answer, 1));
    EXPECT_GE(answer->checked, least);
    EXPECT_LE(answer->checked, most);
    EXPECT_NEAR(answer->plain, 0.010, 1e-9);
    EXPECT_NEAR(answer->seconds, machine(1 + answer->checked), 1e-9);
  }
}

// Each thirtieth step is held up for the time of a dozen others, as machines do whose memory is
// lent or whose cores are taken away. Drafts gain nearly what the best number of rows would, in the
// time that the other steps take, and from the first steps on.
TEST(DraftRows, GainOnAMachineThatStallsNowAndThen) {
  constexpr double kRight = 0.975;  // Of each token.
  const auto seconds = [](int32_t count) { return 0.0085 + 0.0012 * count; };
  const auto tokens_of = [](int32_t count) { return (1 - std::pow(kRight, count)) / (1 - kRight); };
  double best = 0;
  for (int32_t count = 1; count <= 48; ++count) {
    best = std::max(best, tokens_of(count) / seconds(count));
  }
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> chance(0, 1);
    DraftRows rows;
    Proposer proposer(float(kRight), 47);
    double time = 0, tokens = 0;
    for (int i = 0; i < 80; ++i) {
      rows.begin(48);
      rows.add(&proposer, 100);
      rows.choose();
      const int32_t count = rows.rows(0);
      const bool stalls = chance(random) < 1.0 / 30 || int32_t(seed % 5) == i;
      rows.learn(seconds(count) + (stalls ? 0.120 : 0), 0);
      time += seconds(count);
      tokens += tokens_of(count);
    }
    EXPECT_GT(tokens / time, 0.85 * best) << "seed " << seed;
  }
}

// While others use the machine, and behind a long text, rows are dear. Where they are cheap again,
// that is found out, though steps without drafts take as long as before.
TEST(DraftRows, AreTriedAgainAfterTheyWereDear) {
  for (const int32_t length_then : {100, 20000}) {
    std::mt19937 random(7);
    std::normal_distribution<double> noise(1, 0.04);
    DraftRows rows;
    Proposer proposer(0.8f, 8);
    const auto mean_count = [&](int32_t length, double row_seconds, int32_t steps) {
      double sum = 0;
      for (int32_t i = 0; i < steps; ++i) {
        rows.begin(48);
        rows.add(&proposer, length);
        rows.choose();
        sum += rows.rows(0) - 1;
        rows.learn((0.020 + row_seconds * (rows.rows(0) - 1)) * noise(random), 0);
      }
      return sum / steps;
    };
    EXPECT_LT(mean_count(length_then, 0.015, 600), 2);
    mean_count(100, 0.001, 300);
    EXPECT_GT(mean_count(100, 0.001, 100), 5);
  }
}

// What drafts are worth is not known before a step without any.
TEST(DraftRows, BeginWithAPlainStep) {
  DraftRows rows;
  Proposer sure(1.0f, 8);
  Proposer* const one = &sure;
  step(rows, std::span(&one, 1));
  EXPECT_EQ(sure.asked, 0);
  EXPECT_EQ(rows.draft_count(), 0);
  step(rows, std::span(&one, 1));
  EXPECT_EQ(sure.asked, 1);
  EXPECT_GT(rows.draft_count(), 0);
}

TEST(DraftRows, ThoseOfOthersStayWhereOneHasNone) {
  DraftRows rows;
  Proposer sure(1.0f, 8);
  for (int i = 0; i < 20; ++i) {
    rows.begin(64);
    rows.add(nullptr, 100);
    rows.add(&sure, 100);
    rows.choose();
    EXPECT_EQ(rows.rows(0), 1);
    rows.learn(machine(rows.rows(0) + rows.rows(1)), 0);
  }
  EXPECT_GT(rows.rows(1), 2);
}

// A runner takes so many rows and no more.
TEST(DraftRows, StayWithinTheStep) {
  DraftRows rows(true);
  Proposer first(1.0f, 40), second(1.0f, 40);
  rows.begin(17);
  rows.add(&first, 100);
  rows.add(&second, 100);
  rows.choose();
  EXPECT_EQ(rows.rows(0) + rows.rows(1), 17);
}

TEST(DraftRows, ForgetAStepThatWasNotMade) {
  DraftRows rows;
  Proposer sure(1.0f, 8);
  Proposer* const one = &sure;
  for (int i = 0; i < 3; ++i) step(rows, std::span(&one, 1));
  sure.seconds = -1;
  rows.begin(64);
  rows.add(&sure, 100);
  rows.choose();
  rows.forget();
  rows.learn(5, 0);
  EXPECT_EQ(sure.seconds, -1);
}

// Steps that had to replay states say nothing of what a step without drafts takes.
TEST(DraftRows, LearnNoPlainStepFromReplays) {
  DraftRows rows;
  Proposer sure(1.0f, 8);
  for (int i = 0; i < 2; ++i) {
    rows.begin(64);
    rows.add(&sure, 100);
    rows.choose();
    rows.learn(0.010, 5);
  }
  EXPECT_EQ(sure.asked, 0);
}

TEST(DecodeTime, GuessesRowsBetweenOthersAndALittleFurther) {
  DecodeTime time;
  EXPECT_EQ(time.seconds(kOne, 1), 0);
  time.learn(kOne, 1, 0.010);
  EXPECT_EQ(time.seconds(kOne, 1), 0.010);
  EXPECT_NEAR(time.seconds(kOne, 3), 0.0108, 1e-9);
  EXPECT_EQ(time.seconds(kOne, 4), 0);
  for (int i = 0; i < 3; ++i) time.learn(kOne, 9, 0.018);
  EXPECT_NEAR(time.seconds(kOne, 5), 0.014, 1e-9);
  EXPECT_NEAR(time.seconds(kOne, 9), 0.018, 1e-9);
  EXPECT_NEAR(time.seconds(kOne, 12), 0.021, 1e-9);
  EXPECT_EQ(time.seconds(kOne, 20), 0);
  EXPECT_EQ(time.seconds({.sequences = 4, .positions = 400}, 4), 0);
}

// But for what one step more or less than expected tells of all others.
bool is_about(double seconds, double expected) {
  return std::abs(seconds - expected) < 0.03 * expected;
}

// One slow step must not hide all sizes behind it.
TEST(DecodeTime, ThinksThatTheNextRowMayBeCheaper) {
  DecodeTime time;
  time.learn(kOne, 1, 0.010);
  time.learn(kOne, 4, 0.012);
  for (int i = 0; i < 3; ++i) time.learn(kOne, 5, 0.022);
  // As dear as rows were on average.
  EXPECT_PRED2(is_about, time.seconds(kOne, 7), 0.028);
  // The first one above a known one.
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.010 + 0.75 * 0.0004);
  EXPECT_PRED2(is_about, time.seconds(kOne, 3), 0.010 + 2 * 0.002 / 3);
  for (int i = 0; i < 3; ++i) time.learn(kOne, 9, 0.050);
  EXPECT_PRED2(is_about, time.seconds(kOne, 6), 0.022 + 0.75 * 0.003);
  EXPECT_PRED2(is_about, time.seconds(kOne, 7), 0.022 + 2 * 0.007);
  EXPECT_EQ(time.seconds(kOne, 20), 0);
}

// A number of rows that was dear long ago is tried again, and one step says that it no longer is.
TEST(DecodeTime, IsForgottenAfterAWhile) {
  DecodeTime time;
  for (int i = 0; i < 4; ++i) {
    time.learn(kOne, 1, 0.020);
    time.learn(kOne, 2, 0.080);
  }
  for (int i = 0; i < 250; ++i) time.learn(kOne, 1, 0.020);
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.080);
  for (int i = 0; i < 10; ++i) time.learn(kOne, 1, 0.020);
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.020 + 0.75 * 0.0008);
  time.learn(kOne, 2, 0.024);
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.024);
}

// A step that was held up is no measure of those with fewer rows, nor, while it is the only one, of
// those with as many.
TEST(DecodeTime, TakesTheLeastOfAsManyRowsAndMore) {
  DecodeTime time;
  time.learn(kOne, 1, 0.100);
  time.learn(kOne, 4, 0.012);
  EXPECT_PRED2(is_about, time.seconds(kOne, 1), 0.012);
  time.learn(kOne, 1, 0.010);
  time.learn(kOne, 2, 0.300);
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.012);
  time.learn(kOne, 8, 0.300);
  EXPECT_PRED2(is_about, time.seconds(kOne, 8), 0.022);
  for (int i = 0; i < 2; ++i) time.learn(kOne, 8, 0.300);
  EXPECT_PRED2(is_about, time.seconds(kOne, 8), 0.300);
}

// Behind more and more tokens steps of as many rows take longer and longer. What those of other
// numbers of rows take, which are seldom tried, is known from them.
TEST(DecodeTime, FollowsATextThatBecomesLonger) {
  DecodeTime time;
  const auto learn = [&](int32_t rows, double longer) {
    time.learn(kOne, rows, (0.010 + 0.001 * rows) * longer);
  };
  for (const int32_t rows : {1, 2, 4, 8, 16}) {
    for (int i = 0; i < 4; ++i) learn(rows, 1);
  }
  for (int i = 1; i <= 120; ++i) learn(i % 3 == 0 ? 1 : 4, 1 + i / 400.0);
  EXPECT_PRED2(is_about, time.seconds(kOne, 4), 0.014 * 1.3);
  for (const int32_t rows : {8, 16}) {
    EXPECT_GT(time.seconds(kOne, rows), (0.010 + 0.001 * rows) * 1.15);
    EXPECT_LT(time.seconds(kOne, rows), (0.010 + 0.001 * rows) * 1.3);
  }
}

// Rows of long texts attend to more. What they take says nothing of short texts; but of long ones
// those that are somewhat shorter say something.
TEST(DecodeTime, IsKnownByTheLengthOfTexts) {
  DecodeTime time;
  const auto of = [](int32_t sequences, int64_t length) {
    return DecodeLoad{.sequences = sequences, .positions = sequences * length};
  };
  const auto learn = [&](const DecodeLoad& load, double plain, double row) {
    for (int i = 0; i < 4; ++i) {
      for (const int32_t rows : {0, 1, 4}) {
        time.learn(load, load.sequences + rows, plain + row * rows);
      }
    }
  };
  learn(of(1, 6000), 0.030, 0.010);
  EXPECT_EQ(time.seconds(of(1, 1000), 1), 0);
  EXPECT_PRED2(is_about, time.seconds(of(1, 100000), 5), 0.070);
  EXPECT_EQ(time.seconds(of(2, 6000), 2), 0);
  learn(of(1, 1000), 0.020, 0.001);
  EXPECT_PRED2(is_about, time.seconds(of(1, 1), 5), 0.024);
  EXPECT_PRED2(is_about, time.seconds(of(1, 3000), 5), 0.024);
  EXPECT_PRED2(is_about, time.seconds(of(1, 6000), 5), 0.070);
  // Once steps of a length were made, they alone say what it takes.
  learn(of(1, 100000), 0.200, 0.100);
  EXPECT_PRED2(is_about, time.seconds(of(1, 100000), 5), 0.600);
  EXPECT_PRED2(is_about, time.seconds(of(1, int64_t(1) << 40), 5), 0.600);
  EXPECT_PRED2(is_about, time.seconds(of(1, 6000), 5), 0.070);
}

// Two rows that take now more, now less say nothing of sixty: these stay what they were, and none
// ever takes less than nothing.
TEST(DecodeTime, StaysWhatItIsOnANoisyMachine) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.1);
  DecodeTime time;
  const auto of = [](int32_t rows) { return 0.010 + 0.0004 * rows; };
  for (const int32_t rows : {1, 2, 8, 64}) {
    for (int i = 0; i < 4; ++i) time.learn(kOne, rows, of(rows));
  }
  for (int i = 0; i < 1000; ++i) {
    const int32_t rows = 1 + i % 2;
    time.learn(kOne, rows, of(rows) * std::exp(noise(random)));
    // Now and then, as what is not tried for long is not known any more.
    if (i % 100 == 99) {
      for (const int32_t other : {8, 64}) time.learn(kOne, other, of(other));
    }
    for (const int32_t other : {1, 2, 8, 64}) ASSERT_GT(time.seconds(kOne, other), 0.5 * 0.010);
  }
  EXPECT_GT(time.seconds(kOne, 64), 0.6 * of(64));
  EXPECT_LT(time.seconds(kOne, 64), 1.7 * of(64));
  for (int i = 0; i < 4; ++i) {
    for (const int32_t rows : {1, 2}) time.learn(kOne, rows, 0.1 * of(rows));
    for (const int32_t other : {1, 2, 8, 64}) ASSERT_GT(time.seconds(kOne, other), 0);
  }
}

// What others did to the memory while a number of rows was tried says nothing of now: rows cost as
// much more than a plain step as they did then, or less.
TEST(DecodeTime, FollowsAMemoryThatBecomesFaster) {
  DecodeTime time;
  const auto learn = [&](int32_t rows, double seconds) {
    for (int i = 0; i < 4; ++i) time.learn(kOne, rows, seconds);
  };
  learn(1, 0.016);
  learn(2, 0.017);
  learn(8, 0.038);
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.017);
  learn(1, 0.012);
  EXPECT_PRED2(is_about, time.seconds(kOne, 2), 0.013);
  EXPECT_PRED2(is_about, time.seconds(kOne, 8), 0.034);
  // Arithmetic is as slow as it was: the next steps say so.
  learn(8, 0.038);
  EXPECT_PRED2(is_about, time.seconds(kOne, 8), 0.038);
  // And where memory becomes slower, rows that were fast do for a try.
  learn(1, 0.020);
  EXPECT_NEAR(time.seconds(kOne, 8), 0.038, 0.0015);
}

}  // namespace
}  // namespace cairn::draft_rows_test
