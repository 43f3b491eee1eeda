// Every length, not samples: around pages, windows, chunks and the log's borders.
#include <gtest/gtest.h>

#include "tests/memory/simulator.h"
#include "tests/memory/toy_bench.h"

namespace cairn::memory::toy::sweep_test {
namespace {

// What `sequence` sees is what `alone`, cut to its length, sees.
void expect_same(const ToyModel& model, const Sequence& sequence, const ToyAlone& alone) {
  ToyAlone shorter = alone;
  shorter.cut(sequence.length());
  ASSERT_EQ(Inspector::probe(model, sequence, Token(3)), shorter.probe(Token(3)))
      << "at " << sequence.length();
}

// A sequence that was read in steps of one size, rewound to every one of its positions.
TEST(Sweep, EveryPositionOfASequenceCanBeGoneTo) {
  constexpr int32_t kLength = 3 * kPageTokens + 6;
  for (const ToyModel& model : toy_models()) {
    ToyAlone alone(&model);
    alone.append(tokens(kLength));
    for (const int32_t step : {1, 7, 32, kLength}) {
      for (const int32_t protected_from : {0, 50, kLength}) {
        ToyBench bench(model, {.log_step = 16});
        Sequence parent = bench.memory->new_sequence();
        bench.memory->protect_from(parent, protected_from);
        for (int32_t begin = 0; begin < kLength; begin += step) {
          const std::span<const Token> part = alone.tokens().subspan(size_t(begin));
          const size_t count = std::min(part.size(), size_t(step));
          ASSERT_TRUE(bool(bench.read(parent, {part.begin(), part.begin() + ptrdiff_t(count)})));
        }
        for (int32_t target = 0; target <= kLength; ++target) {
          Sequence branch = bench.memory->at(parent, target).value();
          const bool is_attention = bench.memory->layout().recurrent_group < 0;
          if (is_attention && target >= protected_from) {
            ASSERT_EQ(branch.length(), target);
          }
          expect_same(model, branch, alone);
          ASSERT_TRUE(bool(bench.read(branch, tokens(3, 20))));
          bench.expect_exact(branch);
        }
        expect_same(model, parent, alone);
      }
    }
  }
}

// Prefixes that were read at once, and tails behind them that were read token by token: the log
// brings every position of its last step back, wherever it began.
TEST(Sweep, EveryTailBehindEveryPrefixIsDerived) {
  constexpr int32_t kStep = 8;
  constexpr int32_t kPrefixMax = 2 * kPageTokens + 2 * kStep;
  constexpr int32_t kTailMax = 3 * kStep;
  for (const ToyModel& model : toy_models()) {
    ToyAlone alone(&model);
    alone.append(tokens(kPrefixMax + kTailMax));
    ToyBench bench(model, {.log_step = kStep});
    if (bench.memory->layout().recurrent_group < 0) continue;
    const auto part = [&](int32_t begin, int32_t count) {
      const auto first = alone.tokens().begin() + begin;
      return std::vector<Token>(first, first + count);
    };
    for (int32_t prefix = 0; prefix <= kPrefixMax; ++prefix) {
      Sequence sequence = bench.memory->new_sequence();
      if (prefix > 0) {
        ASSERT_TRUE(bool(bench.read(sequence, part(0, prefix))));
      }
      for (int32_t tail = 1; tail <= kTailMax; ++tail) {
        const int32_t length = prefix + tail;
        ASSERT_TRUE(bool(bench.read(sequence, part(length - 1, 1))));
        const int32_t logged_from = prefix <= kStep ? 0 : prefix;
        for (int32_t back = 0; back <= std::min(kStep, length - logged_from); ++back) {
          const ResumePlan plan = bench.memory->plan(sequence, length - back);
          ASSERT_EQ(plan.forward_tokens, 0) << prefix << " + " << tail << " - " << back;
          ASSERT_LE(plan.recurrence_steps, kStep);
        }
        const int32_t back = tail % (std::min(kStep, length - logged_from) + 1);
        Sequence branch = bench.memory->at(sequence, length - back).value();
        expect_same(model, branch, alone);
        ASSERT_TRUE(bool(bench.read(branch, tokens(1, 33))));
        bench.expect_exact(branch);
      }
    }
  }
}

}  // namespace
}  // namespace cairn::memory::toy::sweep_test
