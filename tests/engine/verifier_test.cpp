// The promise on real models: random programs of what conversations do, and every border of every
// kind of memory in turn, give the bits of a fresh reading; and what the programs compare can fail:
// a changed bit of any group's blocks is found.
#include "engine/verifier.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/memory/inspector.h"
#include "tests/models/golden_model.h"
#include "tests/sanitized.h"
#include "tests/small_pages.h"

namespace cairn::test::verifier_test {
namespace {

constexpr int32_t kLogStep = 8;

EngineOptions verify_options(KvType kv) {
  EngineOptions options = golden_options(kv);
  options.thread_count = 1;  // Threads gain nothing in models this small.
  options.row_count_max = 256;
  options.log_step = kLogStep;
  return options;
}

std::unique_ptr<Engine> open(const std::string& name, const EngineOptions& options) {
  return load_engine(golden_path(name, ".gguf"), options);
}

VerifyReport verified(Engine& engine, const VerifyOptions& options) {
  Result<VerifyReport> report = verify(engine, options);
  EXPECT_TRUE(bool(report)) << (report ? "" : report.error().message);
  return report ? *report : VerifyReport{};
}

void expect_no_difference(Engine& engine, const VerifyOptions& options, const std::string& what) {
  const VerifyReport report = verified(engine, options);
  EXPECT_EQ(report.differing_bits(), 0) << what << ": " << report.first_difference;
  int64_t operation_count = 0;
  for (const VerifyRow& row : report.rows) operation_count += row.count;
  EXPECT_EQ(operation_count, int64_t(options.program_count) * options.operation_count) << what;
  EXPECT_EQ(engine.memory().usage().used_bytes(), 0u) << what << ": everything is given back";
}

class VerifierTest : public test::SmallPagesTest<std::string> {};

TEST_P(VerifierTest, RandomProgramsChangeNoBit) {
  const auto engine = open(GetParam(), verify_options(KvType::f16));
  ASSERT_NE(engine, nullptr);
  const int32_t program_count = test::kIsSanitized ? 1 : 2;
  expect_no_difference(*engine, {.program_count = program_count, .seed = 1},
                       "log of 8 tokens a step");
  if (test::kIsSanitized) return;
  EngineOptions options = verify_options(KvType::f16);
  options.thread_count = 2;
  options.log_step = 0;
  const auto with_own_log = open(GetParam(), options);
  ASSERT_NE(with_own_log, nullptr);
  expect_no_difference(*with_own_log, {.program_count = 1, .seed = 50}, "the engine's own choice");
}

INSTANTIATE_TEST_SUITE_P(Models, VerifierTest, ::testing::ValuesIn(supported_cases()),
                         [](const auto& each) { return each.param; });

TEST(Verifier, EveryTypeOfKeysAndValues) {
  constexpr std::pair<KvType, KvType> kTypes[] = {
      {KvType::f32, KvType::f32},   {KvType::bf16, KvType::bf16}, {KvType::q8_0, KvType::q8_0},
      {KvType::q4_0, KvType::q4_0}, {KvType::f16, KvType::q4_0},  {KvType::q8_0, KvType::f32}};
  for (const char* name : {"gemma3", "falcon_h1"}) {
    for (const auto& [keys, values] : kTypes) {
      EngineOptions options = verify_options(keys);
      options.value_type = values;
      const auto engine = open(name, options);
      ASSERT_NE(engine, nullptr);
      expect_no_difference(*engine, {.program_count = 1, .seed = 7},
                           fmt::format("{}, keys {}, values {}", name, int(keys), int(values)));
    }
  }
}

TEST(Verifier, TheSameSeedDoesTheSameAndAnotherSomethingElse) {
  const auto engine = open("granitehybrid", verify_options(KvType::f16));
  ASSERT_NE(engine, nullptr);
  const auto computed = [&](uint64_t seed) {
    std::vector<int64_t> tokens;
    for (const VerifyRow& row : verified(*engine, {.program_count = 2, .seed = seed}).rows) {
      tokens.push_back(row.computed_tokens);
    }
    return tokens;
  };
  const std::vector<int64_t> first = computed(1);
  EXPECT_EQ(computed(1), first);
  EXPECT_NE(computed(9), first);
}

TEST(Verifier, CanBeStopped) {
  const auto engine = open("llama", verify_options(KvType::f16));
  ASSERT_NE(engine, nullptr);
  const Result<VerifyReport> stopped =
      verify(*engine, {.on_progress = [](int32_t done, int32_t) { return done < 5; }});
  ASSERT_FALSE(bool(stopped));
  EXPECT_EQ(stopped.error().code, ErrorCode::cancelled);
  EXPECT_EQ(engine->memory().usage().used_bytes(), 0u);
}

// Damages what is held of one group, as an error in the memory would: `block_count` blocks were in
// use at a time.
void change_bits(memory::Pool& pool, int32_t block_count) {
  for (int32_t block = 0; block < block_count; ++block) {
    if (pool.ref_count(PageId(block)) == 0) continue;
    std::byte* const bytes = pool.address(PageId(block));
    for (size_t byte = 0; byte < pool.block_bytes(); ++byte) bytes[byte] ^= std::byte(2);
  }
}

// Programs whose memory is damaged after each operation, until one of them finds it.
VerifyReport damaged(Engine& engine, memory::Pool& pool) {
  VerifyReport report;
  int32_t block_count = 0;
  for (uint64_t seed = 1; seed <= 12 && report.differing_bits() == 0; ++seed) {
    report =
        verified(engine, {.program_count = 1, .seed = seed, .on_progress = [&](int32_t, int32_t) {
                            block_count = std::max(block_count, pool.used_count());
                            change_bits(pool, block_count);
                            return true;
                          }});
  }
  return report;
}

// Each group in its turn: were one of them not looked at, or not compared, this would not fail.
TEST(Verifier, DamageToAnyGroupIsFound) {
  for (const char* name : {"llama", "gemma3", "llama4", "mamba", "qwen3next", "falcon_h1"}) {
    const auto engine = open(name, verify_options(KvType::f16));
    ASSERT_NE(engine, nullptr);
    memory::Store& store = memory::Inspector::store(engine->memory());
    for (int32_t group = 0; group < store.group_count(); ++group) {
      const VerifyReport report = damaged(*engine, store.pool(group));
      EXPECT_GT(report.differing_bits(), 0)
          << name << ", group " << group << ": " << memory::name(store.spec(group).kind);
      EXPECT_TRUE(report.first_difference.starts_with("seed ")) << report.first_difference;
    }
    expect_no_difference(*engine, {.program_count = 1}, name);
  }
}

// Every length and, from each, every position of the end, where pages, windows, chunks and the
// log's steps begin and stop.
class BorderSweep : public test::SmallPagesTest<std::string> {
 protected:
  static constexpr int32_t kLengthMax = 140;
  static constexpr int32_t kBackMax = 2 * kLogStep + 2;

  void SetUp() override {
    std::mt19937 random(5);
    for (int32_t index = 0; index <= kLengthMax; ++index) {
      tokens_.push_back(Token(int32_t(random() % 384)));
    }
    EngineOptions options = verify_options(KvType::f16);
    options.row_count_max = kLengthMax + 1;
    engine_ = open(GetParam(), options);
    ASSERT_NE(engine_, nullptr);
    memory::Sequence fresh = engine_->memory().new_sequence();
    expected_ = append(*engine_, fresh, tokens_);
  }

  std::span<const Token> tokens(int32_t begin, int32_t end) const {
    return std::span(tokens_).subspan(size_t(begin), size_t(end - begin));
  }

  // The logits behind the token at `position`, of the fresh reading and of a sequence that stands
  // somewhere before it.
  ::testing::AssertionResult goes_on_as_fresh(memory::Sequence& sequence, int32_t position) {
    const std::vector<float> rows =
        append(*engine_, sequence, tokens(sequence.length(), position + 1));
    const size_t width = size_t(engine_->size().vocabulary_count);
    const float* const wanted = expected_.data() + size_t(position) * width;
    if (std::memcmp(rows.data() + rows.size() - width, wanted, width * sizeof(float)) == 0) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "other bits behind token " << position;
  }

  // A prompt in one step, kept as people's last message is, and an answer token by token.
  memory::Sequence converse(int32_t length, int32_t answer_count) {
    memory::Memory& memory = engine_->memory();
    memory::Sequence sequence = memory.new_sequence();
    const int32_t prompt_count = length - answer_count;
    if (prompt_count > 0) {
      const int32_t capture = prompt_count / 2;
      append(*engine_, sequence, tokens(0, prompt_count), {&capture, size_t(capture > 0)});
      EXPECT_TRUE(bool(memory.keep_anchor(sequence, memory::AnchorKind::prompt_end)));
      memory.protect_from(sequence, prompt_count);
    }
    while (sequence.length() < length) {
      append(*engine_, sequence, tokens(sequence.length(), sequence.length() + 1));
    }
    return sequence;
  }

  std::vector<Token> tokens_;
  std::unique_ptr<Engine> engine_;
  std::vector<float> expected_;
};

TEST_P(BorderSweep, EveryLengthAndEveryPositionOfItsEnd) {
  memory::Memory& memory = engine_->memory();
  constexpr int32_t kStep = test::kIsSanitized ? 5 : 1;
  for (int32_t length = 1; length <= kLengthMax; length += kStep) {
    const int32_t answer_count = std::min(length, length % (kBackMax + 3));
    memory::Sequence parent = converse(length, answer_count);
    for (int32_t back = 0; back <= std::min(length, kBackMax); ++back) {
      const memory::ResumePlan plan = memory.plan(parent, length - back);
      memory::Sequence branch = memory.at(parent, length - back).value();
      ASSERT_EQ(branch.length(), plan.resume);
      // Within the answer nothing is read again as far as the log's steps reach.
      if (back <= std::min(answer_count, kLogStep)) {
        ASSERT_EQ(plan.forward_tokens, 0) << "length " << length << ", back " << back;
      }
      ASSERT_TRUE(goes_on_as_fresh(branch, length - back))
          << "length " << length << ", back " << back;
    }
    ASSERT_TRUE(goes_on_as_fresh(parent, length)) << "the parent of length " << length;
  }
}

// One of each kind: full, windows, chunks, both kinds of Mamba, delta nets, short convolutions,
// attention and recurrence in one layer.
std::vector<std::string> models_of_every_kind() {
  const std::vector<std::string>& supported = supported_cases();
  std::vector<std::string> names;
  for (const char* name :
       {"llama", "gemma3", "llama4", "mamba", "mamba2", "qwen3next", "lfm2", "falcon_h1"}) {
    if (std::binary_search(supported.begin(), supported.end(), name)) names.emplace_back(name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, BorderSweep, ::testing::ValuesIn(models_of_every_kind()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace cairn::test::verifier_test
