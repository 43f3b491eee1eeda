// Timelines on runtimes that can do little: whatever was rewound, forked, cancelled or failed, the
// logits are those of a new session that reads the same tokens in the same chunks.
#include "runtimes/timeline.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/runtimes/contract.h"
#include "tests/runtimes/fake_runtime.h"

namespace cairn::timeline_test {
namespace {

using runtimes::Exactness;
using runtimes::History;
using runtimes::Timeline;
using test::FakeRuntime;
using test::fresh_logits;
using test::measured;
using test::same_bits;

constexpr uint32_t kRewinds = runtimes::kRewinds, kSnapshots = runtimes::kSnapshots;

TEST(Timeline, ClaimsAreWhatTenThousandProgramsMeasure) {
  for (const uint32_t capabilities : {0u, kRewinds, kSnapshots, kRewinds | kSnapshots}) {
    SCOPED_TRACE(capabilities);
    FakeRuntime by_chunks({.capabilities = capabilities});
    EXPECT_EQ(measured(by_chunks, 2500), Exactness::replay);
    FakeRuntime exact(
        {.capabilities = capabilities, .claimed = Exactness::bitwise, .depends_on_chunks = false});
    EXPECT_EQ(measured(exact, 500), Exactness::bitwise);
  }
}

// The measurement finds claims that are too high.
TEST(Timeline, ClaimsThatAreTooHighAreFound) {
  FakeRuntime lossy({.has_lossy_snapshots = true});
  EXPECT_EQ(measured(lossy, 2000), Exactness::none);
  FakeRuntime by_chunks({.claimed = Exactness::bitwise});
  EXPECT_LT(measured(by_chunks, 2000), Exactness::bitwise);
}

std::vector<Token> some_tokens(size_t count) {
  std::vector<Token> tokens;
  for (size_t index = 0; index < count; ++index) tokens.push_back(Token(index * 7 % 16));
  return tokens;
}

std::unique_ptr<Timeline> opened(FakeRuntime& runtime) {
  auto timeline = Timeline::open(&runtime);
  EXPECT_TRUE(timeline);
  return std::move(*timeline);
}

TEST(Timeline, CostsAreWhatIsRead) {
  const auto tokens = some_tokens(30);
  FakeRuntime bare({.capabilities = 0});
  auto timeline = opened(bare);
  for (const size_t end : {10u, 20u, 30u}) {
    ASSERT_TRUE(timeline->become(std::span(tokens).first(end)));
  }
  EXPECT_EQ(bare.token_count, 30u);
  EXPECT_EQ(timeline->cost_of_position(25).forward_tokens(), 25u);
  EXPECT_TRUE(timeline->cost_of_position(25).is_replayed);
  ASSERT_TRUE(timeline->rewind(25));
  EXPECT_EQ(bare.token_count, 55u);
  EXPECT_EQ(timeline->history().ends, (std::vector<size_t>{10, 20, 25}));

  FakeRuntime rewinds({.capabilities = kRewinds});
  timeline = opened(rewinds);
  for (const size_t end : {10u, 20u, 30u}) {
    ASSERT_TRUE(timeline->become(std::span(tokens).first(end)));
  }
  auto cost = timeline->rewind(25);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->resume, 20u);
  EXPECT_FALSE(cost->is_replayed);
  EXPECT_EQ(rewinds.token_count, 35u);

  FakeRuntime snapshots({.capabilities = kSnapshots});
  timeline = opened(snapshots);
  ASSERT_TRUE(timeline->become(std::span(tokens).first(10)));
  auto snapshot = timeline->snapshot();
  ASSERT_TRUE(snapshot);
  ASSERT_TRUE(timeline->become(tokens));
  cost = timeline->rewind(25);
  ASSERT_TRUE(cost);
  EXPECT_EQ(cost->resume, 10u);
  EXPECT_GT(cost->copy_bytes, 0u);
  EXPECT_EQ(snapshots.token_count, 45u);
}

TEST(Timeline, FailuresLeaveItAsItWas) {
  const auto tokens = some_tokens(40);
  for (const uint32_t capabilities : {0u, kRewinds, kSnapshots, kRewinds | kSnapshots}) {
    for (const bool loses_all : {false, true}) {
      for (int fails_at = 2; fails_at < 5; ++fails_at) {
        FakeRuntime runtime({.capabilities = capabilities,
                             .fails_at = fails_at,
                             .loses_all_on_failure = loses_all});
        auto timeline = opened(runtime);
        ASSERT_TRUE(timeline->become(std::span(tokens).first(10)));
        ASSERT_TRUE(timeline->become(std::span(tokens).first(20)));
        int failure_count = 0;
        const auto check = [&](auto change) {
          const History history = timeline->history();
          if (change()) return;
          ++failure_count;
          EXPECT_EQ(timeline->history().tokens, history.tokens);
          EXPECT_EQ(timeline->history().ends, history.ends);
        };
        for (const size_t position : {15u, 12u, 5u}) {
          check([&] { return bool(timeline->rewind(position)); });
        }
        check([&] { return bool(timeline->become(tokens)); });
        EXPECT_EQ(failure_count, 1);
        ASSERT_TRUE(timeline->become(tokens));
        runtime.switches.fails_at = -1;
        EXPECT_TRUE(same_bits(timeline->logits(), fresh_logits(runtime, timeline->history())));
      }
    }
  }
}

TEST(Timeline, CancelledCallsLeaveItAsItWas) {
  const auto tokens = some_tokens(20);
  for (const bool cancels_late : {false, true}) {
    FakeRuntime runtime({.cancels_late = cancels_late});
    auto timeline = opened(runtime);
    ASSERT_TRUE(timeline->become(std::span(tokens).first(10)));
    runtime.is_slow = true;
    std::atomic<bool> has_ended = false;
    std::thread canceller([&] {
      while (!has_ended) timeline->cancel();
    });
    auto cost = timeline->become(tokens);
    has_ended = true;
    canceller.join();
    ASSERT_FALSE(cost);
    EXPECT_EQ(cost.error().code, ErrorCode::cancelled);
    EXPECT_EQ(timeline->history().tokens.size(), 10u);
    runtime.is_slow = false;
    // What is left of the cancellation is not the next call's.
    ASSERT_TRUE(timeline->become(tokens));
    EXPECT_TRUE(same_bits(timeline->logits(), fresh_logits(runtime, timeline->history())));
  }
}

}  // namespace
}  // namespace cairn::timeline_test
