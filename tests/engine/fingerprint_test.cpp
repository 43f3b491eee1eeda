// One fingerprint for what computes the same bits, another for whatever changes one.
#include "engine/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/known_fingerprints.h"
#include "tests/models/golden_model.h"

namespace cairn::test::fingerprint_test {
namespace {

TEST(Fingerprint, EverySourceCounts) {
  Sha256Digest model{};
  model[31] = 1;
  const AdapterSource first[] = {{model, 1.0f}}, scaled[] = {{model, 0.5f}};
  const AdapterSource two[] = {{model, 1.0f}, {{}, 1.0f}}, other_order[] = {{{}, 1.0f}, {model, 1}};
  const models::Program exit{{3}, 0}, skip{{2, 3}, 0}, experts{{}, 3}, both{{3}, 3}, whole;
  std::set<std::string> texts;
  for (const BitSources& sources :
       std::vector<BitSources>{{},
                               {.model = model},
                               {.numerics = Numerics::fast_1},
                               {.numerics = Numerics::fast_1, .isa = "avx512"},
                               {.key_type = KvType::f32},
                               {.value_type = KvType::f32},
                               {.key_type = KvType::q8_0, .value_type = KvType::q4_0},
                               {.key_type = KvType::q4_0, .value_type = KvType::q8_0},
                               {.adapters = first},
                               {.adapters = scaled},
                               {.adapters = two},
                               {.adapters = other_order},
                               {.program = &exit},
                               {.program = &skip},
                               {.program = &experts},
                               {.program = &both},
                               {.model = model, .program = &both}}) {
    EXPECT_TRUE(texts.insert(Fingerprint::of(sources).text()).second);
  }
  EXPECT_EQ(Fingerprint::of({.program = &whole}), Fingerprint::of({}));
  EXPECT_EQ(Fingerprint::of({.isa = "avx2"}), Fingerprint::of({.isa = "amx"}));
  EXPECT_NE(Fingerprint::of({}).variant(), memory::Variant::plain);
}

// What is used stays, however many others come and go.
TEST(Fingerprint, OnlyThoseThatWereUsedLastAreKnown) {
  KnownFingerprints known(3);
  const auto digest_of = [](uint64_t number) { return Sha256().add(number).finish(); };
  for (uint64_t number = 1; number <= 1000; ++number) {
    EXPECT_EQ(known.find(memory::Variant(number)), nullptr);
    EXPECT_EQ(known.add(memory::Variant(number), digest_of(number)), digest_of(number));
    ASSERT_NE(known.find(memory::Variant(1)), nullptr) << number;
    EXPECT_EQ(*known.find(memory::Variant(1)), digest_of(1));
    EXPECT_LE(known.count(), 3u);
  }
  EXPECT_EQ(known.find(memory::Variant(998)), nullptr);
  EXPECT_EQ(*known.find(memory::Variant(999)), digest_of(999));
  EXPECT_EQ(known.find(memory::Variant(999, 1)), nullptr) << "another tenant's";
}

TEST(Fingerprint, OfAnEngineDependsOnNoOptionThatChangesNoBit) {
  const auto text_of = [](const std::string& name, const EngineOptions& options) {
    const auto engine = load_engine(golden_path(name, ".gguf"), options);
    return engine ? engine->fingerprint(engine->default_selection()).text() : std::string();
  };
  EngineOptions options = golden_options(KvType::f16);
  const std::string here = text_of("llama", options);
  EXPECT_EQ(here.size(), 64u);
  EXPECT_NE(here, text_of("qwen3", options));
  options.thread_count = 1;
  options.context_tokens = 40;
  options.row_count_max = 7;
  EXPECT_EQ(here, text_of("llama", options));
  options.key_type = KvType::f32;
  EXPECT_NE(here, text_of("llama", options));
}

// The model has factors for short and for long texts, and its own context says which count.
TEST(Fingerprint, TheContextInUseChangesNoBit) {
  const Golden golden = read_golden("phi3_long");
  const std::span<const Token> tokens = std::span(golden.sequences[0]).first(8);
  std::vector<float> expected;
  std::string text;
  for (const int32_t context : {0, 16, 64, 65, 128}) {
    EngineOptions options = golden_options(KvType::f16);
    options.context_tokens = context;
    const auto engine = load_engine(golden_path("phi3_long", ".gguf"), options);
    ASSERT_NE(engine, nullptr);
    ASSERT_NE(engine->file().find("rope_factors_short.weight"), nullptr);
    memory::Sequence sequence = engine->memory().new_sequence();
    const std::vector<float> logits = append(*engine, sequence, tokens);
    if (expected.empty()) expected = logits;
    EXPECT_EQ(logits, expected) << context;
    if (text.empty()) text = engine->fingerprint(engine->default_selection()).text();
    EXPECT_EQ(engine->fingerprint(engine->default_selection()).text(), text) << context;
  }
}

}  // namespace
}  // namespace cairn::test::fingerprint_test
