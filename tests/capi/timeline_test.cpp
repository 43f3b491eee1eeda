// Jobs that are ended in their midst leave a conversation as it was, in all kinds of memory, to the
// bit: wherever the reading was cut, and whether its memory was given up or not.
#include "capi/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/capi/opened.h"

namespace cairn::timeline_test {
namespace {

using capi::Mailbox;
using capi::MakeJob;
using capi::ReadJob;
using capi::Timeline;

struct Case {
  explicit Case(const std::string& path) {
    auto file = gguf::File::open(path);
    EXPECT_TRUE(file);
    auto loaded =
        Engine::load(std::move(*file), {.thread_count = 1, .memory_budget = size_t(64) << 20});
    EXPECT_TRUE(loaded);
    engine = std::move(*loaded);
    drafting = std::make_unique<session::Drafting>(engine.get());
    timeline = std::make_unique<Timeline>(engine.get(), drafting.get());
    auto opened = Mailbox::open();
    EXPECT_TRUE(opened);
    mailbox = std::move(*opened);
  }

  // Rows of what the lane wants.
  void step(int32_t row_count) {
    Lane& lane = timeline->lane();
    const StepItem item = lane.next(row_count);
    const auto take = [&](size_t, const StepOutputs& outputs) { return lane.take(outputs); };
    ASSERT_TRUE(engine->step(std::span(&item, 1), take));
    ASSERT_TRUE(lane.settle());
  }
  void read(std::span<const Token> tokens) {
    memory::ResumePlan done;
    ReadJob job(timeline.get(), mailbox.get(), tokens, nullptr, &done);
    mailbox->begin();
    ASSERT_TRUE(job.start());
    while (timeline->lane().wants_rows()) step(512);
    ASSERT_TRUE(job.advance());
    EXPECT_TRUE(job.is_done());
    job.end(Ok{});
    EXPECT_EQ(mailbox->take_outcome().status, CAIRN_OK);
  }
  std::vector<float> row() {
    const auto logits = timeline->lane().logits();
    return {logits.begin(), logits.end()};
  }

  std::unique_ptr<Engine> engine;
  std::unique_ptr<session::Drafting> drafting;
  std::unique_ptr<Timeline> timeline;
  std::unique_ptr<Mailbox> mailbox;
};

std::vector<Token> tokens_of(const std::vector<cairn_token>& ids) {
  std::vector<Token> tokens;
  for (const cairn_token id : ids) tokens.push_back(Token(id));
  return tokens;
}

TEST(Timeline, ReadingThatIsCutLeavesWhatWasThere) {
  for (const char* family : {"llama31", "gemma3", "falcon_mamba", "jamba"}) {
    Case c(test::golden_path(family));
    const std::vector<Token> tokens = tokens_of(test::some_tokens(40));
    c.read(tokens);
    const std::vector<float> before = c.row();
    for (int round = 0; round < 16; ++round) {
      SCOPED_TRACE(std::string(family) + " " + std::to_string(round));
      std::vector<Token> others = tokens_of(test::some_tokens(30, uint32_t(round) + 5));
      // Half of them go on where the conversation stands.
      if (round % 2 == 0) others.insert(others.begin(), tokens.begin(), tokens.end());
      memory::ResumePlan done;
      ReadJob job(c.timeline.get(), c.mailbox.get(), others, nullptr, &done);
      c.mailbox->begin();
      ASSERT_TRUE(job.start());
      for (int rows = 0; rows < round && c.timeline->lane().wants_rows(); rows += 3) c.step(3);
      if (round % 3 == 0) c.timeline->lane().preempt();
      job.end(fail(ErrorCode::cancelled, "cancelled"));
      EXPECT_EQ(c.mailbox->take_outcome().status, CAIRN_CANCELLED);
      ASSERT_TRUE(c.timeline->stands_at(tokens.size()));
      EXPECT_TRUE(std::ranges::equal(c.timeline->lane().sequence().tokens(), tokens));
      EXPECT_TRUE(test::same_bits(c.row(), before));
    }
  }
}

// An answer goes on with the tokens that it would have had, even where its memory was given up.
TEST(Timeline, AnswersThatAreCutGoOn) {
  const auto prompt = tokens_of(test::some_tokens(20));
  capi::AnswerTerms given;
  given.sampling.temperature = 1;
  given.sampling.ignore_eos = true;
  given.sampling.seed = 3;
  const auto terms = std::make_shared<const capi::AnswerTerms>(given);
  std::vector<Token> answers[2];
  for (int round = 0; round < 2; ++round) {
    Case c(test::nano_path());
    c.read(prompt);
    for (int count = 0; count < 12; ++count) {
      capi::MakeOrder order{.extent = MakeJob::Extent::token};
      if (count == 0) {
        order.prompt = prompt;
        order.terms = terms;
      }
      MakeJob job(c.timeline.get(), c.mailbox.get(), order, 0);
      c.mailbox->begin();
      ASSERT_TRUE(job.start());
      if (round == 1 && count > 0) {
        // Before its row, and before its token.
        if (count % 2 == 0) c.step(1);
        if (count % 3 == 0) c.timeline->lane().preempt();
        job.end(fail(ErrorCode::cancelled, "cancelled"));
        ASSERT_TRUE(c.mailbox->has_answer());
        EXPECT_EQ(c.mailbox->take_outcome().status, CAIRN_CANCELLED);
        c.mailbox->begin();
      }
      MakeJob second(c.timeline.get(), c.mailbox.get(), {.extent = MakeJob::Extent::token}, 0);
      MakeJob& last = round == 1 && count > 0 ? second : job;
      while (c.timeline->lane().wants_rows()) c.step(512);
      last.choose();
      ASSERT_TRUE(last.advance());
      ASSERT_TRUE(last.is_done());
      last.end(Ok{});
      EXPECT_EQ(c.mailbox->take_outcome().status, CAIRN_OK);
      capi::AnswerEvent event;
      ASSERT_TRUE(c.mailbox->take(event));
      answers[round].insert(answers[round].end(), event.tokens.begin(), event.tokens.end());
    }
  }
  EXPECT_EQ(answers[0].size(), 12u);
  EXPECT_EQ(answers[0], answers[1]);
}

// Token by token nobody asks drafters, and there are none; in the background there are, for the
// rest of an answer that was begun token by token too. The tokens are the same.
TEST(Timeline, AnswersHaveDraftersWhereTheyAreAsked) {
  const auto prompt = tokens_of(test::some_tokens(20));
  capi::AnswerTerms given;
  given.sampling.temperature = 0;
  given.sampling.ignore_eos = true;
  given.token_count_max = 60;
  const auto terms = std::make_shared<const capi::AnswerTerms>(given);
  std::vector<Token> expected;
  for (const int taken_count : {0, 7, 50}) {
    SCOPED_TRACE(taken_count);
    Case c(test::nano_path());
    c.read(prompt);
    std::vector<Token> answer;
    capi::MakeOrder order{.extent = MakeJob::Extent::token, .prompt = prompt, .terms = terms};
    const auto make = [&](const std::function<void(MakeJob&)>& work) {
      MakeJob job(c.timeline.get(), c.mailbox.get(), std::exchange(order, {}), 0);
      c.mailbox->begin();
      ASSERT_TRUE(job.start());
      work(job);
      job.end(Ok{});
      EXPECT_EQ(c.mailbox->take_outcome().status, CAIRN_OK);
      for (capi::AnswerEvent event; c.mailbox->take(event); event.clear()) {
        answer.insert(answer.end(), event.tokens.begin(), event.tokens.end());
      }
    };
    for (int count = 0; count < taken_count; ++count) {
      make([&](MakeJob& job) {
        EXPECT_EQ(job.drafted(), nullptr);
        EXPECT_FALSE(c.timeline->maker().completion()->has_drafters());
        while (c.timeline->lane().wants_rows()) c.step(512);
        ASSERT_TRUE(job.advance());
      });
    }
    order.extent = MakeJob::Extent::to_end;
    make([&](MakeJob& job) {
      EXPECT_NE(job.drafted(), nullptr);
      while (!job.is_done()) {
        while (c.timeline->lane().wants_rows()) c.step(512);
        ASSERT_TRUE(job.advance());
      }
    });
    EXPECT_EQ(answer.size(), 60u);
    if (expected.empty()) expected = answer;
    EXPECT_EQ(answer, expected);
  }
}

}  // namespace
}  // namespace cairn::timeline_test
