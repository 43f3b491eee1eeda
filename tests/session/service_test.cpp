// Many threads that use one engine at once, with the built-in model: each is answered as if it were
// alone. Covers answer_job.cpp, answer_stream.cpp, embedding_job.cpp and read_ahead.cpp too.
#include "session/service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/load.h"
#include "engine/lane_batch.h"
#include "session/constraint.h"
#include "session/conversation.h"
#include "session/read_ahead.h"
#include "session/replay.h"
#include "tests/engine/random_adapter.h"
#include "tests/models/embedding_case.h"
#include "tests/sanitized.h"
#include "tests/scratch_folder.h"
#include "tests/session/answered.h"

namespace cairn::session::service_test {
namespace {

std::unique_ptr<Engine> builtin_engine(EngineOptions options = {}) {
  auto engine = cli::load_engine("", options);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(engine).value();
}

AnswerOrder order(const Engine& engine, const std::string& question) {
  const std::vector<Message> messages = {{"user", question}};
  Result<Prompt> prompt = encode_conversation(engine, messages);
  EXPECT_TRUE(prompt) << prompt.error().message;
  return {.prompt = prompt->tokens,
          .message_starts = prompt->message_starts,
          .token_count_max = 60,
          .sampling = {.temperature = 0}};
}

struct Exchange {
  const char* question;
  const char* answer;
};
constexpr Exchange kExchanges[] = {
    {"What is the capital of France?", "The capital of France is Paris."},
    {"What is the capital of Norway?", "The capital of Norway is Oslo."},
    {"What is the opposite of early?", "The opposite of early is late."},
};

std::string text_of(AnswerStream& stream) {
  std::string text;
  for (;;) {
    const std::vector<chat::OutputEvent> events = stream.next();
    if (events.empty()) return text;
    for (const chat::OutputEvent& event : events) text += event.text;
  }
}

TEST(Service, AnswersManyThreadsAtOnce) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  std::vector<std::thread> threads;
  std::atomic<int> right_count = 0;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 5; ++round) {
        const Exchange& wanted = kExchanges[size_t(thread + round) % std::size(kExchanges)];
        const Service::Ticket ticket =
            service->answer(order(*engine, wanted.question), {.client = std::to_string(thread)});
        const std::string streamed = text_of(*ticket.stream);
        Result<Answer> answer = ticket.stream->wait();
        right_count += int(answer && answer->text == wanted.answer && streamed == wanted.answer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right_count, 30);
  const SchedulerStats stats = service->stats();
  EXPECT_EQ(stats.running + stats.waiting, 0);
}

TEST(Service, CancelledRequestsEndAndGiveTheirPagesBack) {
  // What is old is left out, so that the answer goes on however late it is cancelled.
  const auto engine = builtin_engine({.context_policy = ContextPolicy::shift});
  const auto service = Service::start(engine.get()).value();
  AnswerOrder endless = order(*engine, "Hello");
  endless.token_count_max = 100000;
  endless.sampling.ignore_eos = true;
  const Service::Ticket long_one = service->answer(endless);
  EXPECT_FALSE(long_one.stream->next().empty());
  const Service::Ticket other = service->answer(order(*engine, kExchanges[0].question));
  service->cancel(long_one.id);
  Result<Answer> cut = long_one.stream->wait();
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::cancelled);
  Result<Answer> answer = other.stream->wait();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->text, kExchanges[0].answer);
  service->cancel(long_one.id);  // Of one that has ended nothing comes.
  service->ask([](Engine& asked) {
    asked.cache().clear();
    EXPECT_EQ(asked.memory().usage().used_bytes(), 0u);
  });
}

// After a restart nothing of a prompt is computed; and then, while nobody asks, all of it is, to be
// compared.
TEST(Service, WhatWasStoredIsRestoredAndLookedAtAgain) {
  const test::ScratchFolder folder;
  const EngineOptions options{.cache_dir = folder.file("store"), .cache_audit_interval = 1};
  std::string question = "Hello. ";
  for (int count = 0; count < 20; ++count) question += "What is the capital of France? ";
  std::string expected;
  for (int round = 0; round < 2; ++round) {
    const auto engine = builtin_engine(options);
    const auto service = Service::start(engine.get()).value();
    Result<Answer> answer = service->answer(order(*engine, question)).stream->wait();
    ASSERT_TRUE(answer) << answer.error().message;
    const Answer& made = *answer;
    EXPECT_EQ(made.prompt.from_store, round == 1);
    if (round == 0) expected = made.text;
    if (round == 0) continue;
    EXPECT_EQ(made.text, expected);
    EXPECT_EQ(made.prompt.computed_tokens, 0);
    SequenceStore::Counts counts;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (counts.audited == 0 && std::chrono::steady_clock::now() < end) {
      service->ask([&](Engine& asked) { counts = asked.sequence_store()->counts(); });
    }
    EXPECT_EQ(counts.audited, 1);
    EXPECT_EQ(counts.differing, 0);
    EXPECT_GT(service->stats().idle_rows, 0);
  }
}

// Who does not read its answer is not computed for, and holds up nobody.
TEST(Service, ASlowReaderHoldsUpNobody) {
  const auto engine = builtin_engine({.context_tokens = 256});
  const auto stream = std::make_shared<AnswerStream>();
  chat::OutputEvent large{.kind = chat::OutputEvent::Kind::text, .text = std::string(2 << 20, 'x')};
  stream->add({large});
  EXPECT_TRUE(stream->is_full());
  const auto service = Service::start(engine.get()).value();
  service->submit(std::make_unique<AnswerJob>(engine.get(), order(*engine, "Hello"), stream), {});
  const Service::Ticket other = service->answer(order(*engine, kExchanges[1].question));
  EXPECT_EQ(other.stream->wait()->text, kExchanges[1].answer);
  EXPECT_EQ(service->stats().waiting, 1) << "nobody reads what it would say";
  Result<Answer> late = stream->wait();
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_FALSE(late->text.empty());
}

TEST(Service, ConstraintsAdaptersAndErrorsAreEachRequestsOwn) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  AnswerOrder chosen = order(*engine, kExchanges[0].question);
  chosen.matcher = make_matcher({.choices = {"yes", "no"}}, engine->text()).value();
  AnswerOrder wrong = order(*engine, "Hello");
  wrong.adapters = {{.name = "nobody"}};
  AnswerOrder empty = order(*engine, "Hello");
  empty.prompt.clear();
  const Service::Ticket first = service->answer(std::move(chosen));
  const Service::Ticket second = service->answer(std::move(wrong));
  const Service::Ticket third = service->answer(std::move(empty));
  const Service::Ticket fourth = service->answer(order(*engine, kExchanges[2].question));
  Result<Answer> answer = first.stream->wait();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(answer->text == "yes" || answer->text == "no") << answer->text;
  EXPECT_EQ(second.stream->wait().error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(third.stream->wait().error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(fourth.stream->wait()->text, kExchanges[2].answer);
}

// Of requests with one form, the first compiles it; their states are each one's own.
TEST(Service, ASecondRequestOfTheSameFormCompilesNothing) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  const ConstraintChoice form = {
      .json_schema = R"({"type":"object","properties":{"city":{"type":"string","maxLength":12},
                         "people":{"type":"integer"}},"required":["city","people"]})"};
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      AnswerOrder asked = order(*engine, kExchanges[0].question);
      asked.matcher = make_matcher(form, engine->text(), service->grammars()).value();
      Result<Answer> answer = service->answer(std::move(asked)).stream->wait();
      if (answer && answer->fits_form) text = answer->text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(texts[0].starts_with("{")) << texts[0];
  for (const std::string& text : texts) EXPECT_EQ(text, texts[0]);
  EXPECT_EQ(service->grammar_stats().compiled, 1);
  EXPECT_EQ(service->grammar_stats().found, 3);

  chat::ChatFormat format;
  format.call.shape = chat::CallShape::object;
  format.call.header = {{"<call>", chat::CallField::name}};
  format.call.close = "</call>";
  format.call.name_key = "name";
  format.call.arguments_key = "arguments";
  const std::vector<chat::Tool> tools =
      chat::read_tools(R"([{"name":"look","parameters":{"type":"object"}}])").value();
  for (const char* choice : {"auto", "none", "none", "auto"}) {
    const auto made =
        make_call_matchers(*engine, format, tools, {.choice = choice}, service->grammars());
    ASSERT_TRUE(made) << made.error().message;
  }
  EXPECT_EQ(service->grammar_stats().compiled, 3);
  EXPECT_EQ(service->grammar_stats().found, 5);
}

TEST(Service, TenantsHaveSharesOfTheGrammarsThatAreKept) {
  if (test::kIsSlow) GTEST_SKIP() << "compiles megabytes; the cache's own tests take the same ways";
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  const auto compile = [&](uint64_t tenant, const std::string& text) {
    const auto made = service->grammars(tenant).get(Sha256().add(text).finish(), [&] {
      return grammar::compile_gbnf("root ::= \"" + text + "\"");
    });
    EXPECT_TRUE(made) << made.error().message;
  };
  service->set_tenants(std::make_shared<TenantShares>(TenantShares{.tenants = {1, 2}}));
  compile(1, "small");
  for (char letter = 'a'; letter <= 'p'; ++letter) compile(2, std::string(200'000, letter));
  EXPECT_GT(service->grammar_stats().bytes, GrammarCache::kBytesMax / 10 * 8);
  EXPECT_LE(service->grammar_stats().bytes, GrammarCache::kBytesMax);
  compile(1, "small");
  EXPECT_EQ(service->grammar_stats().found, 1);
  compile(2, std::string(200'000, 'a'));
  EXPECT_EQ(service->grammar_stats().found, 1);
}

// Who does not wait is told when there is more, and reads the same.
TEST(Service, StreamsTellWhenThereIsMore) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  AnswerOrder wanted = order(*engine, kExchanges[0].question);
  wanted.sampling.probability_count = 2;
  const Service::Ticket ticket = service->answer(std::move(wanted));
  std::mutex mutex;
  std::condition_variable changed;
  int told_count = 0, heard_count = 0;
  ticket.stream->listen([&] {
    const std::lock_guard lock(mutex);
    ++told_count;
    changed.notify_all();
  });
  std::string text;
  size_t probability_count = 0;
  bool has_begun = false;
  for (;;) {
    AnswerPiece piece = ticket.stream->take();
    for (const chat::OutputEvent& event : piece.events) text += event.text;
    probability_count += piece.probabilities.size();
    has_begun = has_begun || piece.prompt.has_value();
    EXPECT_TRUE(has_begun || text.empty()) << "a prompt is begun before its answer";
    if (piece.has_ended) break;
    std::unique_lock lock(mutex);
    ASSERT_TRUE(
        changed.wait_for(lock, std::chrono::seconds(60), [&] { return told_count > heard_count; }));
    heard_count = told_count;
  }
  ticket.stream->listen({});
  EXPECT_TRUE(has_begun);
  EXPECT_EQ(text, kExchanges[0].answer);
  Result<Answer> answer = ticket.stream->wait();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(probability_count, answer->probabilities.size());
  EXPECT_EQ(probability_count, answer->tokens.size());
}

// Between two steps the engine is its caller's, and idle work that was cancelled holds nothing.
TEST(Service, LendsTheEngine) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  const Service::Ticket ticket = service->answer(order(*engine, kExchanges[0].question));
  for (int round = 0; round < 50; ++round) {
    const std::lock_guard lock(*service);
    Lane lane(engine.get());
    LaneBatch batch(engine.get());
    ASSERT_TRUE(lane.start(order(*engine, "Hello").prompt));
    while (lane.wants_rows()) ASSERT_TRUE(batch.step(lane));
  }
  Result<Answer> answer = ticket.stream->wait();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->text, kExchanges[0].answer);
}

// A conversation that was loaded is computed before the next message is there.
TEST(Service, ReadsAhead) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  std::unique_lock lock(*service);
  const ChatOptions greedy{.sampling = {.temperature = 0}};
  ChatSession first = ChatSession::start(engine.get(), greedy).value();
  EXPECT_TRUE(first.next_beginning()->tokens.empty());
  ASSERT_TRUE(answered(first, first.say(kExchanges[0].question)));
  const test::ScratchFolder folder;
  ASSERT_TRUE(first.save(folder.file("chat.json")));
  first = ChatSession::start(engine.get(), greedy).value();
  engine->cache().clear();

  ChatSession session = ChatSession::start(engine.get(), greedy).value();
  ASSERT_TRUE(session.load(folder.file("chat.json")));
  Result<PromptBeginning> beginning = session.next_beginning();
  ASSERT_TRUE(beginning);
  const int32_t unread = int32_t(beginning->tokens.size());
  ASSERT_GT(unread, 10);
  service->submit(std::make_unique<ReadAhead>(engine.get(), std::move(beginning).value()),
                  {.is_idle = true});
  lock.unlock();
  for (bool is_read = false; !is_read; std::this_thread::yield()) {
    const SchedulerStats stats = service->stats();
    is_read = stats.idle_rows == unread && stats.running == 0;
  }
  lock.lock();
  EXPECT_TRUE(session.next_beginning()->tokens.empty());
  Result<Answer> next = answered(session, session.say(kExchanges[1].question));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->text, kExchanges[1].answer);
  EXPECT_EQ(next->prompt.reused_tokens, unread);
}

// A stop needs no reader: who has gone away would keep the answer for ever.
TEST(Service, AStopReachesAnAnswerThatNobodyReads) {
  const auto engine = builtin_engine({.context_policy = ContextPolicy::shift});
  const auto service = Service::start(engine.get()).value();
  const auto stream = std::make_shared<AnswerStream>();
  const auto stop = std::make_shared<std::atomic<bool>>(false);
  AnswerOrder endless = order(*engine, "Hello");
  endless.token_count_max = 100000;
  endless.sampling.ignore_eos = true;
  endless.wants_stop = stop;
  service->submit(std::make_unique<AnswerJob>(engine.get(), std::move(endless), stream), {});
  EXPECT_FALSE(stream->next().empty());
  chat::OutputEvent large{.kind = chat::OutputEvent::Kind::text, .text = std::string(2 << 20, 'x')};
  stream->add({large});
  EXPECT_EQ(service->stats().running, 1);
  *stop = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (service->stats().running > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_EQ(service->stats().running, 0);
  Result<Answer> answer = stream->wait();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->finish, FinishReason::interrupted);
}

// What was chosen when the stop came is no token of the answer, and none of its receipt.
TEST(Service, AReceiptOfAStoppedAnswerHasItsTokens) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  for (const char* drafts : {"off", "auto"}) {
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    AnswerOrder endless = order(*engine, "Tell me a story.");
    endless.token_count_max = 1000;
    endless.sampling = {.temperature = 1.2f, .ignore_eos = true, .seed = 3};
    endless.receipt = ReceiptForm{};
    endless.drafts.choice = parse_draft_choice(drafts).value();
    endless.wants_stop = stop;
    const Service::Ticket ticket = service->answer(std::move(endless));
    for (int count = 0; count < 8; ++count) EXPECT_FALSE(ticket.stream->next().empty());
    *stop = true;
    Result<Answer> answer = ticket.stream->wait();
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_EQ(answer->finish, FinishReason::interrupted);
    std::vector<Token> told;
    for (const Choice& choice : answer->receipt->choices) told.push_back(choice.token);
    EXPECT_EQ(told, answer->tokens);
    service->ask([&](Engine& asked) {
      Result<Receipt> again = replay(asked, *answer->receipt);
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_FALSE(difference_of(*answer->receipt, *again));
    });
  }
}

// The last step, too, in which an answer ends inside a draft.
TEST(Service, ReportsHaveAllDraftsThatWereComputed) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get(), {.checks_all_drafts = true}).value();
  AnswerOrder plain = order(*engine, "Tell me a story.");
  plain.sampling.ignore_eos = true;
  plain.drafts.choice = parse_draft_choice("off").value();
  const Answer known = service->answer(plain).stream->wait().value();
  ASSERT_EQ(known.tokens.size(), 60u);
  for (const size_t cut : {8, 12, 20, 30, 45}) {
    SCOPED_TRACE(cut);
    const SchedulerStats before = service->stats();
    AnswerOrder drafted = plain;
    drafted.drafts = {.choice = parse_draft_choice("prediction").value(),
                      .prediction = known.tokens};
    drafted.stop.emplace_back();
    for (size_t token = cut; token < cut + 3; ++token) {
      drafted.stop.back() += engine->tokenizer()->piece(known.tokens[token]);
    }
    const Answer answer = service->answer(std::move(drafted)).stream->wait().value();
    const SchedulerStats after = service->stats();
    ASSERT_TRUE(answer.drafts);
    EXPECT_GT(answer.drafts->accepted(), 0);
    EXPECT_EQ(answer.drafts->drafted(), after.draft_rows - before.draft_rows);
    EXPECT_EQ(answer.drafts->accepted(), after.accepted_drafts - before.accepted_drafts);
  }
}

constexpr char kNano[] = CAIRN_SOURCE "/assets/nano.gguf";

// Plans for adapters take memory and time: who waits has none, and what nobody uses goes.
TEST(Service, PlansForAdaptersAreThoseOfTheRequestsThatRun) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("tone.gguf");
  test::write_random_adapter(kNano, path, 1);
  const auto engine = builtin_engine(
      {.context_policy = ContextPolicy::shift, .adapters = {{.path = path, .scale = 0}}});
  const auto service = Service::start(engine.get(), {.running_max = 12}).value();
  const auto variant_count = [&] {
    int32_t count = 0;
    service->ask([&](Engine& asked) { count = asked.runner().variant_count(); });
    return count;
  };
  const auto answer = [&](int32_t round, int32_t token_count) {
    AnswerOrder own = order(*engine, "Hello");
    own.token_count_max = token_count;
    own.sampling.ignore_eos = true;
    own.adapters = {{.name = "tone", .scale = 0.01f * float(round)}};
    return service->answer(std::move(own), {.client = "many"});
  };
  std::vector<Service::Ticket> tickets;
  for (int32_t round = 1; round <= 40; ++round) tickets.push_back(answer(round, 100000));
  while (service->stats().running < 12) std::this_thread::yield();
  EXPECT_EQ(variant_count(), 13) << "the model's own, and one for each that runs";
  for (const Service::Ticket& ticket : tickets) service->cancel(ticket.id);
  for (const Service::Ticket& ticket : tickets) EXPECT_FALSE(ticket.stream->wait());
  EXPECT_TRUE(answer(50, 1).stream->wait());
  EXPECT_LE(variant_count(), 9);
}

// A step waits for one recording at most, and who needs none waits for nobody.
TEST(Service, PlansAreRecordedOneInAStep) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("tone.gguf");
  test::write_random_adapter(kNano, path, 1);
  const auto engine = builtin_engine({.adapters = {{.path = path, .scale = 0}}});
  Scheduler scheduler(engine.get());
  int64_t next_id = 0;
  const auto submit = [&](float scale) {
    AnswerOrder own = order(*engine, "Question " + std::to_string(next_id));
    own.adapters = {{.name = "tone", .scale = scale}};
    scheduler.submit(
        JobId{next_id++},
        std::make_unique<AnswerJob>(engine.get(), std::move(own), std::make_shared<AnswerStream>()),
        {});
  };
  for (int32_t count = 1; count <= 5; ++count) submit(0.1f * float(count));
  submit(0);
  for (int32_t step = 1; step <= 5; ++step) {
    ASSERT_TRUE(scheduler.step());
    EXPECT_EQ(scheduler.stats().running, step + 1);
    EXPECT_EQ(engine->runner().variant_count(), step + 1);
  }
  submit(0.1f);
  submit(0.2f);
  ASSERT_TRUE(scheduler.step());
  EXPECT_EQ(scheduler.stats().running, 8) << "their plans are here";
}

TEST(Service, EmbedsTextsOfManyClients) {
  using test::embedding_options;
  const auto engine =
      test::load_engine(test::embedding_path("bert", ".gguf"), embedding_options(Pooling::mean));
  ASSERT_NE(engine, nullptr);
  std::vector<std::vector<Token>> texts;
  for (int32_t text = 0; text < 12; ++text) {
    std::vector<Token> tokens;
    for (int32_t index = 0; index <= 3 * text; ++index) {
      tokens.push_back(Token(5 + 7 * index + text));
    }
    texts.push_back(std::move(tokens));
  }
  const std::vector<Embedding> expected = Embedder(engine.get(), {}).embed(texts).value();
  const auto service = Service::start(engine.get()).value();
  std::vector<std::future<Result<std::vector<Embedding>>>> made;
  for (int client = 0; client < 4; ++client) {
    made.push_back(service->embed(texts, {}, {.client = std::to_string(client)}));
  }
  auto wrong = service->embed({{Token(1)}, {Token(1 << 20)}});
  for (auto& each : made) {
    Result<std::vector<Embedding>> found = each.get();
    ASSERT_TRUE(found);
    for (size_t text = 0; text < texts.size(); ++text) {
      EXPECT_EQ((*found)[text].values, expected[text].values) << text;
    }
  }
  Result<std::vector<Embedding>> refused = wrong.get();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.starts_with("text 2: ")) << refused.error().message;
}

TEST(Service, StopsInTheMiddle) {
  const auto engine = builtin_engine();
  std::vector<Service::Ticket> tickets;
  {
    const auto service = Service::start(engine.get()).value();
    for (int count = 0; count < 8; ++count) {
      tickets.push_back(service->answer(order(*engine, "Hi")));
    }
    chat::OutputEvent large{.kind = chat::OutputEvent::Kind::text,
                            .text = std::string(2 << 20, 'x')};
    tickets.front().stream->add({large});
  }
  // A reader that is late wakes nobody.
  EXPECT_FALSE(tickets.front().stream->next().empty());
  for (const Service::Ticket& ticket : tickets) {
    Result<Answer> answer = ticket.stream->wait();
    EXPECT_TRUE(answer || answer.error().code == ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace cairn::session::service_test
