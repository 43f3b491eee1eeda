// Nothing is kept twice, nothing of one tenant is another's, and budgets hold.
#include "draft/corpus.h"

#include <gtest/gtest.h>

#include "tests/draft/world.h"

namespace cairn::draft::corpus_test {
namespace {

using test::random_text;
using test::Text;

int32_t match_length(const Corpus& corpus, std::span<const Token> text) {
  TextIndex::Cursor cursor;
  corpus.index().follow(cursor, text, text.size());
  return corpus.index().longest(cursor).length;
}

TEST(Corpus, AConversationIsNotStoredAgainByItsNextTurn) {
  const Text text = random_text(20000, 1, 5000);
  Corpus whole(size_t(32) << 20), told(size_t(32) << 20), asked(size_t(32) << 20);
  whole.append(text);
  for (size_t end = 500; end <= text.size(); end += 500) {
    told.append(std::span(text).first(end), end - 500);
    asked.append(std::span(text).first(end));
    // Other conversations come between.
    if (end % 2000 == 0) {
      for (Corpus* corpus : {&told, &asked}) corpus->append(random_text(10, end, 5000));
    }
  }
  EXPECT_LE(double(told.bytes()), 1.6 * double(whole.bytes()));
  EXPECT_LE(double(asked.bytes()), 1.6 * double(whole.bytes()));
  for (size_t end = 100; end <= text.size(); end += 333) {
    const auto part = std::span(text).first(end).last(64);
    // Where another one came between, matches begin 32 tokens before the turn.
    EXPECT_GE(match_length(told, part), 32);
    EXPECT_GE(match_length(asked, part), 32);
  }
  EXPECT_EQ(asked.known_count(text), text.size());
  EXPECT_EQ(told.known_count(text), text.size());
}

TEST(Corpus, KnowsHowMuchItKnows) {
  Corpus corpus(size_t(1) << 20);
  const Text text = random_text(1000, 2, 50);
  EXPECT_EQ(corpus.known_count(text), 0u);
  corpus.append(std::span(text).first(700));
  EXPECT_NEAR(double(corpus.known_count(text)), 700, 5);
  const size_t bytes = corpus.bytes();
  corpus.append(std::span(text).first(700));
  corpus.append(std::span(text).first(300), 300);
  corpus.append(std::span(text).first(300), 5000);
  EXPECT_EQ(corpus.bytes(), bytes);
  EXPECT_LE(corpus.known_count(random_text(100, 3, 50)), 3u);
  corpus.forget();
  EXPECT_EQ(corpus.known_count(text), 0u);
}

TEST(Corpus, ABranchThatWasAbandonedStays) {
  Corpus corpus(size_t(1) << 20);
  Text first = random_text(300, 4, 5000);
  Text second(first.begin(), first.begin() + 200);
  const Text other = random_text(100, 5, 5000);
  second.insert(second.end(), other.begin(), other.end());
  corpus.append(first);
  corpus.append(second, 200);
  EXPECT_EQ(match_length(corpus, std::span(first).last(60)), 60);
  EXPECT_EQ(match_length(corpus, std::span(second).last(60)), 60);
  EXPECT_GE(match_length(corpus, std::span(second).first(210).last(42)), 42);
}

TEST(Corpora, TenantsDoNotSeeEachOther) {
  Corpora corpora({});
  const Text canary = random_text(100, 8, 5000);
  corpora.of("a")->said.append(canary);
  corpora.of("a")->successors.learn(Token(1), Token(2));
  EXPECT_EQ(match_length(corpora.of("a")->said, canary), 64);
  EXPECT_EQ(match_length(corpora.of("b")->said, canary), 0);
  EXPECT_LT(index_of(corpora.of("b")->successors.best(Token(1)).token), 0);
}

TEST(Corpora, TheBudgetHoldsAndTheLastUsedStay) {
  constexpr size_t kBudget = size_t(4) << 20;
  Corpora corpora({.tenant_bytes = size_t(1) << 20, .bytes = kBudget});
  const std::shared_ptr<Knowledge> held = corpora.of("held");
  const Text text = random_text(20000, 9, 5000);
  held->said.append(text);
  for (int tenant = 0; tenant < 20; ++tenant) {
    corpora.of(std::to_string(tenant))->said.append(text);
    corpora.trim();
    EXPECT_LE(corpora.bytes(), kBudget);
  }
  EXPECT_GT(corpora.bytes(), kBudget / 2);
  EXPECT_EQ(match_length(corpora.of("19")->said, text), 64);
  EXPECT_EQ(match_length(corpora.of("0")->said, text), 0);
  // Who holds one has it still, emptied; and it is the same one.
  EXPECT_EQ(match_length(held->said, text), 0);
  held->said.append(text);
  EXPECT_EQ(corpora.of("held"), held);
  EXPECT_EQ(match_length(corpora.of("held")->said, text), 64);
}

}  // namespace
}  // namespace cairn::draft::corpus_test
