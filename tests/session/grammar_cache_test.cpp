// What was compiled once is not compiled again, by however many at once; what is kept is bounded.
#include "session/grammar_cache.h"

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "grammar/automaton.h"
#include "tests/grammar/toy_vocabulary.h"

namespace cairn::session::grammar_cache_test {
namespace {

using namespace grammar;

Result<Grammar> get(GrammarCache& cache, const std::string& regex, uint64_t tenant = 0) {
  return TenantGrammars(&cache, tenant).get(Sha256().add(regex).finish(), [&] {
    return compile_regex(regex);
  });
}

TEST(GrammarCache, WhatIsThereIsShared) {
  GrammarCache cache;
  const Grammar first = must(get(cache, "[a-z]+"));
  const Grammar second = must(get(cache, "[a-z]+"));
  EXPECT_EQ(first.shared(), second.shared());
  const Grammar other = must(get(cache, "[0-9]+"));
  EXPECT_NE(first.shared(), other.shared());
  EXPECT_EQ(cache.stats().compiled, 2);
  EXPECT_EQ(cache.stats().found, 1);
  EXPECT_GE(cache.stats().bytes, first.byte_size() + other.byte_size());
}

TEST(GrammarCache, ErrorsAreNotKept) {
  GrammarCache cache;
  for (int count = 0; count < 2; ++count) {
    const Result<Grammar> wrong = get(cache, "(a");
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(cache.stats().compiled, 2);
  EXPECT_EQ(cache.stats().found, 0);
  EXPECT_EQ(cache.stats().bytes, 0u);
}

TEST(GrammarCache, WhatWasUsedLastStays) {
  GrammarCache large;
  must(get(large, "a"));
  const size_t one = large.stats().bytes;
  GrammarCache cache(3 * one);
  for (const char* regex : {"a", "b", "c", "a", "d"}) must(get(cache, regex));
  EXPECT_EQ(cache.stats().bytes, 3 * one);
  EXPECT_EQ(cache.stats().compiled, 4);
  for (const char* regex : {"a", "c", "d"}) must(get(cache, regex));
  EXPECT_EQ(cache.stats().compiled, 4);
  must(get(cache, "b"));
  EXPECT_EQ(cache.stats().compiled, 5);
  // What is larger than all of it is made and not kept.
  const Grammar wide =
      must(get(cache, "[a-z]{3,30}(0|1|23|345|67[a-z]{3,9}){5,50}x[^y]*y[A-Z]{9,40}"));
  ASSERT_GT(wide.byte_size(), 3 * one);
  EXPECT_EQ(cache.stats().bytes, 0u);
}

// Attack 15: what is kept of ten thousand schemas is no more than of a few.
TEST(GrammarCache, TenThousandSchemasStayWithinTheBudget) {
  constexpr size_t kBytesMax = size_t(1) << 20;
  GrammarCache cache(kBytesMax);
  size_t made_bytes = 0;
  for (int count = 0; count < 10000; ++count) {
    const std::string schema = "{\"type\":\"object\",\"properties\":{\"p" + std::to_string(count) +
                               "\":{\"type\":\"string\"}}}";
    const Grammar made = must(TenantGrammars(&cache).get(Sha256().add(schema).finish(),
                                                         [&] { return compile_schema(schema); }));
    made_bytes += made.byte_size();
    ASSERT_LE(cache.stats().bytes, kBytesMax) << count;
  }
  EXPECT_EQ(cache.stats().compiled, 10000);
  EXPECT_GT(made_bytes, 10 * kBytesMax);
  EXPECT_GT(cache.stats().bytes, kBytesMax / 2);
}

TEST(GrammarCache, WhatOneTenantHasCompiledAnotherDoesNotFind) {
  GrammarCache cache;
  const Grammar first = must(get(cache, "[a-z]+", 1));
  const Grammar other = must(get(cache, "[a-z]+", 2));
  EXPECT_NE(first.shared(), other.shared());
  EXPECT_EQ(must(get(cache, "[a-z]+", 1)).shared(), first.shared());
  EXPECT_EQ(cache.stats().compiled, 2);
  EXPECT_EQ(cache.stats().found, 1);
}

// How many of "a" to "d" tenant 1 has to compile again behind 20 of tenant 2.
int64_t compiled_again(std::vector<uint64_t> tenants, double part) {
  GrammarCache large;
  must(get(large, "a"));
  const size_t one = large.stats().bytes;
  GrammarCache cache(8 * one);
  cache.set_shares(std::move(tenants), part);
  for (const char* regex : {"a", "b", "c", "d"}) must(get(cache, regex, 1));
  for (char letter = 'a'; letter < 'u'; ++letter) must(get(cache, std::string(1, letter), 2));
  EXPECT_EQ(cache.stats().bytes, 8 * one);
  const int64_t compiled = cache.stats().compiled;
  // Those that are kept last, so that asking drops none of them.
  for (const char* regex : {"d", "c", "b", "a"}) must(get(cache, regex, 1));
  return cache.stats().compiled - compiled;
}

TEST(GrammarCache, AFloodDropsWhatIsItsOwn) {
  EXPECT_EQ(compiled_again({}, 1), 4);
  EXPECT_EQ(compiled_again({1, 2}, 1), 0);
  EXPECT_EQ(compiled_again({2, 1}, 0.5), 2);
  EXPECT_EQ(compiled_again({1, 2}, 0), 4);
  EXPECT_EQ(compiled_again({2, 3}, 1), 4);
}

// Room that nobody needs is for everybody; whoever comes later gets its share of it.
TEST(GrammarCache, WhatIsAboveAShareGoesFirst) {
  GrammarCache large;
  must(get(large, "a"));
  const size_t one = large.stats().bytes;
  GrammarCache cache(4 * one);
  cache.set_shares({1, 2}, 1);
  for (const char* regex : {"a", "b", "c", "d"}) must(get(cache, regex, 1));
  for (const char* regex : {"a", "b", "c", "d"}) must(get(cache, regex, 1));
  EXPECT_EQ(cache.stats().compiled, 4);
  for (const char* regex : {"a", "b"}) must(get(cache, regex, 2));
  EXPECT_EQ(cache.stats().bytes, 4 * one);
  for (const char* regex : {"c", "d"}) must(get(cache, regex, 1));
  for (const char* regex : {"a", "b"}) must(get(cache, regex, 2));
  EXPECT_EQ(cache.stats().compiled, 6);
}

TEST(GrammarCache, ThoseThatAskTogetherCompileOnce) {
  GrammarCache cache;
  std::atomic<int> compiled = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const std::string text = std::to_string(round);
        const Result<Grammar> made = TenantGrammars(&cache).get(Sha256().add(text).finish(), [&] {
          ++compiled;
          return compile_regex(text + "[a-z]{2,40}");
        });
        EXPECT_TRUE(made);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(compiled, 50);
  EXPECT_EQ(cache.stats().compiled, 50);
  EXPECT_EQ(cache.stats().found, 8 * 50 - 50);
}

// A matcher that another one of the same grammar has gone before answers as the first one did.
TEST(GrammarCache, StatesAreEachMatchersOwn) {
  GrammarCache cache;
  const auto tokens = TokenTrie::build(*toy_tokenizer({"ab", "abc"}));
  const auto first = must(Matcher::build(must(get(cache, "(abc?){2,9}")), tokens));
  const auto behind = must(first->advance(first->start(), "abcab"));
  EXPECT_TRUE(first->is_complete(behind));
  const auto second = must(Matcher::build(must(get(cache, "(abc?){2,9}")), tokens));
  EXPECT_EQ(cache.stats().compiled, 1);
  EXPECT_FALSE(second->is_complete(second->start()));
  const TokenMask mask = must(second->mask(second->start()));
  EXPECT_TRUE(allows(mask, 'a'));
  EXPECT_FALSE(allows(mask, 'b'));
}

}  // namespace
}  // namespace cairn::session::grammar_cache_test
