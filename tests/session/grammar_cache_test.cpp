// What was compiled once is not compiled again, by however many at once; what is kept is bounded.
#include "session/grammar_cache.h"

#include <atomic>
#include <thread>

#include "grammar/automaton.h"
#include "tests/grammar/toy_vocabulary.h"

namespace cairn::session::grammar_cache_test {
namespace {

using namespace grammar;

Result<Grammar> get(GrammarCache& cache, const std::string& regex) {
  return cache.get(Sha256().add(regex).finish(), [&] { return compile_regex(regex); });
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

TEST(GrammarCache, ThoseThatAskTogetherCompileOnce) {
  GrammarCache cache;
  std::atomic<int> compiled = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const std::string text = std::to_string(round);
        const Result<Grammar> made = cache.get(Sha256().add(text).finish(), [&] {
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
