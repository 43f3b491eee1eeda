// What may be lost is 1.5 %, 20 ms or a step, and one row.
#include "draft/account.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::draft::account_test {
namespace {

constexpr double kPlain = 0.01;

void useless_step(Account& account, int32_t checked) {
  account.add_step({.checked = checked,
                    .accepted = 0,
                    .seconds = kPlain * (1 + 0.2 * checked),
                    .plain_seconds = kPlain});
}
void plain_step(Account& account) {
  account.add_step({.checked = 0, .accepted = 0, .seconds = kPlain, .plain_seconds = kPlain});
}

TEST(Account, LosesNoMoreThanItMay) {
  Account account;
  double elapsed = 0;
  for (int step = 0; step < 5000; ++step) {
    if (account.is_off()) {
      plain_step(account);
      elapsed += kPlain;
    } else {
      const int32_t checked = std::min(account.count_max(), 16);
      useless_step(account, checked);
      elapsed += kPlain * (1 + 0.2 * checked);
    }
    // A row of a draft is always allowed: 2 ms.
    EXPECT_LE(-account.saved_seconds(), 0.0101 + 0.015 * elapsed + 0.002) << step;
  }
  EXPECT_TRUE(account.is_off());
}

TEST(Account, SlowStepsAreRiskedOneRowAtATime) {
  Account account;
  EXPECT_EQ(account.count_max(), 4);
  account.add_step({.seconds = 0.2, .plain_seconds = 0.2});
  EXPECT_EQ(account.count_max(), 1);
  // What was gained may be risked.
  for (int i = 0; i < 4; ++i) {
    account.add_step({.checked = 1, .accepted = 1, .seconds = 0.21, .plain_seconds = 0.2});
  }
  EXPECT_GT(account.count_max(), 10);
}

// The machine holds up the first step with drafts: for want of better ones, most of what follows
// would be worth little after that, and is compared all the same.
TEST(Account, OneSlowStepDoesNotKeepDraftsAway) {
  Account account;
  for (int i = 0; i < 3; ++i) plain_step(account);
  account.add_step({.checked = 1, .accepted = 0, .seconds = 2.2 * kPlain, .plain_seconds = kPlain});
  ASSERT_TRUE(account.is_off());
  const std::vector<float> reach = {.85f, .8f, .75f, .7f, .65f, .6f};
  for (int step = 0; step < 60 && account.is_off(); ++step) {
    const int32_t count = account.worth(reach);
    ASSERT_GT(count, 0);
    if (step % 6 == 0) account.add_shadow(count, count);
    plain_step(account);
  }
  EXPECT_FALSE(account.is_off());
}

TEST(Account, AStepWithoutDraftsSaysWhatAPlainOneTakes) {
  // 20 ms and 1.5 %, a quarter of a step for each row.
  Account account, other;
  account.add_step({.seconds = 0.2});
  EXPECT_EQ(account.count_max(), 1);
  // Of a step with drafts only what is said about one without.
  other.add_step({.checked = 2, .seconds = 0.2});
  EXPECT_EQ(other.count_max(), 4);
}

TEST(Account, GainsRepayLossesAndAreCreditForAWhile) {
  Account account;
  for (int i = 0; i < 4; ++i) useless_step(account, 1);
  EXPECT_FALSE(account.is_off());
  for (int i = 0; i < 100; ++i) {
    account.add_step({.checked = 1, .accepted = 1, .seconds = 0.012, .plain_seconds = kPlain});
  }
  EXPECT_NEAR(account.saved_seconds(), 100 * 0.008 - 4 * 0.002, 1e-9);
  int steps = 0;
  for (; !account.is_off(); ++steps) useless_step(account, 1);
  // A step and 1.5 % of some 3 s, and 32 steps, at 2 ms a step; all that was gained were 400.
  EXPECT_NEAR(steps, 190, 10);
}

TEST(Account, LookingForDraftsCostsTooAndEndsNearlyWhenOff) {
  Account account;
  int looked = 0;
  for (int step = 0; step < 20000; ++step) {
    if (account.may_look()) {
      account.add_drafting(0.001);  // A tenth of a step.
      ++looked;
    }
    plain_step(account);
  }
  EXPECT_TRUE(account.is_off());
  EXPECT_LE(looked * 0.001, 0.015 * 20000 * kPlain + 0.02);
  EXPECT_GE(looked * 0.001, 0.003 * 20000 * kPlain);
}

TEST(Account, APartOfThePromptsTimeMayBeLostToo) {
  Account account;
  account.add_elapsed(10);
  account.add_drafting(0.15);
  plain_step(account);
  EXPECT_FALSE(account.is_off());
  account.add_drafting(0.02);
  plain_step(account);
  EXPECT_TRUE(account.is_off());
}

// It is told as lost, and ends nothing.
TEST(Account, ReadingEndsNoDrafts) {
  Account account;
  account.add_reading(1);
  plain_step(account);
  EXPECT_FALSE(account.is_off());
  EXPECT_DOUBLE_EQ(account.saved_seconds(), -1);
  EXPECT_DOUBLE_EQ(account.plain_seconds(), kPlain);
  const int32_t rows = account.count_max();
  account.add_reading(1);
  EXPECT_GE(account.count_max(), rows);
  // A second and a half percent of these two, and a step.
  account.add_drafting(0.041);
  plain_step(account);
  EXPECT_TRUE(account.is_off());
}

TEST(Account, ReturnsWhereDraftsWouldHaveGained) {
  Account account;
  while (!account.is_off()) useless_step(account, 1);
  for (int i = 0; i < 1000; ++i) {
    account.add_shadow(1, 0);
    plain_step(account);
  }
  EXPECT_TRUE(account.is_off());
  for (int i = 0; i < 20; ++i) {
    account.add_shadow(1, 1);
    plain_step(account);
  }
  EXPECT_FALSE(account.is_off());
}

TEST(Account, EachReturnThatGainsNothingDoublesTheWait) {
  Account account;
  std::vector<int> waits;
  while (waits.size() < 5) {
    while (!account.is_off()) useless_step(account, 8);
    int wait = 0;
    for (; account.is_off(); ++wait) {
      account.add_shadow(1, 1);
      plain_step(account);
    }
    waits.push_back(wait);
  }
  // The first ones wait for the account instead, which allows no more than 1.5 %.
  EXPECT_GE(waits[3], 256);
  EXPECT_GE(waits[4], 512);
  // One that gained begins anew.
  for (int i = 0; i < 100; ++i) {
    account.add_step({.checked = 1, .accepted = 1, .seconds = 0.012, .plain_seconds = kPlain});
  }
  while (!account.is_off()) useless_step(account, 1);
  int wait = 0;
  for (; account.is_off(); ++wait) {
    account.add_shadow(1, 1);
    plain_step(account);
  }
  EXPECT_LE(wait, 40);
}

TEST(Account, WorthIsWhereTheSumOfGainsIsLargest) {
  Account account;
  // A row costs a fifth of a step.
  for (int i = 0; i < 30; ++i) useless_step(account, 1);
  EXPECT_EQ(account.worth(std::vector<float>{.9f, .5f, .21f, .19f}), 3);
  EXPECT_EQ(account.worth(std::vector<float>{.1f}), 0);
  EXPECT_EQ(account.worth({}), 0);
}

TEST(Account, StepsOfUnknownCostAreCountedAsTime) {
  Account account;
  for (int i = 0; i < 100; ++i) account.add_step({.checked = 1, .accepted = 0, .seconds = 1});
  EXPECT_EQ(account.saved_seconds(), 0);
  EXPECT_FALSE(account.is_off());
}

}  // namespace
}  // namespace cairn::draft::account_test
