// Vectors of texts: equal to transformers' in every kind of pooling; the same bits whatever stands
// beside a text, in whatever steps it is read; and refusals that say what is wrong.
#include "engine/embedder.h"

#include <cstring>

#include "base/cpu_levels.h"
#include "tests/models/embedding_case.h"
#include "tests/small_pages.h"

namespace cairn::test::embedder_test {
namespace {

class EmbedderTest : public test::SmallPagesTest<std::string> {
 protected:
  std::unique_ptr<Engine> load(EngineOptions options) const {
    return load_engine(embedding_path(GetParam(), ".gguf"), options);
  }
};

std::vector<std::vector<Token>> texts_of(const EmbeddingCase& golden) {
  std::vector<std::vector<Token>> texts;
  for (const auto& sequence : golden.sequences) texts.push_back(sequence.tokens);
  return texts;
}

TEST_P(EmbedderTest, RowsEqualTheReference) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  const auto engine = load(embedding_options(Pooling::none));
  ASSERT_NE(engine, nullptr);
  const double error = error_of(golden, *engine);
  std::printf("%-20s worst number %.1e\n", GetParam().c_str(), error);
  EXPECT_LE(error, 2e-4);
}

TEST_P(EmbedderTest, EveryPoolingEqualsTheReference) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  for (const auto& [pooling, first] : golden.sequences[0].vectors) {
    const auto engine = load(embedding_options(pooling));
    ASSERT_NE(engine, nullptr);
    Embedder embedder(engine.get(), {});
    EXPECT_EQ(embedder.width(), int32_t(first.size()));
    auto found = embedder.embed(texts_of(golden));
    ASSERT_TRUE(found) << found.error().message;
    for (size_t i = 0; i < found->size(); ++i) {
      const std::vector<float>& expected = golden.sequences[i].vectors.at(pooling);
      EXPECT_LE(worst_of((*found)[i].values, expected), 2e-4) << name(pooling) << ", text " << i;
      EXPECT_EQ((*found)[i].token_count, int32_t(golden.sequences[i].tokens.size()));
    }
  }
}

TEST_P(EmbedderTest, WithoutNormalizingTheMeanIsOfTheRows) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  const auto engine = load(embedding_options(Pooling::mean));
  ASSERT_NE(engine, nullptr);
  Embedder embedder(engine.get(), {.normalizes = false});
  auto found = embedder.embed(texts_of(golden));
  ASSERT_TRUE(found) << found.error().message;
  const auto& last = golden.sequences.back();
  std::vector<float> mean;
  for (size_t column = 0; column < size_t(golden.width); ++column) {
    double sum = 0;
    for (size_t at = column; at < last.rows.size(); at += size_t(golden.width)) {
      sum += double(last.rows[at]);
    }
    mean.push_back(float(sum / double(last.tokens.size())));
  }
  EXPECT_LE(worst_of(found->back().values, mean), 2e-4);
}

void expect_same_bits(const Embedding& a, const Embedding& b, const std::string& what) {
  ASSERT_EQ(a.values.size(), b.values.size()) << what;
  EXPECT_EQ(std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(float)), 0)
      << what;
}

TEST_P(EmbedderTest, BitsDependOnNothingButTheText) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  std::vector<std::vector<Token>> texts = texts_of(golden);
  texts.emplace_back(texts.back().begin(), texts.back().begin() + 33);
  for (const Pooling pooling : {Pooling::none, Pooling::mean}) {
    EngineOptions options = embedding_options(pooling, KvType::f16);
    options.backend = "reference";
    options.thread_count = 1;
    const auto reference = load(options);
    ASSERT_NE(reference, nullptr);
    Embedder alone(reference.get(), {});
    std::vector<Embedding> expected;
    for (const auto& text : texts) expected.push_back(alone.embed({&text, 1}).value()[0]);
    options.backend = "cpu";
    for (const IsaLevel isa : levels_of(detect_cpu_features())) {
      for (const int32_t thread_count : {1, 3}) {
        options.isa = name(isa);
        options.thread_count = thread_count;
        // Causal models read long texts in pieces then.
        options.row_count_max = thread_count == 1 ? 128 : 19;
        const auto engine = load(options);
        ASSERT_NE(engine, nullptr);
        auto found = Embedder(engine.get(), {}).embed(texts);
        ASSERT_TRUE(found) << found.error().message;
        for (size_t i = 0; i < texts.size(); ++i) {
          expect_same_bits((*found)[i], expected[i],
                           fmt::format("{}, {} threads, text {}", name(isa), thread_count, i));
        }
        EXPECT_EQ(engine->memory().usage().page_bytes, 0u);
      }
    }
  }
}

// Where the budget holds only some of the texts at a time, they are read one after another.
TEST_P(EmbedderTest, AFullMemoryMakesSmallerSteps) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  const std::vector<std::vector<Token>> texts(6, golden.sequences.back().tokens);
  const auto wide = load(embedding_options(Pooling::mean));
  ASSERT_NE(wide, nullptr);
  const Embedding expected = Embedder(wide.get(), {}).embed({texts.data(), 1}).value()[0];
  EngineOptions options = embedding_options(Pooling::mean);
  options.context_tokens = 96;
  options.row_count_max = 96;
  options.memory_budget = size_t(260) << 10;
  const auto narrow = load(options);
  ASSERT_NE(narrow, nullptr);
  auto found = Embedder(narrow.get(), {}).embed(texts);
  ASSERT_TRUE(found) << found.error().message;
  for (const Embedding& each : *found) expect_same_bits(each, expected, GetParam());
}

// A short text that waits for its step leaves a long one, which is read in pieces, all the room.
TEST_P(EmbedderTest, ALongTextHasTheRoomOfThoseBeforeIt) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  const std::vector<Token>& text = golden.sequences.back().tokens;
  EngineOptions options = embedding_options(Pooling::mean);
  options.context_tokens = 96;
  options.row_count_max = 19;
  std::unique_ptr<Engine> engine;
  Result<std::vector<Embedding>> alone = std::vector<Embedding>();
  for (options.memory_budget = size_t(8) << 10; options.memory_budget < size_t(4) << 20;
       options.memory_budget += size_t(8) << 10) {
    auto loaded =
        Engine::load(gguf::File::open(embedding_path(GetParam(), ".gguf")).value(), options);
    if (!loaded) continue;
    engine = std::move(loaded).value();
    alone = Embedder(engine.get(), {}).embed({&text, 1});
    if (alone) break;
  }
  ASSERT_NE(engine, nullptr);
  ASSERT_TRUE(alone) << alone.error().message;
  const std::vector<std::vector<Token>> both = {{text.begin(), text.begin() + 5}, text};
  auto found = Embedder(engine.get(), {}).embed(both);
  ASSERT_TRUE(found) << found.error().message;
  expect_same_bits((*found)[1], (*alone)[0], GetParam());
}

TEST_P(EmbedderTest, LongTextsAreRefusedOrTruncated) {
  const EmbeddingCase golden = read_embedding_case(GetParam());
  EngineOptions options = embedding_options(Pooling::none);
  options.context_tokens = 40;
  const auto engine = load(options);
  ASSERT_NE(engine, nullptr);
  const std::vector<std::vector<Token>> texts = texts_of(golden);
  auto refused = Embedder(engine.get(), {}).embed(texts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "text 3: expected at most 40 tokens, found 80");
  auto found = Embedder(engine.get(), {.truncates = true}).embed(texts);
  ASSERT_TRUE(found) << found.error().message;
  const std::vector<Token> first(texts[2].begin(), texts[2].begin() + 40);
  auto expected = Embedder(engine.get(), {}).embed({&first, 1});
  ASSERT_TRUE(expected) << expected.error().message;
  expect_same_bits((*found)[2], (*expected)[0], "truncated");
}

TEST_P(EmbedderTest, WhatIsNoTextIsRefused) {
  const auto engine = load(embedding_options(Pooling::mean));
  ASSERT_NE(engine, nullptr);
  Embedder embedder(engine.get(), {});
  const std::vector<Token> unknown = {Token(5), Token(384)}, nothing;
  EXPECT_EQ(embedder.embed({&unknown, 1}).error().message,
            "text 1: expected tokens from 0 to 383, found 384");
  EXPECT_EQ(embedder.embed({&nothing, 1}).error().message,
            "text 1: expected at least a token, found none");
}

INSTANTIATE_TEST_SUITE_P(Models, EmbedderTest, ::testing::ValuesIn(embedding_cases()),
                         [](const auto& each) { return each.param; });

Error error_of_loading(const std::string& path, const EngineOptions& options) {
  auto loaded = Engine::load(gguf::File::open(path).value(), options);
  EXPECT_FALSE(loaded);
  return loaded ? Error{} : loaded.error();
}

TEST(Embedder, EnginesSayWhatAModelCannotMake) {
  EXPECT_EQ(error_of_loading(embedding_path("bert", ".gguf"), golden_options(KvType::f32)).message,
            "bert: expected a model that makes text, found one that makes vectors of texts, which "
            "`cairn embed` shows");
  EXPECT_EQ(
      error_of_loading(embedding_path("bert", ".gguf"), embedding_options(Pooling::rank)).message,
      "pooling rank: expected a model with a classifier, found bert");
}

TEST(Embedder, WordPieceTextsHaveTheirSpecialTokens) {
  const auto engine = load_engine(embedding_path("bert", ".gguf"), embedding_options(Pooling::cls));
  ASSERT_NE(engine, nullptr);
  const Embedder embedder(engine.get(), {});
  const auto one = embedder.tokens_of("weather").value(), other = embedder.tokens_of("way").value();
  ASSERT_EQ(one.size(), 3u);
  EXPECT_EQ(one.front(), Token(101));
  EXPECT_EQ(one.back(), Token(102));
  const std::vector<Token> pair = {Token(101), one[1], Token(102), other[1], Token(102)};
  EXPECT_EQ(embedder.tokens_of_pair("weather", "way").value(), pair);
}

// WordPiece has no tokens for bytes: what is no text would silently be left out.
TEST(Embedder, WordPieceTextsAreUtf8) {
  const auto engine = load_engine(embedding_path("bert", ".gguf"), embedding_options(Pooling::cls));
  ASSERT_NE(engine, nullptr);
  const Embedder embedder(engine.get(), {});
  for (const std::string_view text : {"way\xff", "w\xc3y  ", "way\xed\xa0\x80"}) {
    const auto tokens = embedder.tokens_of(text);
    ASSERT_FALSE(tokens) << text;
    EXPECT_EQ(tokens.error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(tokens.error().message.starts_with("text: expected UTF-8, found byte 0x"))
        << tokens.error().message;
    EXPECT_FALSE(embedder.tokens_of_pair("way", text));
  }
  EXPECT_TRUE(embedder.tokens_of("w\u00e4y"));
}

TEST(Embedder, AQuestionLeavesRoomForAnAnswer) {
  EngineOptions options = embedding_options(Pooling::cls);
  options.context_tokens = 4;
  const auto engine = load_engine(embedding_path("bert", ".gguf"), options);
  ASSERT_NE(engine, nullptr);
  for (const bool truncates : {false, true}) {
    const auto pair =
        Embedder(engine.get(), {.truncates = truncates}).tokens_of_pair("weather", "way");
    ASSERT_FALSE(pair);
    EXPECT_EQ(pair.error().message, "question: expected at most 2 tokens, found 3");
  }
}

std::string adapter_path(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/adapters/" + name;
}

const std::string kDecoder =
    std::string(CAIRN_FIXTURES) + "/folders/Tiny-Llama-3.1-8B-Instruct.gguf";

TEST(Embedder, VectorsThatAreNotFiniteAreErrors) {
  EngineOptions options = embedding_options(Pooling::mean);
  options.adapters = {{.path = adapter_path("tone.gguf"), .scale = 1e30f}};
  const auto engine = load_engine(kDecoder, options);
  ASSERT_NE(engine, nullptr);
  const std::vector<std::vector<Token>> texts = {{Token(1), Token(2)}};
  const auto found = Embedder(engine.get(), {}).embed(texts);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::invalid_data);
  EXPECT_NE(found.error().message.find("text 1: expected finite numbers"), std::string::npos)
      << found.error().message;
}

// The output matrix makes logits, and vectors are what it would read.
TEST(Embedder, AdaptersOfWhatIsNotComputedAreNamed) {
  EngineOptions options = embedding_options(Pooling::mean);
  options.adapters = {{.path = adapter_path("facts.gguf")}};
  EXPECT_EQ(error_of_loading(kDecoder, options).message,
            "output.weight.lora_a: expected a change of a matrix that is multiplied with, found "
            "one of output.weight");
}

TEST(Pooling, NamesAndNumbers) {
  for (const Pooling pooling :
       {Pooling::none, Pooling::mean, Pooling::cls, Pooling::last, Pooling::rank}) {
    EXPECT_EQ(parse_pooling("--pooling", name(pooling)).value(), pooling);
  }
  EXPECT_EQ(parse_pooling("--pooling", "max").error().message,
            "--pooling: expected one of none, mean, cls, last, rank, found \"max\"");
  const auto of = [](const std::string& path) {
    return pooling_of(gguf::File::open(path).value()).value();
  };
  EXPECT_EQ(of(embedding_path("bert", ".gguf")), Pooling::cls);
  EXPECT_EQ(of(embedding_path("nomic_bert", ".gguf")), Pooling::mean);
  EXPECT_EQ(of(embedding_path("qwen3_embedding", ".gguf")), Pooling::last);
  EXPECT_EQ(of(golden_path("llama", ".gguf")), std::nullopt);
}

}  // namespace
}  // namespace cairn::test::embedder_test
