// Steps of several sequences: each gets the bits that it would get alone, whoever shares the step,
// whatever does not fit, and however many states have to come back first.
#include "engine/step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "engine/lane_batch.h"
#include "tests/models/golden_model.h"
#include "tests/small_pages.h"

namespace cairn::test::step_test {
namespace {

using Tokens = std::vector<Token>;

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Full attention, windows, and recurrence of two kinds.
class StepTest : public test::SmallPagesTest<std::string> {
 protected:
  std::unique_ptr<Engine> open(int32_t row_count_max, size_t budget = size_t(64) << 20,
                               int32_t log_step = 16) {
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = row_count_max;
    options.memory_budget = budget;
    options.log_step = log_step;
    return load_engine(golden_path(GetParam(), ".gguf"), options);
  }

  // The last row of logits of a fresh reading.
  static std::vector<float> alone(Engine& engine, const Tokens& tokens) {
    memory::Sequence sequence = engine.memory().new_sequence();
    const size_t step = size_t(engine.runner().row_count_max());
    std::vector<float> logits;
    for (size_t begin = 0; begin < tokens.size(); begin += step) {
      logits = append(engine, sequence,
                      std::span(tokens).subspan(begin, std::min(step, tokens.size() - begin)));
    }
    return {logits.end() - engine.size().vocabulary_count, logits.end()};
  }
};

// Prompts and single tokens of lanes that begin and end at different times.
TEST_P(StepTest, LanesShareSteps) {
  const auto engine = open(24);
  ASSERT_NE(engine, nullptr);
  std::vector<Tokens> texts;
  std::vector<std::vector<float>> expected;
  std::vector<Lane> lanes;
  std::vector<Lane*> all;
  for (uint32_t i = 0; i < 5; ++i) {
    texts.push_back(random_tokens(i, 7 + int32_t(i) * 13));
    lanes.emplace_back(engine.get());
  }
  for (size_t i = 0; i < lanes.size(); ++i) {
    ASSERT_TRUE(lanes[i].start(texts[i]));
    EXPECT_EQ(lanes[i].demand().rows, int32_t(texts[i].size()));
    EXPECT_GT(lanes[i].demand().new_bytes, 0u);
    all.push_back(&lanes[i]);
  }
  LaneBatch batch(engine.get());
  for (int32_t round = 0; round < 20; ++round) {
    const bool is_wanted =
        std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.wants_rows(); });
    if (is_wanted) {
      ASSERT_TRUE(batch.step(all));
    }
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (lanes[i].wants_rows() || texts[i].size() > 80) continue;
      texts[i].push_back(Token(int32_t(round) * 7 % 384));
      ASSERT_TRUE(lanes[i].push(texts[i].back()));
    }
  }
  while (std::any_of(lanes.begin(), lanes.end(), [](const Lane& l) { return l.wants_rows(); })) {
    ASSERT_TRUE(batch.step(all));
  }
  std::vector<std::vector<float>> found;
  for (const Lane& lane : lanes) found.emplace_back(lane.logits().begin(), lane.logits().end());
  for (size_t i = 0; i < lanes.size(); ++i) {
    EXPECT_EQ(lanes[i].sequence().length(), int32_t(texts[i].size()));
    EXPECT_TRUE(same_bits(found[i], alone(*engine, texts[i]))) << i;
  }
}

// Many outputs at once: one for each row.
TEST_P(StepTest, EveryRowHasItsLogits) {
  const auto engine = open(64);
  ASSERT_NE(engine, nullptr);
  const Tokens tokens = random_tokens(3, 64);
  memory::Sequence sequence = engine->memory().new_sequence();
  const std::vector<float> rows = append(*engine, sequence, tokens);
  const size_t vocabulary = size_t(engine->size().vocabulary_count);
  for (const int32_t row : {0, 1, 17, 62}) {
    const Tokens beginning(tokens.begin(), tokens.begin() + row + 1);
    const auto found = std::span(rows).subspan(size_t(row) * vocabulary, vocabulary);
    EXPECT_TRUE(same_bits(found, alone(*engine, beginning))) << row;
  }
}

// Of drafts that are accepted in part, only what was accepted is replayed before the next ones.
TEST_P(StepTest, DraftsReplayOnlyWhatWasAccepted) {
  const auto engine = open(16);
  ASSERT_NE(engine, nullptr);
  const bool is_recurrent = engine->memory().layout().recurrent_group >= 0;
  memory::Sequence sequence = engine->memory().new_sequence();
  Tokens text = random_tokens(1, 16);
  append(*engine, sequence, text);
  int32_t replayed_rows = 0;
  for (uint32_t step = 0; step < 40; ++step) {
    const Tokens draft = random_tokens(10 + step, 5);
    text.insert(text.end(), draft.begin(), draft.begin() + 3);
    const StepItem item{.sequence = &sequence, .tokens = draft};
    Result<StepReport> report =
        engine->step({&item, 1}, [](size_t, const StepOutputs&) { return 3; });
    ASSERT_TRUE(report);
    replayed_rows += report->replayed_rows;
  }
  EXPECT_EQ(replayed_rows, is_recurrent ? 39 * 3 : 0);
  const Tokens last = random_tokens(99, 1);
  text.push_back(last[0]);
  EXPECT_TRUE(same_bits(append(*engine, sequence, last), alone(*engine, text)));
}

// A replay's plan has fewer rows than a step's: a longer replay is computed in pieces.
TEST_P(StepTest, ALongReplayIsComputedInPieces) {
  const auto engine = open(160, size_t(64) << 20, 160);
  ASSERT_NE(engine, nullptr);
  EXPECT_LE(engine->runner().replay_rows_max(), kReplayRowsMax);
  const bool is_recurrent = engine->memory().layout().recurrent_group >= 0;
  for (const int32_t accepted : {kReplayRowsMax, kReplayRowsMax + 1, 2 * kReplayRowsMax + 7}) {
    memory::Sequence sequence = engine->memory().new_sequence();
    Tokens text = random_tokens(1, 20);
    append(*engine, sequence, text);
    const Tokens draft = random_tokens(uint32_t(accepted), accepted + 3);
    text.insert(text.end(), draft.begin(), draft.begin() + accepted);
    const StepItem item{.sequence = &sequence, .tokens = draft};
    ASSERT_TRUE(engine->step({&item, 1}, [&](size_t, const StepOutputs&) { return accepted; }));
    const Tokens last = random_tokens(99, 1);
    text.push_back(last[0]);
    const int32_t output = 0;
    const StepItem one{.sequence = &sequence, .tokens = last, .outputs = {&output, 1}};
    std::vector<float> found;
    Result<StepReport> report = engine->step({&one, 1}, [&](size_t, const StepOutputs& outputs) {
      const std::span<const float> logits = outputs.logits(0);
      found.assign(logits.begin(), logits.end());
      return 1;
    });
    ASSERT_TRUE(report);
    EXPECT_EQ(report->replayed_rows, is_recurrent ? accepted : 0);
    EXPECT_TRUE(same_bits(found, alone(*engine, text))) << accepted;
  }
}

// Suspended sequences come back together; what is not accepted leaves no trace.
TEST_P(StepTest, SuspendedSequencesReplayTogether) {
  const auto engine = open(16);
  ASSERT_NE(engine, nullptr);
  const bool is_recurrent = engine->memory().layout().recurrent_group >= 0;
  std::vector<Tokens> texts;
  std::vector<memory::Sequence> sequences;
  for (uint32_t i = 0; i < 3; ++i) {
    texts.push_back(random_tokens(i, 20 + int32_t(i)));
    sequences.push_back(engine->memory().new_sequence());
    append(*engine, sequences[i], std::span(texts[i]).first(12));
    ASSERT_TRUE(engine->memory().keep_anchor(sequences[i], memory::AnchorKind::message_start));
    for (size_t at = 12; at < texts[i].size(); ++at) {
      append(*engine, sequences[i], std::span(texts[i]).subspan(at, 1));
    }
    engine->memory().suspend(sequences[i]);
    EXPECT_EQ(engine->memory().needs_replay(sequences[i]), is_recurrent);
  }
  const Tokens next = random_tokens(9, 2);
  const int32_t outputs[] = {0, 1};
  std::vector<StepItem> items;
  for (memory::Sequence& sequence : sequences) {
    items.push_back({.sequence = &sequence, .tokens = next, .outputs = outputs});
  }
  std::vector<std::vector<float>> found(3);
  Result<StepReport> report = engine->step(items, [&](size_t item, const StepOutputs& rows) {
    found[item].assign(rows.logits(0).begin(), rows.logits(0).end());
    return int32_t(item) == 1 ? 0 : 2;
  });
  ASSERT_TRUE(report);
  EXPECT_EQ(report->item_count, 3u);
  EXPECT_EQ(report->computed_rows, 6);
  EXPECT_EQ(report->replayed_rows, is_recurrent ? 8 + 9 + 10 : 0);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(sequences[i].length(), int32_t(texts[i].size()) + (i == 1 ? 0 : 2));
    Tokens read = texts[i];
    read.push_back(next[0]);
    EXPECT_TRUE(same_bits(found[i], alone(*engine, read))) << i;
  }
}

// Items behind the last that fits are left alone: by rows, then by bytes.
TEST_P(StepTest, WhatDoesNotFitIsLeft) {
  const auto engine = open(16, size_t(8) << 20);
  ASSERT_NE(engine, nullptr);
  const Tokens tokens = random_tokens(1, 10);
  memory::Sequence first = engine->memory().new_sequence();
  memory::Sequence second = engine->memory().new_sequence();
  const StepItem items[] = {{.sequence = &first, .tokens = tokens},
                            {.sequence = &second, .tokens = tokens}};
  Result<StepReport> report = engine->step(items);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->item_count, 1u);
  EXPECT_EQ(first.length(), 10);
  EXPECT_EQ(second.length(), 0);

  std::vector<memory::Sequence> holders;
  while (true) {
    holders.push_back(engine->memory().new_sequence());
    const StepItem item{.sequence = &holders.back(), .tokens = tokens};
    if (!engine->step({&item, 1})) break;
  }
  holders.pop_back();
  ASSERT_GT(holders.size(), 1u);
  const size_t used = engine->memory().usage().used_bytes();
  const Tokens one = {Token(1)};
  const StepItem full[] = {{.sequence = &holders[0], .tokens = one},
                           {.sequence = &second, .tokens = tokens}};
  report = engine->step(full);
  if (report) {
    EXPECT_EQ(report->item_count, 1u);
    EXPECT_EQ(holders[0].length(), 11);
  }
  EXPECT_EQ(second.length(), 0);
  const StepItem refused{.sequence = &second, .tokens = tokens};
  const Result<StepReport> none = engine->step({&refused, 1});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::memory_full);
  EXPECT_LE(engine->memory().usage().used_bytes(), engine->memory().usage().budget_bytes);
  EXPECT_GE(engine->memory().usage().used_bytes(), used);
}

// Wherever it was: a step that is given up leaves tokens, memory and states as they were.
TEST_P(StepTest, WhatIsGivenUpLeavesNothing) {
  const auto engine = open(24);
  ASSERT_NE(engine, nullptr);
  const Tokens tokens = random_tokens(3, 60);
  const std::span<const Token> all = tokens;
  const std::vector<float> expected = alone(*engine, tokens);
  memory::Sequence sequence = engine->memory().new_sequence();
  append(*engine, sequence, all.first(20));
  append(*engine, sequence, all.subspan(20, 20));
  const size_t used = engine->memory().usage().used_bytes();
  const Tokens last(all.begin() + 40, all.end());
  const std::vector<int32_t> outputs = {19};
  const StepItem item{.sequence = &sequence, .tokens = last, .outputs = outputs};
  std::vector<float> found;
  const auto take = [&](size_t, const StepOutputs& rows) {
    found.assign(rows.logits(0).begin(), rows.logits(0).end());
    return 20;
  };
  int32_t given_up = 0;
  for (int32_t patience = 0;; ++patience) {
    int32_t asked = 0;
    const auto is_given_up = [&] { return asked++ == patience; };
    const Result<StepReport> report =
        engine->step({&item, 1}, take, observe_nothing, StepGivenUp(is_given_up));
    if (report) break;
    EXPECT_EQ(report.error().code, ErrorCode::cancelled);
    EXPECT_EQ(asked, patience + 1);
    ASSERT_EQ(sequence.length(), 40);
    ASSERT_EQ(engine->memory().usage().used_bytes(), used);
    ASSERT_TRUE(found.empty());
    ++given_up;
  }
  EXPECT_GT(given_up, 10);
  EXPECT_EQ(sequence.length(), 60);
  EXPECT_TRUE(same_bits(found, expected));
}

INSTANTIATE_TEST_SUITE_P(Models, StepTest,
                         ::testing::Values("llama", "gemma3", "granitehybrid", "mamba"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace cairn::test::step_test
