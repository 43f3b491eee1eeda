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

memory::Sequence read(Engine& engine, const std::vector<Token>& tokens, uint64_t tenant = 0) {
  memory::Variant variant = engine.memory().options().default_variant;
  variant.tenant = tenant;
  memory::Sequence sequence = engine.memory().new_sequence(variant);
  const StepItem item{.sequence = &sequence, .tokens = tokens};
  EXPECT_TRUE(engine.step({&item, 1}));
  return sequence;
}

memory::Sequence read(Engine& engine, int32_t number, uint64_t tenant = 0) {
  return read(engine, tokens_of(number), tenant);
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

// What cannot be pinned at all leaves the pins that there are.
TEST(PromptPins, TooLargeAnOneTakesNoOthersPlace) {
  const std::unique_ptr<Engine> engine = engine_with(size_t(8) << 20);
  PromptPins pins(engine.get());
  EXPECT_EQ(pins.keep(read(*engine, 1), {kTokens, 3600s}), kTokens);
  const size_t pinned = engine->cache().pinned_bytes();
  engine->cache().set_pin_quota(pinned + 1);
  std::vector<Token> tokens = tokens_of(2);
  const std::vector<Token> more = tokens_of(3);
  tokens.insert(tokens.end(), more.begin(), more.end());
  EXPECT_EQ(pins.keep(read(*engine, tokens), {2 * kTokens, 3600s}), 0);
  EXPECT_EQ(engine->cache().pinned_bytes(), pinned);
}

// Tenants do not push out each other's.
TEST(PromptPins, OfTenantsHaveAPartEach) {
  const size_t budget = size_t(8) << 20;
  const std::unique_ptr<Engine> engine = engine_with(budget);
  engine->cache().set_shares({1, 2}, budget / 2);
  PromptPins pins(engine.get());
  ASSERT_EQ(engine->cache().pin_quota(), budget / PromptPins::kBudgetShare / 2);
  EXPECT_EQ(pins.keep(read(*engine, 0, 2), {kTokens, 3600s}), kTokens);
  const size_t of_other = engine->cache().pinned_bytes();
  for (int32_t number = 1; number < 40; ++number) {
    EXPECT_EQ(pins.keep(read(*engine, number, 1), {kTokens, 3600s}), kTokens);
    EXPECT_LE(engine->cache().pinned_bytes(), engine->cache().pin_quota() + of_other);
  }
  const std::vector<Token> first = tokens_of(0);
  const std::vector<memory::PrefixCache::Listed> entries = engine->cache().list();
  EXPECT_TRUE(std::ranges::any_of(entries, [&](const memory::PrefixCache::Listed& entry) {
    return entry.is_pinned && std::ranges::equal(entry.sequence->tokens(), first);
  }));
}

// An engine with little memory, and what answers in it.
struct Small {
  explicit Small(size_t more_bytes = 0) : engine(engine_with((size_t(2) << 20) + more_bytes)) {}

  std::unique_ptr<Engine> engine;
  std::unique_ptr<Service> service = Service::start(engine.get()).value();

  Result<Answer> answer(std::vector<Token> prompt, std::vector<PromptPin> pins = {},
                        uint64_t tenant = 0) const {
    AnswerOrder order{.prompt = std::move(prompt), .token_count_max = 1, .pins = std::move(pins)};
    order.sampling.temperature = 0;
    order.tenant = tenant;
    return service->answer(std::move(order)).stream->wait();
  }
  size_t pinned_bytes() const {
    size_t bytes = 0;
    service->ask([&](Engine& own) { bytes = own.cache().pinned_bytes(); });
    return bytes;
  }
};

std::vector<Token> prompt_of(int32_t count) {
  std::vector<Token> prompt(size_t(count), Token(20));
  for (int32_t i = 0; i < 50; ++i) prompt[size_t(i)] = Token(30 + i);
  return prompt;
}

// A prompt that needs all of the memory gets it, also from another tenant's pins. How much it needs
// changes a little with the lengths of its steps, by less than a pin holds.
TEST(PromptPins, GiveWayBeforeARequestFails) {
  int32_t most = 256;
  for (const int32_t step : {1024, 256, 64}) {
    while (most < 20000 && Small().answer(prompt_of(most + step))) most += step;
  }
  ASSERT_LT(most, 20000) << "the memory never was full";
  for (const uint64_t tenant : {uint64_t(0), uint64_t(7)}) {
    const Small small(size_t(64) << 10);
    Result<Answer> first = small.answer(tokens_of(1), {{kTokens, 3600s}}, tenant);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_EQ(first->pinned_tokens, kTokens);
    EXPECT_GT(small.pinned_bytes(), size_t(64) << 10);
    const Result<Answer> large = small.answer(prompt_of(most));
    ASSERT_TRUE(large) << large.error().message;
    EXPECT_EQ(small.pinned_bytes(), 0u) << "there was room for both: the test shows nothing";
  }
}

}  // namespace
}  // namespace cairn::session::prompt_pins_test
