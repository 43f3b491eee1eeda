// Beginnings that stay for a while: their times, their share of the memory, and who gives way.
#include "session/prompt_pins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/load.h"
#include "session/service.h"

namespace cairn::session::prompt_pins_test {
namespace {

using namespace std::chrono_literals;

constexpr int32_t kTokens = 96;

std::unique_ptr<Engine> engine_with(size_t budget) {
  return cli::load_engine("", {.memory_budget = budget}).value();
}

std::vector<Token> tokens_of(int32_t number) {
  std::vector<Token> tokens(size_t(kTokens), Token(10 + number % 100));
  tokens[0] = Token(10 + number / 100);
  return tokens;
}

memory::Sequence read(Engine& engine, int32_t number) {
  memory::Sequence sequence = engine.memory().new_sequence();
  const std::vector<Token> tokens = tokens_of(number);
  const StepItem item{.sequence = &sequence, .tokens = tokens};
  EXPECT_TRUE(engine.step({&item, 1}));
  return sequence;
}

TEST(PromptPins, StayForTheirTimeFromTheLastRequestOn) {
  const std::unique_ptr<Engine> engine = engine_with(size_t(64) << 20);
  PromptPins pins(engine.get());
  const auto begin = PromptPins::Clock::now();
  const memory::Sequence sequence = read(*engine, 1);
  EXPECT_EQ(pins.keep(sequence, {kTokens, 300s}, begin), kTokens);
  const size_t bytes = engine->cache().pinned_bytes();
  EXPECT_GT(bytes, 0u);
  pins.release_old(begin + 200s);
  EXPECT_EQ(pins.keep(sequence, {kTokens, 300s}, begin + 200s), kTokens);
  EXPECT_EQ(engine->cache().pinned_bytes(), bytes) << "it is one";
  pins.release_old(begin + 499s);
  EXPECT_EQ(engine->cache().pinned_bytes(), bytes);
  pins.release_old(begin + 500s);
  EXPECT_EQ(engine->cache().pinned_bytes(), 0u);
  EXPECT_EQ(engine->cache().entry_count(), 1u) << "it is kept like others";
}

TEST(PromptPins, HoldAPartOfTheMemoryAndTheOldestGoFirst) {
  const size_t budget = size_t(8) << 20;
  const std::unique_ptr<Engine> engine = engine_with(budget);
  PromptPins pins(engine.get());
  const auto is_pinned = [&](int32_t number) {
    const std::vector<Token> tokens = tokens_of(number);
    for (const memory::PrefixCache::Listed& entry : engine->cache().list()) {
      if (entry.is_pinned && std::ranges::equal(entry.sequence->tokens(), tokens)) return true;
    }
    return false;
  };
  int32_t count = 0;
  while (count < 500 && (count == 0 || is_pinned(0))) {
    EXPECT_EQ(pins.keep(read(*engine, count), {kTokens, 3600s}), kTokens);
    EXPECT_LE(engine->cache().pinned_bytes(), budget / PromptPins::kBudgetShare);
    ++count;
  }
  EXPECT_GT(count, 1);
  EXPECT_LT(count, 500) << "the oldest never went";
  EXPECT_TRUE(is_pinned(count - 1));
}

// A prompt that needs nearly all of the memory gets it.
TEST(PromptPins, GiveWayBeforeARequestFails) {
  const std::unique_ptr<Engine> engine = engine_with(size_t(4) << 20);
  const auto service = Service::start(engine.get()).value();
  const auto answer = [&](std::vector<Token> prompt, std::vector<PromptPin> pins) {
    AnswerOrder order{.prompt = std::move(prompt), .token_count_max = 1, .pins = std::move(pins)};
    order.sampling.temperature = 0;
    return service->answer(std::move(order)).stream->wait();
  };
  Result<Answer> first = answer(tokens_of(1), {{kTokens, 3600s}});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->pinned_tokens, kTokens);
  size_t pinned = 0;
  service->ask([&](Engine& own) { pinned = own.cache().pinned_bytes(); });
  EXPECT_GT(pinned, 0u);
  // As many tokens as there is room for, and none beside them.
  const int32_t all = engine->options().context_tokens;
  std::vector<Token> prompt(size_t(all - 1), Token(20));
  for (int32_t i = 0; i < 50; ++i) prompt[size_t(i)] = Token(30 + i);
  Result<Answer> large = answer(prompt, {});
  ASSERT_TRUE(large) << large.error().message;
  service->ask([&](Engine& own) { pinned = own.cache().pinned_bytes(); });
  EXPECT_EQ(pinned, 0u) << "there was room for both: the test shows nothing";
}

}  // namespace
}  // namespace cairn::session::prompt_pins_test
