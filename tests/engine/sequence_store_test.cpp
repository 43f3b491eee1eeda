// Every family of the golden models: a conversation is stored, the engine goes, another one comes;
// nothing of the conversation is computed again, and its logits are, bit for bit, those of an
// engine that computes all of it.
#include "engine/sequence_store.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "engine/generator.h"
#include "sample/state_text.h"
#include "tests/engine/random_adapter.h"
#include "tests/models/golden_model.h"
#include "tests/scratch_folder.h"
#include "tests/small_pages.h"
#include "tests/store/hanging_disk.h"

namespace cairn::test::sequence_store_test {
namespace {

using Tokens = std::vector<Token>;

Tokens random_tokens(uint32_t seed, int32_t count, int32_t vocabulary_count) {
  std::mt19937 random(seed);
  Tokens tokens;
  for (int32_t index = 0; index < count; ++index) {
    tokens.push_back(Token(int32_t(random() % uint32_t(vocabulary_count))));
  }
  return tokens;
}

Tokens held(const Generator& generator) {
  const auto tokens = generator.sequence().tokens();
  return {tokens.begin(), tokens.end()};
}

std::vector<float> logits_of(const Generator& generator) {
  return {generator.logits().begin(), generator.logits().end()};
}

void expect_equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
}

PromptReport read(Generator& generator, const Tokens& prompt,
                  const std::vector<int32_t>& message_starts = {}) {
  Result<PromptReport> report = generator.read(prompt, {.message_starts = message_starts});
  EXPECT_TRUE(bool(report)) << (report ? "" : report.error().message);
  return report ? *report : PromptReport();
}

void answer(Generator& generator, const Tokens& tokens) {
  for (const Token token : tokens) ASSERT_TRUE(bool(generator.advance(token)));
  ASSERT_TRUE(bool(generator.finish_turn()));
}

class SequenceStoreTest : public test::SmallPagesTest<std::string> {
 protected:
  std::unique_ptr<Engine> engine(bool has_store = true) {
    EngineOptions options = golden_options(KvType::f16);
    options.row_count_max = 16;
    options.log_step = 8;
    options.adapters = adapters_;
    if (budget_bytes_ > 0) options.memory_budget = budget_bytes_;
    if (has_store) options.cache_dir = folder_.file("store");
    return load_engine(golden_path(GetParam(), ".gguf"), options);
  }

  test::ScratchFolder folder_;
  std::vector<AdapterChoice> adapters_;
  size_t budget_bytes_ = 0;  // 0: that of golden models.
};

TEST_P(SequenceStoreTest, AfterARestartNothingIsComputedAgain) {
  Tokens whole, prompt, next;
  {
    const auto first = engine();
    ASSERT_NE(first, nullptr);
    const int32_t vocabulary_count = first->size().vocabulary_count;
    prompt = random_tokens(1, 70, vocabulary_count);
    next = random_tokens(3, 9, vocabulary_count);
    Generator generator(first.get());
    EXPECT_EQ(read(generator, prompt, {40}).computed_tokens, 70);
    answer(generator, random_tokens(2, 13, vocabulary_count));
    whole = held(generator);
  }
  const auto fresh_engine = engine(false);
  const auto fresh_logits = [&](const Tokens& tokens) {
    fresh_engine->cache().clear();
    Generator alone(fresh_engine.get());
    EXPECT_EQ(read(alone, tokens).computed_tokens, int32_t(tokens.size()));
    return logits_of(alone);
  };
  const auto second = engine();
  ASSERT_NE(second, nullptr);
  {
    Generator generator(second.get());
    const PromptReport report = read(generator, whole, {40});
    EXPECT_TRUE(report.from_store);
    EXPECT_EQ(report.computed_tokens, 0);
    expect_equal_bits(logits_of(generator), fresh_logits(whole));
    answer(generator, next);  // It goes on as if nothing had been.
    Tokens longer = whole;
    longer.insert(longer.end(), next.begin(), next.end());
    expect_equal_bits(logits_of(generator), fresh_logits(longer));
  }
  // The next turn of a third one: only what is new. What it lists when it opens the store is not
  // replaced afterwards.
  second->sequence_store()->drain();
  const auto third = engine();
  Generator generator(third.get());
  Tokens longer = whole;
  longer.insert(longer.end(), next.begin(), next.end());
  longer.push_back(Token(5));
  EXPECT_EQ(read(generator, longer).computed_tokens, 1);
  expect_equal_bits(logits_of(generator), fresh_logits(longer));
  // The answer is asked for anew.
  EXPECT_EQ(read(generator, prompt, {40}).computed_tokens, 0);
  expect_equal_bits(logits_of(generator), fresh_logits(prompt));
}

// Of the kinds of memory one each.
class SequenceStoreKindTest : public SequenceStoreTest {};

// What other adapters computed is not found.
TEST_P(SequenceStoreKindTest, AdaptersArePartOfTheFingerprint) {
  Tokens prompt;
  {
    const auto first = engine();
    prompt = random_tokens(1, 70, first->size().vocabulary_count);
    Generator generator(first.get());
    read(generator, prompt);
    answer(generator, {Token(3)});
    first->sequence_store()->drain();
    EXPECT_EQ(first->sequence_store()->stats().refused, 0u);
  }
  const std::string adapter = folder_.file("adapter.gguf");
  write_random_adapter(golden_path(GetParam(), ".gguf"), adapter, 4);
  adapters_ = {{.path = adapter}};
  {
    const auto adapted = engine();
    ASSERT_NE(adapted, nullptr);
    Generator generator(adapted.get());
    EXPECT_EQ(read(generator, prompt).computed_tokens, 70);
    answer(generator, {Token(4)});
  }
  const auto again = engine();
  Generator generator(again.get());
  const PromptReport report = read(generator, prompt);
  EXPECT_TRUE(report.from_store);
  EXPECT_EQ(report.computed_tokens, 0);
}

// A saved session has a name, and its tokens come back with it.
TEST_P(SequenceStoreKindTest, SavedSessionsComeBackByName) {
  const sample::SamplerState remembered({{.position = 3, .token = Token(5), .memory = {0.1f, 7}}});
  Tokens whole;
  {
    const auto first = engine();
    const Selection& selection = first->default_selection();
    const Sha256Digest fingerprint = first->fingerprint(selection).digest();
    Generator generator(first.get());
    read(generator, random_tokens(1, 50, first->size().vocabulary_count), {40});
    answer(generator, {Token(3), Token(4)});
    whole = held(generator);
    SequenceStore& store = *first->sequence_store();
    EXPECT_TRUE(bool(store.save("mine", generator.sequence(), fingerprint, remembered)));
    EXPECT_FALSE(bool(store.save("../mine", generator.sequence(), fingerprint)));
    EXPECT_FALSE(bool(store.save("empty", first->memory().new_sequence(), fingerprint)));
  }
  const auto second = engine();
  const Selection& selection = second->default_selection();
  const Sha256Digest fingerprint = second->fingerprint(selection).digest();
  SequenceStore& store = *second->sequence_store();
  const SequenceStore::Restored restored = store.restore("mine", fingerprint, selection).value();
  EXPECT_EQ(restored.tokens, whole);
  EXPECT_EQ(sample::to_text(restored.sampler), sample::to_text(remembered));
  EXPECT_EQ(store.restore("other", fingerprint, selection).error().code, ErrorCode::not_found);
  Generator generator(second.get());
  const PromptReport report = read(generator, whole);
  EXPECT_TRUE(report.from_cache);
  EXPECT_FALSE(report.from_store);
  EXPECT_EQ(report.computed_tokens, 0);
}

// Of a saved session whose records are gone the tokens are left, and are computed again; a session
// whose sequence is gone is damaged.
TEST_P(SequenceStoreKindTest, ASavedSessionWithoutRecordsIsComputedAgain) {
  Tokens whole;
  {
    const auto first = engine();
    Generator generator(first.get());
    read(generator, random_tokens(1, 50, first->size().vocabulary_count), {40});
    answer(generator, {Token(3), Token(4)});
    whole = held(generator);
    const Sha256Digest fingerprint = first->fingerprint(first->default_selection()).digest();
    ASSERT_TRUE(bool(first->sequence_store()->save("mine", generator.sequence(), fingerprint, {})));
  }
  std::filesystem::remove_all(folder_.file("store") + "/objects");
  const auto second = engine();
  const Selection& selection = second->default_selection();
  const Sha256Digest fingerprint = second->fingerprint(selection).digest();
  SequenceStore& store = *second->sequence_store();
  EXPECT_EQ(store.restore("mine", fingerprint, selection).value().tokens, whole);
  Generator generator(second.get());
  EXPECT_EQ(read(generator, whole).computed_tokens, int32_t(whole.size()));
  std::filesystem::remove_all(folder_.file("store") + "/manifests");
  EXPECT_EQ(store.restore("mine", fingerprint, selection).error().code, ErrorCode::invalid_data);
}

// Bit rot in every file: the conversation is computed again, as far as it is lost.
TEST_P(SequenceStoreKindTest, DamageCostsTimeAndNoBit) {
  Tokens prompt;
  std::vector<float> expected;
  {
    const auto first = engine();
    prompt = random_tokens(1, 100, first->size().vocabulary_count);
    Generator generator(first.get());
    read(generator, prompt, {40});
    expected = logits_of(generator);
    answer(generator, {Token(3)});
  }
  std::vector<std::string> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_.path())) {
    const bool is_record = !file.is_directory() && file.file_size() > 4096;
    if (is_record) files.push_back(file.path().string());
  }
  ASSERT_FALSE(files.empty());
  int32_t computed = 0;
  for (const std::string& path : files) {
    std::string bytes = test::contents_of(path);
    if (bytes.empty()) continue;  // It went with another one.
    bytes[bytes.size() - 100] = char(bytes[bytes.size() - 100] ^ 4);
    std::filesystem::remove(path);
    test::write_to(path, bytes);
    const auto again = engine();
    Generator generator(again.get());
    computed = std::max(computed, read(generator, prompt, {40}).computed_tokens);
    expect_equal_bits(logits_of(generator), expected);
    answer(generator, {Token(3)});
  }
  EXPECT_GT(computed, 0);
}

// Little memory: what is loaded takes the place of what is cached, and what waits to be written
// does not stand in the way of steps.
TEST_P(SequenceStoreKindTest, LittleMemoryIsEnough) {
  const auto roomy = engine(false);
  Generator one(roomy.get());
  const Tokens prompt = random_tokens(1, 100, roomy->size().vocabulary_count);
  read(one, prompt, {40});
  budget_bytes_ = roomy->memory().usage().used_bytes() * 2;
  std::vector<Tokens> prompts;
  for (uint32_t round = 0; round < 6; ++round) {
    prompts.push_back(random_tokens(round, 100, roomy->size().vocabulary_count));
  }
  // What still waits to be written when the next one waits too may be passed over, and where room
  // was short, a sequence may have lost the states that its prompt resumes from. So the first ones
  // are written before the next one is read.
  constexpr size_t kWrittenCount = 4;
  size_t restored_count = 0;
  for (int round = 0; round < 2; ++round) {
    const auto small = engine();
    ASSERT_NE(small, nullptr);
    for (size_t number = 0; number < prompts.size(); ++number) {
      const Tokens& each = prompts[number];
      Generator generator(small.get());
      const PromptReport report = read(generator, each, {40});
      EXPECT_TRUE(round == 1 || !report.from_store);
      restored_count += size_t(report.from_store);
      roomy->cache().clear();
      Generator fresh(roomy.get());
      read(fresh, each);
      expect_equal_bits(logits_of(generator), logits_of(fresh));
      answer(generator, {Token(3), Token(4)});
      EXPECT_LE(small->memory().usage().used_bytes(), budget_bytes_);
      if (number < kWrittenCount) small->sequence_store()->drain();
    }
  }
  EXPECT_GE(restored_count, kWrittenCount);
}

// A folder that is no store is an error where the engine is made.
TEST(SequenceStore, AnotherFolderIsRefused) {
  const test::ScratchFolder folder;
  test::write_to(folder.file("letter.txt"), "mine");
  EngineOptions options = golden_options(KvType::f16);
  options.cache_dir = folder.path().string();
  auto file = gguf::File::open(golden_path("llama", ".gguf"));
  const auto engine = Engine::load(std::move(file).value(), options);
  EXPECT_EQ(engine.error().code, ErrorCode::invalid_argument);
}

// Memory that the writing thread holds is short meanwhile; a disk that hangs holds up nobody.
TEST(SequenceStore, WhoWaitsWithPatienceDoesNotWaitForADiskThatHangs) {
  const test::ScratchFolder folder;
  test::HangingDisk disk;
  EngineOptions options = golden_options(KvType::f16);
  options.cache_dir = folder.file("store");
  options.cache_calls = &disk;
  const auto engine = load_engine(golden_path("llama", ".gguf"), options);
  ASSERT_NE(engine, nullptr);
  SequenceStore& store = *engine->sequence_store();
  while (!store.is_ready()) std::this_thread::yield();
  disk.hang();
  {
    Generator generator(engine.get());
    read(generator, random_tokens(1, 60, engine->size().vocabulary_count));
    ASSERT_TRUE(bool(generator.finish_turn()));
  }
  disk.wait_until_hanging();
  EXPECT_TRUE(store.drain(std::chrono::milliseconds(5)));
  EXPECT_TRUE(store.holds_memory());
  disk.let_go();
  store.drain();
  EXPECT_FALSE(store.holds_memory());
}

INSTANTIATE_TEST_SUITE_P(Kinds, SequenceStoreKindTest,
                         ::testing::Values("llama", "gemma3", "llama4", "granitehybrid", "mamba",
                                           "qwen3next"),
                         [](const auto& one) { return one.param; });

INSTANTIATE_TEST_SUITE_P(Models, SequenceStoreTest, ::testing::ValuesIn(supported_cases()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace cairn::test::sequence_store_test
