// What is said of the built-in model's memory while it answers and afterwards. Covers
// memory_watch.h too.
#include "session/memory_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "cli/commands/load.h"
#include "session/conversation.h"
#include "session/service.h"
#include "tests/scratch_folder.h"

namespace cairn::session::memory_report_test {
namespace {

constexpr std::chrono::seconds kPatience(60);

std::unique_ptr<Engine> builtin_engine(EngineOptions options = {}) {
  return cli::load_engine("", std::move(options)).value();
}

AnswerOrder order(const Engine& engine, const std::string& question) {
  const std::vector<Message> messages = {{"user", question}};
  Prompt prompt = encode_conversation(engine, messages).value();
  return {.prompt = prompt.tokens,
          .message_starts = prompt.message_starts,
          .token_count_max = 60,
          .sampling = {.temperature = 0}};
}

TEST(MemoryReport, TotalsAddUp) {
  const std::unique_ptr<Engine> engine = builtin_engine();
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  ASSERT_TRUE(service->answer(order(*engine, "What is the capital of France?")).stream->wait());
  const MemoryReport report = service->memory_report();
  const ProcessReport& process = report.process;
  EXPECT_GT(process.resident, 0u);
  EXPECT_GT(process.files, 0u);
  EXPECT_LT(process.files, process.resident);
  EXPECT_EQ(process.conversations, report.usage.used_bytes() + report.usage.warm_bytes);
  EXPECT_EQ(int64_t(process.files + process.weights + process.steps + process.conversations) +
                process.rest,
            int64_t(process.resident));
  size_t used_bytes = 0;
  for (const SequenceReport& sequence : report.sequences) {
    for (const memory::GroupMap& group : sequence.groups) used_bytes += group.bytes;
  }
  EXPECT_EQ(used_bytes, report.usage.used_bytes()) << "one sequence has all there is";
  EXPECT_FALSE(report.store);
}

TEST(MemoryReport, LayersHaveGroups) {
  const std::unique_ptr<Engine> engine = builtin_engine();
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  const MemoryReport report = service->memory_report();
  std::vector<int32_t> layers;
  for (const GroupReport& group : report.groups) {
    EXPECT_FALSE(group.kind.empty());
    EXPECT_GT(group.block_bytes, 0u);
    EXPECT_EQ(group.window > 0, group.kind == "window" || group.kind == "chunked");
    layers.insert(layers.end(), group.layers.begin(), group.layers.end());
  }
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  EXPECT_EQ(int32_t(layers.size()), engine->size().layer_count);
  EXPECT_TRUE(report.sequences.empty());
}

TEST(MemoryReport, NeighboursBeginAlike) {
  const std::unique_ptr<Engine> engine = builtin_engine();
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  for (const char* question : {"What is the capital of France?", "What is the opposite of early?",
                               "What is the capital of Norway?"}) {
    ASSERT_TRUE(service->answer(order(*engine, question)).stream->wait());
  }
  const MemoryReport report = service->memory_report();
  ASSERT_EQ(report.sequences.size(), 3u);
  const std::vector<SequenceReport>& all = report.sequences;
  EXPECT_EQ(all[0].common, 0);
  int32_t least = INT32_MAX, most = 0;
  for (size_t index = 1; index < all.size(); ++index) {
    EXPECT_LT(all[index].common, all[index].length);
    least = std::min(least, all[index].common);
    most = std::max(most, all[index].common);
  }
  EXPECT_GT(least, 0) << "all of them begin with the template's text";
  EXPECT_GT(most, least) << "two of them ask for a capital";
  for (const SequenceReport& sequence : all) {
    EXPECT_EQ(sequence.use, "kept");
    EXPECT_TRUE(sequence.id.starts_with("kept-")) << sequence.id;
    EXPECT_FALSE(sequence.marks.empty());
    EXPECT_FALSE(sequence.is_stored);
  }
}

TEST(MemoryReport, PricesArePromptsThatWereNotRead) {
  const std::unique_ptr<Engine> engine = builtin_engine();
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  const AnswerOrder asked = order(*engine, "What is the capital of France?");
  const auto priced = [&] {
    PricedPrompt found;
    service->ask([&](Engine& own) { found = price(own, asked.prompt); });
    return found;
  };
  const PricedPrompt before = priced();
  EXPECT_EQ(before.plan.resume, 0);
  EXPECT_EQ(before.plan.forward_tokens, int32_t(asked.prompt.size()));
  EXPECT_EQ(before.sequence, "");
  ASSERT_TRUE(service->answer(asked).stream->wait());
  const PricedPrompt after = priced();
  EXPECT_EQ(after.plan.resume, int32_t(asked.prompt.size())) << "its end is a snapshot";
  EXPECT_EQ(after.plan.forward_tokens, 0);
  EXPECT_EQ(after.sequence, service->memory_report().sequences.at(0).id);
  Result<Answer> again = service->answer(asked).stream->wait();
  EXPECT_EQ(again->prompt.reused_tokens, after.plan.resume);
}

TEST(MemoryReport, WhatIsOnTheDiskIsSaid) {
  const test::ScratchFolder folder;
  const std::unique_ptr<Engine> engine = builtin_engine({.cache_dir = folder.file("store")});
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  // Long enough for a whole record.
  std::string question = "Remember: blue is 17.";
  for (int32_t turn = 0; turn < 40; ++turn) question += " What is the capital of France?";
  ASSERT_TRUE(service->answer(order(*engine, question)).stream->wait());
  service->ask([](Engine& own) { own.sequence_store()->drain(); });
  const MemoryReport report = service->memory_report();
  ASSERT_TRUE(report.store);
  EXPECT_GT(report.store->entries, 0u);
  ASSERT_FALSE(report.sequences.empty());
  EXPECT_TRUE(report.sequences[0].is_stored);
}

// Reports come while something changes, the last one after the last change, and then no more.
TEST(MemoryWatch, IsToldOfChanges) {
  const std::unique_ptr<Engine> engine = builtin_engine();
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  std::mutex mutex;
  std::condition_variable changed;
  int32_t told = 0;
  const std::shared_ptr<MemoryWatch> watch = service->watch_memory();
  ASSERT_NE(watch, nullptr);
  watch->listen([&] {
    const std::lock_guard lock(mutex);
    ++told;
    changed.notify_all();
  });
  std::shared_ptr<const MemoryReport> newest;
  const auto wait_for = [&](auto&& is_so) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < end) {
      if (auto report = watch->take()) newest = std::move(report);
      if (newest != nullptr && is_so(*newest)) return true;
      std::unique_lock lock(mutex);
      changed.wait_for(lock, std::chrono::milliseconds(20));
    }
    return false;
  };
  EXPECT_TRUE(wait_for([](const MemoryReport& report) { return report.sequences.empty(); }));
  ASSERT_TRUE(service->answer(order(*engine, "What is the capital of France?")).stream->wait());
  EXPECT_TRUE(wait_for([](const MemoryReport& report) {
    return report.sequences.size() == 1 && report.sequences[0].use == "kept";
  }));
  watch->listen({});
  EXPECT_GT(told, 0);
}

TEST(MemoryWatch, ThereAreOnlySoMany) {
  const std::unique_ptr<Engine> engine = builtin_engine();
  const std::unique_ptr<Service> service = Service::start(engine.get()).value();
  std::vector<std::shared_ptr<MemoryWatch>> watches;
  for (size_t count = 0; count < Service::kWatchesMax; ++count) {
    watches.push_back(service->watch_memory());
    EXPECT_NE(watches.back(), nullptr);
  }
  EXPECT_EQ(service->watch_memory(), nullptr);
  watches.pop_back();
  // The engine's thread may have it for a moment.
  std::shared_ptr<MemoryWatch> again;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (again == nullptr && std::chrono::steady_clock::now() < end) {
    again = service->watch_memory();
  }
  EXPECT_NE(again, nullptr);
}

}  // namespace
}  // namespace cairn::session::memory_report_test
