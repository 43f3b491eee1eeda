// Text of a model's own: the same from one seed, others from others, and likelier than chance.
#include "measure/own_text.h"

#include <gtest/gtest.h>

#include "measure/perplexity.h"

namespace cairn::measure::own_text_test {
namespace {

constexpr int32_t kLength = 48;

TEST(OwnText, IsLikelyAndDependsOnTheSeed) {
  const EngineOptions options{.thread_count = 2};
  const auto engine = Engine::load(gguf::File::open(CAIRN_SOURCE "/assets/nano.gguf").value(),
                                   fit_for_perplexity(options, kLength))
                          .value();
  int64_t told = 0;
  const auto tell = [&](int64_t done, int64_t total) {
    told = done;
    EXPECT_EQ(total, kLength);
    return true;
  };
  const OwnTextShape shape{.length = kLength, .count = 2, .seed = 3};
  const std::vector<Token> text = write_own_text(*engine, shape, tell).value();
  ASSERT_EQ(text.size(), size_t(2 * kLength));
  EXPECT_EQ(told, kLength);
  EXPECT_EQ(text[0], *engine->tokenizer()->special_ids().bos);
  EXPECT_EQ(text[kLength], text[0]);
  EXPECT_EQ(write_own_text(*engine, shape, nullptr).value(), text);
  EXPECT_NE(write_own_text(*engine, {.length = kLength, .count = 2, .seed = 4}, nullptr).value(),
            text);
  // The second text is the first of the next seed: texts do not depend on each other.
  const auto next =
      write_own_text(*engine, {.length = kLength, .count = 1, .seed = 4}, nullptr).value();
  EXPECT_TRUE(std::equal(next.begin(), next.end(), text.begin() + kLength));
  PerplexityWork work{.shape = {kLength, engine->size().vocabulary_count, 2}, .tokens = text};
  const double perplexity = measure_perplexity(*engine, work).value().perplexity;
  EXPECT_LT(perplexity, engine->size().vocabulary_count / 20);
  auto ended = write_own_text(*engine, shape, [](int64_t, int64_t) { return false; });
  ASSERT_FALSE(bool(ended));
  EXPECT_EQ(ended.error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace cairn::measure::own_text_test
