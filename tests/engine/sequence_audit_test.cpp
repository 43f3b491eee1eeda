// What was loaded is computed again while nothing else is to be done: an honest sequence stays, one
// that differs in a bit leaves memory and disk, and the work waits for that of others.
#include "engine/schedule/sequence_audit.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "engine/generator.h"
#include "engine/schedule/scheduler.h"
#include "memory/archive.h"
#include "tests/engine/random_adapter.h"
#include "tests/engine/sampled_job.h"
#include "tests/fast_here.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"

namespace cairn::test::sequence_audit_test {
namespace {

using Tokens = std::vector<Token>;

Tokens random_tokens(uint32_t seed, int32_t count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) tokens.push_back(Token(int32_t(random() % 384)));
  return tokens;
}

class SequenceAuditTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Engine> engine(int32_t audit_interval = 1,
                                 Numerics numerics = Numerics::exact_1) {
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = 48;
    options.log_step = 8;
    options.cache_dir = folder_.file("store");
    options.cache_audit_interval = audit_interval;
    options.numerics = numerics;
    return load_engine(golden_path(GetParam(), ".gguf"), options);
  }

  void SetUp() override { store(Numerics::exact_1); }

  void store(Numerics numerics) {
    const auto first = engine(0, numerics);
    Generator generator(first.get());
    ASSERT_TRUE(bool(generator.read(prompt_)));
    for (const Token token : {Token(3), Token(4), Token(5)}) {
      ASSERT_TRUE(bool(generator.advance(token)));
    }
    ASSERT_TRUE(bool(generator.finish_turn()));
  }

  // Reads the prompt as the store has it; the entry of the cache.
  const memory::Sequence* restored(Engine& own) {
    Generator generator(&own);
    const Result<PromptReport> report = generator.read(prompt_);
    EXPECT_TRUE(report && Result<PromptReport>(report).value().from_store);
    for (const memory::Sequence* kept : own.cache().sequences()) {
      if (kept->length() >= int32_t(prompt_.size())) return kept;
    }
    return nullptr;
  }

  static void run(Scheduler& scheduler) {
    while (scheduler.has_work()) (void)scheduler.step();
  }

  test::ScratchFolder folder_;
  const Tokens prompt_ = random_tokens(1, 150);
};

// Its answer would be read as a prompt is.
TEST_P(SequenceAuditTest, NothingIsComputedAgainUnderFast) {
  if (!has_fast()) GTEST_SKIP() << "no AVX512_BF16";
  ASSERT_NO_FATAL_FAILURE(store(Numerics::fast_1));
  const auto own = engine(1, Numerics::fast_1);
  ASSERT_NE(restored(*own), nullptr);
  EXPECT_EQ(SequenceAudit::next(own.get()), nullptr);
}

TEST_P(SequenceAuditTest, WhatIsHonestStays) {
  const auto own = engine();
  ASSERT_NE(restored(*own), nullptr);
  Scheduler scheduler(own.get());
  auto audit = SequenceAudit::next(own.get());
  ASSERT_NE(audit, nullptr);
  EXPECT_EQ(SequenceAudit::next(own.get()), nullptr);
  scheduler.submit(JobId{1}, std::move(audit), {.is_idle = true});
  ASSERT_TRUE(scheduler.step());
  // Others go first.
  Sampled other;
  const SampledRequest request{.prompt = random_tokens(2, 20), .token_count = 10};
  scheduler.submit(JobId{2}, std::make_unique<SampledJob>(own.get(), request, &other), {});
  const int64_t idle_rows = scheduler.stats().idle_rows;
  while (!other.has_ended) {
    ASSERT_TRUE(scheduler.step());
    EXPECT_LE(scheduler.stats().idle_rows, idle_rows + 16);
  }
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_GE(scheduler.stats().idle_rows, int64_t(prompt_.size()));
  const SequenceStore::Counts counts = own->sequence_store()->counts();
  EXPECT_EQ(counts.audited, 1);
  EXPECT_EQ(counts.differing, 0);
  EXPECT_EQ(counts.audits_passed_over, 0);
  Generator again(own.get());
  EXPECT_EQ(again.read(prompt_).value().computed_tokens, 0);
}

// Attack 35, as far as it is one on a store: what was written wrongly is found.
TEST_P(SequenceAuditTest, ADifferingBitLeavesMemoryAndDisk) {
  {
    const auto own = engine();
    const memory::Sequence* const kept = restored(*own);
    ASSERT_NE(kept, nullptr);
    DeviceBytes damaged;
    const memory::Layout& layout = own->memory().layout();
    for (int32_t group = 0; group < int32_t(layout.groups.size()) && !damaged.exists(); ++group) {
      if (!layout.groups[size_t(group)].has_pages() || group == layout.log_group) continue;
      const int32_t last = int32_t(prompt_.size()) / layout.groups[size_t(group)].page_tokens();
      damaged = memory::Archive::page(*kept, group, last - 1);
    }
    if (!damaged.exists()) damaged = memory::Archive::state(*kept, kept->length());
    if (!damaged.exists()) damaged = memory::Archive::state(*kept, int32_t(prompt_.size()));
    ASSERT_TRUE(damaged.exists());
    damaged.data[0] ^= std::byte(1);
    Scheduler scheduler(own.get());
    scheduler.submit(JobId{1}, SequenceAudit::next(own.get()), {.is_idle = true});
    ASSERT_NO_FATAL_FAILURE(run(scheduler));
    EXPECT_EQ(own->sequence_store()->counts().differing, 1);
    own->sequence_store()->drain();
    EXPECT_EQ(own->sequence_store()->stats().entries, 0u);
    EXPECT_GE(own->sequence_store()->stats().condemned, 1u);
    Generator again(own.get());
    EXPECT_GT(again.read(prompt_).value().computed_tokens, 0);
  }
  const auto later = engine();
  Generator generator(later.get());
  EXPECT_EQ(generator.read(prompt_).value().computed_tokens, int32_t(prompt_.size()));
}

// The memory that it takes is for others.
TEST_P(SequenceAuditTest, WhatHasGoneIsPassedOver) {
  const auto own = engine();
  ASSERT_NE(restored(*own), nullptr);
  own->cache().clear();
  Scheduler scheduler(own.get());
  scheduler.submit(JobId{1}, SequenceAudit::next(own.get()), {.is_idle = true});
  ASSERT_NO_FATAL_FAILURE(run(scheduler));
  EXPECT_EQ(own->sequence_store()->counts().audits_passed_over, 1);
  EXPECT_EQ(own->sequence_store()->counts().audited, 0);
  EXPECT_EQ(own->memory().usage().used_bytes(), 0u);
}

// Who loaded it may never have computed, and the plans of its adapters may have gone.
TEST(SequenceAudit, HasThePlansThatItNeeds) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("tone.gguf"), model = golden_path("llama", ".gguf");
  write_random_adapter(model, path, 1);
  EngineOptions options = golden_options(KvType::f16);
  options.adapters = {{.path = path, .scale = 0}};
  options.cache_dir = folder.file("store");
  options.cache_audit_interval = 1;
  const std::vector<AdapterUse> uses = {{.name = "tone", .scale = 0.5f}};
  const Tokens prompt = random_tokens(1, 150);
  {
    const auto first = load_engine(model, options);
    Generator generator(first.get());
    generator.select(first->select(uses).value());
    ASSERT_TRUE(bool(generator.read(prompt)));
    ASSERT_TRUE(bool(generator.finish_turn()));
  }
  const auto own = load_engine(model, options);
  Lane lane(own.get());
  lane.select(own->resolve(uses).value());
  ASSERT_TRUE(lane.start(prompt).value().from_store);
  EXPECT_EQ(own->runner().variant_count(), 1);
  Scheduler scheduler(own.get());
  scheduler.submit(JobId{1}, SequenceAudit::next(own.get()), {.is_idle = true});
  while (scheduler.has_work()) (void)scheduler.step();
  EXPECT_EQ(own->sequence_store()->counts().audited, 1);
  EXPECT_EQ(own->sequence_store()->counts().differing, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SequenceAuditTest,
                         ::testing::Values("llama", "gemma3", "llama4", "granitehybrid", "mamba",
                                           "qwen3next"),
                         [](const auto& one) { return std::string(one.param); });

// An engine that computes nothing looks through its store, and puts away what is damaged.
TEST(SequenceStoreScrub, FindsDamageWhileNothingIsComputed) {
  const test::ScratchFolder folder;
  EngineOptions options = golden_options(KvType::f16);
  options.cache_dir = folder.file("store");
  {
    const auto own = load_engine(golden_path("llama", ".gguf"), options);
    Generator generator(own.get());
    ASSERT_TRUE(bool(generator.read(random_tokens(1, 100))));
    ASSERT_TRUE(bool(generator.finish_turn()));
  }
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(folder.file("store") + "/objects")) {
    if (file.is_directory()) continue;
    std::string bytes = test::contents_of(file.path().string());
    bytes[bytes.size() - 100] = char(bytes[bytes.size() - 100] ^ 4);
    std::filesystem::remove(file.path());
    test::write_to(file.path().string(), bytes);
    break;
  }
  const auto own = load_engine(golden_path("llama", ".gguf"), options);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (own->sequence_store()->stats().damaged == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(own->sequence_store()->stats().damaged, 1u);
  EXPECT_GE(own->sequence_store()->stats().scrubbed, 1u);
}

}  // namespace
}  // namespace cairn::test::sequence_audit_test
