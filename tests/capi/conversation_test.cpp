// Conversations by cairn.h beside the engine itself: the same bits, the same tokens, whatever was
// rewound, forked or cancelled in between.
#include <cairn.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <csignal>
#include <random>
#include <thread>

#include "engine/generator.h"
#include "tests/capi/opened.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"

namespace cairn::conversation_test {
namespace {

using test::logits_of;
using test::Opened;
using test::same_bits;
using test::sized;
using test::some_tokens;

constexpr const char* kFamilies[] = {"llama31", "gemma3", "falcon_mamba", "jamba"};

std::vector<float> engine_logits(const std::string& path, std::span<const cairn_token> ids) {
  auto file = gguf::File::open(path);
  EXPECT_TRUE(file);
  auto engine =
      Engine::load(std::move(*file), {.thread_count = 1, .memory_budget = size_t(64) << 20});
  EXPECT_TRUE(engine);
  Generator generator(engine->get());
  std::vector<Token> tokens;
  for (const cairn_token id : ids) tokens.push_back(Token(id));
  EXPECT_TRUE(generator.read(tokens));
  const auto row = generator.logits();
  return {row.begin(), row.end()};
}

std::vector<cairn_token> tokens_of(cairn_conversation* c) {
  size_t count = 0;
  const cairn_token* const tokens = cairn_tokens(c, &count);
  return {tokens, tokens + count};
}

TEST(Conversation, HasTheEnginesOwnBits) {
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const std::string path = test::golden_path(family);
    Opened opened(path);
    cairn_conversation* c = opened.conversation();
    const auto tokens = some_tokens(40);
    ASSERT_EQ(cairn_prefill(c, tokens.data(), 7, nullptr, &opened.error), CAIRN_OK);
    ASSERT_EQ(cairn_prefill(c, tokens.data() + 7, 32, nullptr, &opened.error), CAIRN_OK);
    cairn_plan plan = sized<cairn_plan>();
    ASSERT_EQ(cairn_prefill(c, tokens.data() + 39, 1, &plan, &opened.error), CAIRN_OK);
    EXPECT_EQ(plan.resume, 39u);
    EXPECT_EQ(plan.forward_tokens, 1u);
    EXPECT_EQ(tokens_of(c), tokens);
    const auto expected = engine_logits(path, tokens);
    EXPECT_TRUE(same_bits(logits_of(c), expected));

    // Elsewhere and back, by four ways.
    cairn_snapshot* snapshot = nullptr;
    ASSERT_EQ(cairn_snapshot_take(c, &snapshot, &opened.error), CAIRN_OK);
    EXPECT_EQ(cairn_snapshot_position(snapshot), 40u);
    cairn_conversation* forked = nullptr;
    ASSERT_EQ(cairn_fork(c, nullptr, &forked, &opened.error), CAIRN_OK) << opened.error.message;
    EXPECT_EQ(tokens_of(forked), tokens);
    EXPECT_TRUE(same_bits(logits_of(forked), expected));
    const auto others = some_tokens(25, 7);
    ASSERT_EQ(cairn_plan_rewind(c, 10, &plan, &opened.error), CAIRN_OK);
    EXPECT_EQ(plan.target, 10u);
    ASSERT_EQ(cairn_rewind(c, 10, &plan, &opened.error), CAIRN_OK) << opened.error.message;
    EXPECT_EQ(plan.resume + plan.forward_tokens, 10u);
    ASSERT_EQ(cairn_prefill(c, others.data(), others.size(), nullptr, nullptr), CAIRN_OK);
    auto mixed = std::vector<cairn_token>(tokens.begin(), tokens.begin() + 10);
    mixed.insert(mixed.end(), others.begin(), others.end());
    EXPECT_TRUE(same_bits(logits_of(c), engine_logits(path, mixed)));
    ASSERT_EQ(cairn_rewind_to(c, snapshot, &plan, &opened.error), CAIRN_OK);
    EXPECT_EQ(plan.forward_tokens, 0u);
    EXPECT_EQ(plan.logits_ready, 1);
    EXPECT_TRUE(same_bits(logits_of(c), expected));
    ASSERT_EQ(cairn_sync(forked, mixed.data(), mixed.size(), nullptr, nullptr), CAIRN_OK);
    cairn_conversation_close(c);  // What the snapshot has stays.
    ASSERT_EQ(cairn_rewind_to(forked, snapshot, &plan, nullptr), CAIRN_OK);
    EXPECT_EQ(plan.forward_tokens, 0u);
    EXPECT_TRUE(same_bits(logits_of(forked), expected));
    cairn_snapshot_release(snapshot);
    ASSERT_EQ(cairn_reset(forked, nullptr), CAIRN_OK);
    EXPECT_TRUE(tokens_of(forked).empty());
    cairn_conversation_close(forked);
  }
}

TEST(Conversation, AnswersAndGoesOn) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  test::set_greedy(opened.model, c, 60);
  const auto prompt = opened.chat("What is the capital of France?");
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
  EXPECT_EQ(test::answer_of(c), "The capital of France is Paris.");
  // The answer's tokens are the conversation's; behind a rewind they are chosen again.
  const auto whole = tokens_of(c);
  ASSERT_GT(whole.size(), prompt.size());
  EXPECT_TRUE(same_bits(logits_of(c), engine_logits(test::nano_path(), whole)));
  ASSERT_EQ(cairn_rewind(c, uint32_t(prompt.size()), nullptr, &opened.error), CAIRN_OK);
  cairn_token likeliest = -1;
  ASSERT_EQ(cairn_sample(c, nullptr, 0, &likeliest, &opened.error), CAIRN_OK);
  EXPECT_EQ(likeliest, whole[prompt.size()]);
  const auto row = logits_of(c);
  likeliest = -1;
  ASSERT_EQ(cairn_sample(c, row.data(), row.size(), &likeliest, nullptr), CAIRN_OK);
  EXPECT_EQ(likeliest, whole[prompt.size()]);
  EXPECT_EQ(test::answer_of(c), "The capital of France is Paris.");
  EXPECT_EQ(tokens_of(c), whole);
  cairn_conversation_close(c);
}

// Whenever an answer is cancelled, other logits are taken, or refused because its next token is
// chosen; then that token comes.
TEST(Conversation, TakesOtherLogitsAtAnyMomentOfACancelledAnswer) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  test::set_greedy(opened.model, c, -1);
  const auto prompt = opened.chat("What is the capital of France?");
  std::vector<float> row(opened.facts().vocabulary_count, 0.0f);
  constexpr cairn_token kWanted = 700;
  row[kWanted] = 1000;
  for (int round = 0; round < 200; ++round) {
    ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
    std::thread canceller([c, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(20 * (round % 50)));
      cairn_cancel(c);
    });
    cairn_event event = sized<cairn_event>();
    while (cairn_next(c, &event, nullptr) == CAIRN_OK) {
    }
    canceller.join();
    const cairn_status given = cairn_set_logits(c, row.data(), row.size(), nullptr);
    cairn_status status = cairn_next(c, &event, &opened.error);
    if (status == CAIRN_CANCELLED) status = cairn_next(c, &event, &opened.error);
    ASSERT_TRUE(status == CAIRN_OK || status == CAIRN_DONE) << opened.error.message;
    if (given == CAIRN_OK && event.token_count > 0) {
      EXPECT_EQ(event.tokens[0], kWanted);
    }
  }
  cairn_conversation_close(c);
}

// Looking at the logits behind each token changes nothing of the answer, nor of its end.
TEST(Conversation, AnswersAreTheSameWhileTheirLogitsAreLookedAt) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  const auto prompt = opened.chat("What is the capital of France?");
  for (const int32_t max_tokens : {3, 60}) {
    test::set_greedy(opened.model, c, max_tokens);
    ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
    const std::string wanted = test::answer_of(c);
    const auto tokens = tokens_of(c);
    ASSERT_EQ(cairn_rewind(c, uint32_t(prompt.size()), nullptr, nullptr), CAIRN_OK);
    cairn_event event = sized<cairn_event>();
    std::string text;
    cairn_status status = CAIRN_OK;
    for (int count = 0; count < 100 && status == CAIRN_OK; ++count) {
      status = cairn_next(c, &event, &opened.error);
      text.append(event.text, event.text_bytes);
      EXPECT_FALSE(logits_of(c).empty());
    }
    EXPECT_EQ(status, CAIRN_DONE) << opened.error.message;
    EXPECT_EQ(text, wanted);
    EXPECT_EQ(tokens_of(c), tokens);
    EXPECT_EQ(event.finish, max_tokens == 3 ? CAIRN_FINISH_LENGTH : CAIRN_FINISH_STOP);
    // Whoever goes on elsewhere hears nothing of it any more.
    ASSERT_EQ(cairn_rewind(c, uint32_t(prompt.size()), nullptr, nullptr), CAIRN_OK);
    EXPECT_EQ(test::answer_of(c), wanted);
  }
  cairn_conversation_close(c);
}

// While one conversation is open, another one that begins alike computes only what differs.
TEST(Conversation, FindsWhatOpenOnesHaveRead) {
  for (const char* name : {"llama", "gemma3", "falcon_mamba", "jamba"}) {
    SCOPED_TRACE(name);
    Opened opened(test::golden_path(name));
    const auto text = test::some_tokens(40);
    cairn_conversation* const first = opened.conversation();
    cairn_plan done = sized<cairn_plan>();
    ASSERT_EQ(cairn_sync(first, text.data(), text.size(), &done, nullptr), CAIRN_OK);
    EXPECT_EQ(done.forward_tokens, text.size());
    cairn_plan plan = sized<cairn_plan>();
    ASSERT_EQ(cairn_plan_prompt(opened.engine, text.data(), text.size(), &plan, nullptr), CAIRN_OK);
    EXPECT_EQ(plan.forward_tokens, 0u);
    cairn_conversation* const second = opened.conversation();
    ASSERT_EQ(cairn_sync(second, text.data(), text.size(), &done, nullptr), CAIRN_OK);
    EXPECT_EQ(done.forward_tokens, 0u);
    EXPECT_TRUE(same_bits(logits_of(first), logits_of(second)));
    cairn_conversation_close(first);
    cairn_conversation_close(second);
  }
}

// Logits of the caller's own: the next token is chosen from them, and the one after that is not.
TEST(Conversation, ChoosesFromLogitsThatItIsGiven) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = 8;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, &opened.error), CAIRN_OK);
  std::vector<float> row(opened.facts().vocabulary_count);
  EXPECT_EQ(cairn_set_logits(c, row.data(), row.size(), nullptr), CAIRN_E_INVALID);
  const auto prompt = opened.chat("What is the capital of France?");
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, &opened.error), CAIRN_OK);
  EXPECT_EQ(cairn_set_logits(c, row.data(), row.size() - 1, nullptr), CAIRN_E_INVALID);
  EXPECT_EQ(cairn_set_logits(c, nullptr, row.size(), nullptr), CAIRN_E_INVALID);
  row = logits_of(c);
  constexpr cairn_token kWanted = 700;
  row[kWanted] = 1000;
  ASSERT_EQ(cairn_set_logits(c, row.data(), row.size(), &opened.error), CAIRN_OK);
  cairn_event event = sized<cairn_event>();
  ASSERT_EQ(cairn_next(c, &event, &opened.error), CAIRN_OK) << opened.error.message;
  ASSERT_EQ(event.token_count, 1u);
  EXPECT_EQ(event.tokens[0], kWanted);
  cairn_token own = -1;
  ASSERT_EQ(cairn_sample(c, nullptr, 0, &own, nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_next(c, &event, &opened.error), CAIRN_OK);
  EXPECT_EQ(event.tokens[0], own);
  // They are gone when the tokens change, and a form is kept.
  ASSERT_EQ(cairn_set_logits(c, row.data(), row.size(), nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_rewind(c, uint32_t(prompt.size()), nullptr, nullptr), CAIRN_OK);
  EXPECT_EQ(test::answer_of(c), "The capital of France is Paris.");
  ASSERT_EQ(cairn_rewind(c, uint32_t(prompt.size()), nullptr, nullptr), CAIRN_OK);
  sampling.grammar = "root ::= [0-9]+";
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_set_logits(c, row.data(), row.size(), nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_start(c, nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_next(c, &event, &opened.error), CAIRN_OK) << opened.error.message;
  EXPECT_TRUE(event.text[0] >= '0' && event.text[0] <= '9') << event.text;
  cairn_conversation_close(c);
}

// A fork in the midst of an answer says what the other one says.
TEST(Conversation, ForksAndSnapshotsOfAnswersGoOnAlike) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.temperature = 1.5f;
  sampling.flags = CAIRN_SAMPLING_SEED | CAIRN_SAMPLING_IGNORE_END | CAIRN_SAMPLING_LOGPROBS;
  sampling.seed = 5;
  sampling.max_tokens = 30;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, &opened.error), CAIRN_OK) << opened.error.message;
  const auto prompt = opened.chat("Hello");
  ASSERT_EQ(cairn_prefill(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  cairn_event event = sized<cairn_event>();
  for (int count = 0; count < 5; ++count) {
    ASSERT_EQ(cairn_next(c, &event, &opened.error), CAIRN_OK) << opened.error.message;
    EXPECT_EQ(event.token_count, 1u);
    ASSERT_NE(event.logprobs, nullptr);
    EXPECT_LE(event.logprobs[0], 0);
  }
  cairn_snapshot* snapshot = nullptr;
  cairn_conversation* forked = nullptr;
  ASSERT_EQ(cairn_snapshot_take(c, &snapshot, nullptr), CAIRN_OK);
  ASSERT_EQ(cairn_fork(c, snapshot, &forked, nullptr), CAIRN_OK);
  (void)test::answer_of(c);
  (void)test::answer_of(forked);
  const auto one = tokens_of(c), other = tokens_of(forked);
  ASSERT_EQ(one.size(), prompt.size() + 30);
  ASSERT_EQ(other.size(), prompt.size() + 35);  // Of its own answer these are 30.
  EXPECT_TRUE(std::equal(one.begin(), one.end(), other.begin()));
  cairn_snapshot_release(snapshot);
  cairn_conversation_close(forked);
  cairn_conversation_close(c);
}

// What is left to be told of an answer is not taken for the end of the one behind it.
TEST(Conversation, AnAnswersEndIsNotThatOfTheNext) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  const auto prompt = opened.chat("What is the capital of Norway?");
  test::set_greedy(opened.model, c, 2);
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  cairn_event event = sized<cairn_event>();
  for (int token = 0; token < 2; ++token) ASSERT_EQ(cairn_next(c, &event, nullptr), CAIRN_OK);
  cairn_logits* row = nullptr;
  ASSERT_EQ(cairn_logits_acquire(c, &row, nullptr), CAIRN_OK);
  cairn_logits_release(row);
  ASSERT_EQ(cairn_start(c, nullptr), CAIRN_OK);
  for (int token = 0; token < 2; ++token) ASSERT_EQ(cairn_next(c, &event, nullptr), CAIRN_OK);
  EXPECT_EQ(cairn_next(c, &event, nullptr), CAIRN_DONE);
  EXPECT_EQ(tokens_of(c).size(), prompt.size() + 4);
  cairn_conversation_close(c);
}

TEST(Conversation, MakesAnswersInTheBackground) {
  Opened opened(test::nano_path());
  cairn_conversation* both[] = {opened.conversation(), opened.conversation()};
  cairn_event event = sized<cairn_event>();
  EXPECT_EQ(cairn_poll(both[0], &event, &opened.error), CAIRN_E_INVALID);
  const auto prompt = opened.chat("What is the capital of Norway?");
  for (cairn_conversation* c : both) {
    test::set_greedy(opened.model, c, 60);
    ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
    ASSERT_EQ(cairn_start(c, &opened.error), CAIRN_OK) << opened.error.message;
    EXPECT_EQ(cairn_reset(c, nullptr), CAIRN_E_BUSY);
  }
  for (cairn_conversation* c : both) {
    std::string text;
    cairn_status status = CAIRN_AGAIN;
    for (int count = 0; count < 10000 && status >= 0 && status != CAIRN_DONE; ++count) {
      pollfd waits{.fd = cairn_wait_fd(c), .events = POLLIN, .revents = 0};
      ASSERT_EQ(::poll(&waits, 1, 20000), 1);
      status = cairn_poll(c, &event, &opened.error);
      if (status == CAIRN_OK) text.append(event.text, event.text_bytes);
    }
    EXPECT_EQ(status, CAIRN_DONE);
    EXPECT_EQ(event.finish, CAIRN_FINISH_STOP);
    EXPECT_EQ(text, "The capital of Norway is Oslo.");
    pollfd waits{.fd = cairn_wait_fd(c), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&waits, 1, 0), 0);
    EXPECT_EQ(cairn_reset(c, nullptr), CAIRN_OK);
    cairn_conversation_close(c);
  }
}

TEST(Conversation, AnswersFitGrammarsAndStop) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = 50;
  sampling.grammar = R"(root ::= "Oslo" | "Bergen")";
  ASSERT_EQ(cairn_set_sampling(c, &sampling, &opened.error), CAIRN_OK) << opened.error.message;
  const auto prompt = opened.chat("What is the capital of Norway?");
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  const std::string formed = test::answer_of(c);
  EXPECT_TRUE(formed == "Oslo" || formed == "Bergen") << formed;
  sampling.grammar = nullptr;
  sampling.stop_json = R"(["Norway"])";
  ASSERT_EQ(cairn_set_sampling(c, &sampling, &opened.error), CAIRN_OK) << opened.error.message;
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  EXPECT_EQ(test::answer_of(c), "The capital of ");
  cairn_conversation_close(c);
}

// Whenever it comes: what is made afterwards is what would have been made.
TEST(Conversation, CancelledCallsLeaveNoTrace) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  test::set_greedy(opened.model, c, 24);
  const auto prompt = opened.chat("What is the capital of France?");
  ASSERT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  const std::string expected = test::answer_of(c);
  const auto whole = tokens_of(c);

  std::atomic<bool> is_over = false;
  std::thread canceller([&] {
    std::mt19937 random(3);
    while (!is_over) {
      cairn_cancel(c);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
    }
  });
  int cancelled_count = 0;
  const auto until_done = [&](const auto& call) {
    cairn_status status = CAIRN_CANCELLED;
    while (status == CAIRN_CANCELLED) {
      status = call();
      cancelled_count += int(status == CAIRN_CANCELLED);
    }
    return status;
  };
  cairn_event event = sized<cairn_event>();
  const int enough = test::kIsSanitized ? 100 : 1000;
  for (int round = 0; round < 5 || (cancelled_count < enough && round < 5000); ++round) {
    EXPECT_EQ(until_done([&] { return cairn_rewind(c, 3, nullptr, nullptr); }), CAIRN_OK);
    EXPECT_EQ(
        until_done([&] { return cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr); }),
        CAIRN_OK);
    std::string text;
    cairn_status status = CAIRN_OK;
    while (status == CAIRN_OK) {
      status = until_done([&] { return cairn_next(c, &event, nullptr); });
      if (status == CAIRN_OK) text.append(event.text, event.text_bytes);
    }
    EXPECT_EQ(status, CAIRN_DONE);
    EXPECT_EQ(text, expected);
    EXPECT_EQ(tokens_of(c), whole);
  }
  is_over = true;
  canceller.join();
  EXPECT_GE(cancelled_count, enough);
  cairn_conversation_close(c);
}

// A mark that is set while nothing runs ends the next call that computes, once.
TEST(Conversation, CancellingNothingCancelsTheNextCallOnce) {
  Opened opened(test::nano_path());
  cairn_conversation* c = opened.conversation();
  const auto prompt = opened.chat("Hello");
  static std::atomic<cairn_conversation*> target;
  target = c;
  struct sigaction before {};
  struct sigaction handler {};
  handler.sa_handler = [](int) { cairn_cancel(target); };
  ASSERT_EQ(::sigaction(SIGUSR1, &handler, &before), 0);
  ASSERT_EQ(::raise(SIGUSR1), 0);
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_CANCELLED);
  EXPECT_TRUE(tokens_of(c).empty());
  EXPECT_EQ(cairn_sync(c, prompt.data(), prompt.size(), nullptr, nullptr), CAIRN_OK);
  cairn_cancel(c);
  EXPECT_EQ(cairn_start(c, nullptr), CAIRN_CANCELLED);
  ASSERT_EQ(cairn_start(c, nullptr), CAIRN_OK);
  cairn_cancel(c);
  cairn_event event = sized<cairn_event>();
  cairn_status status = CAIRN_OK;
  while (status == CAIRN_OK) status = cairn_next(c, &event, nullptr);
  EXPECT_TRUE(status == CAIRN_CANCELLED || status == CAIRN_DONE) << status;
  cairn_conversation_close(c);
}

TEST(Conversation, FailedReadingLeavesItAsItWas) {
  cairn_engine_params params = sized<cairn_engine_params>();
  params.context_tokens = 64;
  Opened opened(test::nano_path(), params);
  cairn_conversation* c = opened.conversation();
  const auto tokens = some_tokens(60);
  ASSERT_EQ(cairn_prefill(c, tokens.data(), 60, nullptr, nullptr), CAIRN_OK);
  const auto row = logits_of(c);
  EXPECT_EQ(cairn_prefill(c, tokens.data(), 5, nullptr, &opened.error), CAIRN_E_NO_ROOM);
  EXPECT_STREQ(opened.error.message, "context: 65 tokens are needed, 64 fit");
  EXPECT_EQ(tokens_of(c), tokens);
  EXPECT_TRUE(same_bits(logits_of(c), row));
  // An answer fills the context and says so.
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(opened.model, &sampling, sizeof sampling);
  sampling.flags = CAIRN_SAMPLING_IGNORE_END;
  ASSERT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
  cairn_event event = sized<cairn_event>();
  cairn_status status = CAIRN_OK;
  for (int count = 0; count < 20 && status == CAIRN_OK; ++count) {
    status = cairn_next(c, &event, nullptr);
  }
  EXPECT_EQ(status, CAIRN_DONE);
  EXPECT_EQ(event.finish, CAIRN_FINISH_CONTEXT);
  cairn_conversation_close(c);
}

TEST(Conversation, SavedOnesComeBackInAnotherEngine) {
  const test::ScratchFolder folder;
  const std::string store = folder.file("store");
  cairn_engine_params params = sized<cairn_engine_params>();
  params.store_path = store.c_str();
  std::vector<cairn_token> tokens = some_tokens(50);
  std::vector<float> row;
  for (int round = 0; round < 2; ++round) {
    Opened opened(test::golden_path("jamba"), params);
    cairn_conversation* c = opened.conversation();
    if (round == 0) {
      EXPECT_EQ(cairn_save(c, "one", nullptr), CAIRN_E_INVALID);
      ASSERT_EQ(cairn_prefill(c, tokens.data(), tokens.size(), nullptr, nullptr), CAIRN_OK);
      row = logits_of(c);
      ASSERT_EQ(cairn_save(c, "one", &opened.error), CAIRN_OK) << opened.error.message;
      EXPECT_EQ(cairn_save(c, "../one", nullptr), CAIRN_E_INVALID);
    } else {
      cairn_plan plan = sized<cairn_plan>();
      EXPECT_EQ(cairn_restore(c, "two", &plan, nullptr), CAIRN_E_IO);
      ASSERT_EQ(cairn_restore(c, "one", &plan, &opened.error), CAIRN_OK) << opened.error.message;
      EXPECT_EQ(plan.forward_tokens, 0u);
      EXPECT_EQ(tokens_of(c), tokens);
      EXPECT_TRUE(same_bits(logits_of(c), row));
    }
    cairn_conversation_close(c);
  }
}

}  // namespace
}  // namespace cairn::conversation_test
