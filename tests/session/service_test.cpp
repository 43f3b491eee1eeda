// Many threads that use one engine at once, with the built-in model: each is answered as if it were
// alone. Covers answer_job.cpp and answer_stream.cpp too.
#include "session/service.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "cli/commands/load.h"
#include "session/constraint.h"
#include "session/conversation.h"

namespace cairn::session {
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
  const auto engine = builtin_engine();
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
  EXPECT_EQ(service->stats().running, 1);
  Result<Answer> late = stream->wait();
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_FALSE(late->text.empty());
}

TEST(Service, ConstraintsAdaptersAndErrorsAreEachRequestsOwn) {
  const auto engine = builtin_engine();
  const auto service = Service::start(engine.get()).value();
  AnswerOrder chosen = order(*engine, kExchanges[0].question);
  chosen.matcher = make_matcher({.choices = {"yes", "no"}}, *engine).value();
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

TEST(Service, StopsInTheMiddle) {
  const auto engine = builtin_engine();
  std::vector<Service::Ticket> tickets;
  {
    const auto service = Service::start(engine.get()).value();
    for (int count = 0; count < 8; ++count) tickets.push_back(service->answer(order(*engine, "Hi")));
  }
  for (const Service::Ticket& ticket : tickets) {
    Result<Answer> answer = ticket.stream->wait();
    EXPECT_TRUE(answer || answer.error().code == ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace cairn::session
