// What a request submits and when, with the engine's thread held where it matters.
#include "serve/generation.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/load.h"
#include "session/service.h"

namespace cairn::serve::generation_test {
namespace {

// Who stops the engine's thread in each step, and lets it go on.
class Gate {
 public:
  // In the engine's thread.
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_count_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_ || passed_count_ == arrived_count_; });
  }
  bool is_open() {
    const std::lock_guard lock(mutex_);
    return is_open_;
  }
  // In the test's.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_count_ > passed_count_; });
  }
  void let_go() {
    wait();
    const std::lock_guard lock(mutex_);
    passed_count_ = arrived_count_;
    changed_.notify_all();
  }
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int arrived_count_ = 0, passed_count_ = 0;
  bool is_open_ = false;
};

// Runs until its gate is open.
class GateJob final : public Job {
 public:
  explicit GateJob(Gate* gate) : gate_(*gate) {}

  Lane* lane() override { return nullptr; }
  memory::Variant variant() const override { return memory::Variant::plain; }
  std::span<const Token> prompt() const override { return {}; }
  memory::ResumePlan plan() override { return {}; }
  Status start() override { return Ok{}; }
  Status advance() override {
    gate_.pass();
    return Ok{};
  }
  bool is_done() const override { return gate_.is_open(); }
  void end(Status) override {}

 private:
  Gate& gate_;
};

// Counts what ends.
class CountingWriter final : public AnswerWriter {
 public:
  bool is_stream() const override { return false; }
  void begin(const PromptReport&, std::string&) override {}
  void add(size_t, const session::AnswerPiece&, std::string&) override {}
  void end_choice(size_t, const session::Answer&, std::string&) override {}
  void end(std::span<const session::Answer> answers, std::string& out) override {
    out += std::to_string(answers.size()) + " answers";
  }
  void fail(const Refusal&, std::string&) override {}
};

session::AnswerOrder order(const Engine& engine) {
  return {.prompt = engine.tokenizer()->encode("One"), .token_count_max = 1};
}

// One before and one behind all answers in each step. In the first one both are there.
void submit(session::Service& service, Gate& before, Gate& behind) {
  {
    const std::lock_guard held(service);
    service.submit(std::make_unique<GateJob>(&before), {.client = "gate", .priority = 2});
    service.submit(std::make_unique<GateJob>(&behind), {.client = "gate", .priority = -2});
  }
  before.wait();
}

// An answer that the full queue refuses when the others have ended, and been read, is submitted
// again at once: nobody is left whose end would do it.
TEST(Generation, WhatIsRefusedAfterAllOthersEndedIsSubmittedAgain) {
  const auto engine = cli::load_engine("", {}).value();
  Gate before, behind;  // The service's thread passes them to its end.
  const auto service =
      session::Service::start(engine.get(), {.running_max = 3, .waiting_max = 3}).value();
  // One place is left for answers.
  submit(*service, before, behind);
  ModelMetrics metrics;
  std::vector<session::AnswerOrder> orders(4, order(*engine));
  Generation generation(service.get(), std::move(orders), {}, std::make_unique<CountingWriter>(),
                        &metrics, nullptr);
  generation.listen([] {});
  const auto fill = [&] { (void)service->answer(order(*engine), {.priority = -1}); };
  const auto step = [&] {
    before.let_go();
    behind.let_go();
    before.wait();
  };
  std::string out;
  step();  // The first answer begins.
  step();
  before.let_go();
  behind.wait();
  fill();
  fill();
  behind.let_go();
  before.wait();  // The third one is about to end; two were read.
  fill();
  EXPECT_EQ(generation.read(out), http::Reply::State::waiting);  // Submits the fourth one.
  before.let_go();
  behind.wait();  // The third one has ended.
  EXPECT_EQ(generation.read(out), http::Reply::State::waiting);
  behind.let_go();
  before.wait();  // The fourth one is refused.
  EXPECT_EQ(generation.read(out), http::Reply::State::waiting);
  before.open();
  behind.open();
  for (;;) {
    const SchedulerStats stats = service->stats();
    if (stats.running + stats.waiting == 0) break;
  }
  EXPECT_EQ(generation.read(out), http::Reply::State::ended);
  EXPECT_EQ(out, "4 answers");
}

// When the others have gone, answers are made side by side again.
TEST(Generation, AQueueThatWasFullOnceMakesTheRestNoSlower) {
  const auto engine = cli::load_engine("", {}).value();
  Gate before, behind;  // The service's thread passes them to its end.
  const auto service =
      session::Service::start(engine.get(), {.running_max = 4, .waiting_max = 4}).value();
  // Two places are left.
  submit(*service, before, behind);
  for (int count = 0; count < 3; ++count) {
    (void)service->answer(order(*engine), {.priority = -1});
  }
  ModelMetrics metrics;
  std::vector<session::AnswerOrder> orders(6, order(*engine));
  Generation generation(service.get(), std::move(orders), {}, std::make_unique<CountingWriter>(),
                        &metrics, nullptr);
  generation.listen([] {});
  std::string out;
  int step_count = 0;
  while (generation.read(out) == http::Reply::State::waiting && step_count < 100) {
    before.let_go();
    behind.let_go();
    before.wait();
    ++step_count;
  }
  EXPECT_EQ(out, "6 answers");
  EXPECT_LE(step_count, 8) << "one after the other takes twelve";
  before.open();
  behind.open();
}

}  // namespace
}  // namespace cairn::serve::generation_test
