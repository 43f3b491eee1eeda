// Drafts are what a search of the whole text would find; rewinds, repetition and other
// conversations included.
#include "draft/lookup_drafter.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <fstream>
#include <map>
#include <string>

#include "draft/recycle_drafter.h"
#include "tests/draft/world.h"

namespace cairn::draft::lookup_drafter_test {
namespace {

using test::kVocabulary;
using test::random_text;
using test::Text;
using test::timeless;

Draft drafted(LookupDrafter& drafter, std::span<const Token> text, int32_t count_max = 16) {
  Draft draft;
  drafter.propose({.text = text, .count_max = count_max}, draft);
  EXPECT_EQ(draft.tokens.size(), draft.chances.size());
  return draft;
}

Speculator speculator_of(std::shared_ptr<Knowledge> knowledge) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(
      std::make_unique<LookupDrafter>(LookupDrafter::Options{.knowledge = std::move(knowledge)}));
  return Speculator(std::move(drafters), kVocabulary, timeless());
}

void append(Text& text, std::span<const Token> more) {
  text.insert(text.end(), more.begin(), more.end());
}

// The longest end of the text that occurs earlier in it.
size_t longest_match(std::span<const Token> text) {
  size_t length = 0;
  while (length + 1 < text.size()) {
    const auto end = text.last(length + 1);
    const auto before = text.first(text.size() - 1);
    if (std::search(before.begin(), before.end(), end.begin(), end.end()) == before.end()) break;
    ++length;
  }
  return length;
}

// The first token of a draft is what came behind some occurrence of the longest match.
void expect_right_draft(std::span<const Token> text, const Draft& draft) {
  const size_t length = longest_match(text);
  ASSERT_EQ(draft.tokens.empty(), length < 2) << length;
  if (draft.tokens.empty()) return;
  bool is_there = false;
  for (size_t end = length; end < text.size(); ++end) {
    const auto part = text.first(end).last(length);
    is_there =
        is_there || (std::ranges::equal(part, text.last(length)) && text[end] == draft.tokens[0]);
  }
  EXPECT_TRUE(is_there);
}

TEST(LookupDrafter, FindsTheLongestMatchOfItsOwnText) {
  // With fewer symbols chance makes matches so long that they count as copies.
  for (const uint32_t symbols : {6u, 8u, 20u}) {
    const Text text = random_text(400, symbols, symbols);
    LookupDrafter drafter({});
    for (size_t end = 1; end <= text.size(); ++end) {
      const auto seen = std::span(text).first(end);
      expect_right_draft(seen, drafted(drafter, seen));
    }
  }
}

TEST(LookupDrafter, RewindsFindWhatIsThereAndWhatWasAbandoned) {
  RandomStream random(8, 0, 0);
  for (int round = 0; round < 40; ++round) {
    LookupDrafter drafter({});
    Text text;
    for (int step = 0; step < 60; ++step) {
      if (random.below(4) == 0) text.resize(random.below(uint32_t(text.size()) + 1));
      const int32_t count = int32_t(random.below(8)) + 1;
      append(text, random_text(count, uint64_t(round * 100 + step), 3));
      const Draft draft = drafted(drafter, text);
      // At least as good as the text alone allows: short texts, so within what is kept of a branch.
      EXPECT_TRUE(longest_match(text) < 2 || !draft.tokens.empty());
    }
  }
  // An answer that is made again: what was said the first time.
  const Text prompt = random_text(100, 1);
  const Text answer = random_text(50, 2);
  LookupDrafter drafter({});
  Text text = prompt;
  append(text, answer);
  drafted(drafter, text);
  text.resize(prompt.size());
  const Draft again = drafted(drafter, text);
  ASSERT_EQ(again.tokens.size(), 16u);
  EXPECT_TRUE(std::equal(again.tokens.begin(), again.tokens.end(), answer.begin()));
}

TEST(LookupDrafter, RepetitionGoesOn) {
  LookupDrafter drafter({});
  Text text;
  for (int32_t i = 0; i < 20; ++i) text.push_back(Token(i % 3));
  const Draft draft = drafted(drafter, text, 64);
  ASSERT_EQ(draft.tokens.size(), 64u);
  for (int32_t i = 0; i < 64; ++i) EXPECT_EQ(index_of(draft.tokens[size_t(i)]), (20 + i) % 3);
  const Text same(50, Token(4));
  LookupDrafter other({});
  EXPECT_EQ(drafted(other, same).tokens, Text(16, Token(4)));
}

// One token in twenty of a copy is another one, put in or left out: each costs the tokens that no
// drafter could know, and no more.
TEST(LookupDrafter, ACopyWithChangesGoesOn) {
  const Text original = random_text(300, 11);
  for (const int32_t kind : {0, 1, 2}) {
    Text copy;
    int32_t changes = 0;
    for (size_t i = 0; i < original.size(); ++i) {
      const bool is_changed = i >= 20 && i % 20 == 0;
      if (is_changed) ++changes;
      if (is_changed && kind < 2) copy.push_back(Token(int32_t(900 + i % 100)));
      if (!is_changed || kind == 1) copy.push_back(original[i]);
    }
    Text text = original;
    LookupDrafter drafter({});
    int32_t wrong = 0;
    for (const Token token : copy) {
      const Draft draft = drafted(drafter, text);
      if (draft.tokens.empty() || draft.tokens[0] != token) ++wrong;
      text.push_back(token);
    }
    const int32_t of_a_change = kind == 1 ? 2 : 1;
    EXPECT_LE(wrong, changes * of_a_change + 2) << kind;
    EXPECT_GE(wrong, changes) << kind;
  }
}

// A copy that ends is given up: behind three other tokens nothing is drafted from it.
TEST(LookupDrafter, ACopyThatEndsIsGivenUp) {
  Text text = random_text(100, 12);
  LookupDrafter drafter({});
  append(text, Text(text.begin() + 10, text.begin() + 40));
  EXPECT_EQ(drafted(drafter, text).tokens[0], text[40]);
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(drafted(drafter, text).tokens.empty());
    text.push_back(Token(2000 + i));
  }
  EXPECT_TRUE(drafted(drafter, text).tokens.empty());
}

TEST(LookupDrafter, TheLatestOccurrenceAndTheLongestMatchWin) {
  Text text = random_text(30, 1, 500);
  const Text common = {Token(901), Token(902), Token(903)};
  const auto say = [&](int32_t before, int32_t after) {
    text.push_back(Token(before));
    append(text, common);
    text.push_back(Token(after));
    append(text, random_text(10, uint64_t(after), 500));
  };
  say(910, 921);
  say(911, 922);
  say(912, 923);
  LookupDrafter drafter({});
  text.push_back(Token(999));
  append(text, common);
  EXPECT_EQ(index_of(drafted(drafter, text).tokens[0]), 923);
  text.resize(text.size() - 4);
  text.push_back(Token(910));
  append(text, common);
  EXPECT_EQ(index_of(drafted(drafter, text).tokens[0]), 921);
}

TEST(LookupDrafter, IsSurerOfLongerMatchesAndOfAgreement) {
  const Text part = random_text(40, 5, 500);
  const auto first_chance = [&](size_t length) {
    Text text = part;
    append(text, random_text(20, 6, 500));
    text.push_back(Token(999));
    append(text, std::span(part).first(length));
    LookupDrafter drafter({});
    return drafted(drafter, text).chances.at(0);
  };
  EXPECT_LT(first_chance(2), first_chance(5));
  EXPECT_LT(first_chance(5), first_chance(20));
  // The match was followed by 20 at last, and by 20 as well before that, or by 21.
  const auto chance_beside = [&](int32_t other) {
    Text text;
    for (const int32_t id : {1, 2, 3, other, 8, 1, 2, 3, 20, 7, 1, 2, 3}) {
      text.push_back(Token(id));
    }
    LookupDrafter drafter({});
    const Draft draft = drafted(drafter, text);
    EXPECT_EQ(index_of(draft.tokens[0]), 20);
    return draft.chances[0];
  };
  EXPECT_LT(chance_beside(21), chance_beside(20));
}

// A form that is filled in again and again, with another number in it each time: what stands behind
// its words is sure, the number is not. The tenant's next conversation knows that from its start.
TEST(LookupDrafter, LearnsWhichTokensChange) {
  const auto knowledge = std::make_shared<Knowledge>(size_t(1) << 20);
  Text text;
  const auto fill_in = [&](LookupDrafter* drafter) {
    Draft behind_form;
    for (const int32_t id : {1, 2, 3, 4, 5, 6}) {
      text.push_back(Token(id));
      if (drafter != nullptr) behind_form = drafted(*drafter, text);
    }
    text.push_back(Token(int32_t(100 + text.size())));
    if (drafter != nullptr) drafted(*drafter, text);
    return behind_form;
  };
  fill_in(nullptr);
  LookupDrafter first({.knowledge = knowledge});
  const Draft before = fill_in(&first);
  ASSERT_GT(before.chances.at(0), 0.6f);
  for (int32_t i = 0; i < 20; ++i) fill_in(&first);
  knowledge->said.append(text);
  text = {Token(50), Token(51)};
  LookupDrafter second({.knowledge = knowledge});
  const Draft after = fill_in(&second);
  EXPECT_LT(after.chances.at(0), 0.3f);
  // And in the middle of the form it is sure of the rest, not of the number.
  text.insert(text.end(), {Token(1), Token(2), Token(3)});
  const Draft form = drafted(second, text);
  ASSERT_GE(form.chances.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_GT(form.chances[i], form.chances[3] + 0.1f) << i;
}

TEST(LookupDrafter, SaysWhatOtherConversationsSaid) {
  auto knowledge = std::make_shared<Knowledge>(size_t(1) << 20);
  const Text said = random_text(500, 1);
  knowledge->said.append(said);
  Text text = random_text(50, 2);
  append(text, std::span(said).first(100));
  Speculator speculator = speculator_of(knowledge);
  Text whole = text;
  append(whole, std::span(said).subspan(100, 400));
  EXPECT_GE(test::answer(speculator, whole, text.size(), {}).speed(), 4);
  // Texts end where they ended.
  LookupDrafter drafter({.knowledge = knowledge});
  EXPECT_TRUE(drafted(drafter, said).tokens.empty());
  EXPECT_EQ(drafted(drafter, std::span(said).first(498)).tokens.size(), 2u);
}

TEST(LookupDrafter, WhatTheCorpusHasIsNotIndexedAgain) {
  auto knowledge = std::make_shared<Knowledge>(size_t(4) << 20);
  Text text = random_text(20000, 4);
  knowledge->said.append(text);
  // The next turn, which quotes the ones before, and itself.
  LookupDrafter drafter({.knowledge = knowledge, .known_count = text.size()});
  append(text, random_text(200, 5));
  append(text, std::span<const Token>(text).subspan(5000, 10));
  const Text behind(text.begin() + 5010, text.begin() + 5026);
  EXPECT_EQ(drafted(drafter, text).tokens, behind);
  append(text, std::span<const Token>(text).subspan(20100, 10));
  EXPECT_EQ(drafted(drafter, text).tokens, Text(text.begin() + 20110, text.begin() + 20126));
  // A quotation that begins in what the corpus has and goes on in what is new.
  append(text, std::span<const Token>(text).subspan(19990, 10));
  EXPECT_EQ(drafted(drafter, text).tokens, Text(text.begin() + 20000, text.begin() + 20016));
  // Rewound into what the corpus has.
  text.resize(10000);
  drafted(drafter, text);
  append(text, random_text(20, 6));
  append(text, std::span<const Token>(text).subspan(6000, 10));
  EXPECT_EQ(drafted(drafter, text).tokens, Text(text.begin() + 6010, text.begin() + 6026));
}

TEST(LookupDrafter, KnowledgeMayChangeBetweenSteps) {
  auto knowledge = std::make_shared<Knowledge>(size_t(256) << 10);
  const Text said = random_text(300, 3);
  LookupDrafter drafter({.knowledge = knowledge});
  const auto text = std::span(said).first(100);
  EXPECT_TRUE(drafted(drafter, text).tokens.empty());
  knowledge->said.append(said);
  EXPECT_TRUE(drafted(drafter, std::span(said).first(101)).tokens.empty());
  // A cursor that was there before the text sees it some tokens later.
  EXPECT_FALSE(drafted(drafter, std::span(said).first(103)).tokens.empty());
  for (uint64_t i = 0; i < 10; ++i) knowledge->said.append(random_text(5000, 50 + i));
  EXPECT_TRUE(drafted(drafter, std::span(said).first(104)).tokens.empty());
  knowledge->said.append(said);
  knowledge->said.forget();
  EXPECT_TRUE(drafted(drafter, std::span(said).first(105)).tokens.empty());
}

TEST(LookupDrafter, ATextThatIsRepeatedIsAccepted) {
  // Like a request to repeat a paragraph: 22 of 30 drafted tokens are what another engine's look-up
  // has accepted on such a text.
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const Text paragraph = random_text(120, seed, 1000);
    Text text = random_text(30, seed + 50, 1000);
    append(text, paragraph);
    append(text, random_text(20, seed + 90, 1000));
    const size_t prompt_count = text.size();
    append(text, paragraph);
    Speculator speculator = speculator_of(nullptr);
    const double speed = test::answer(speculator, text, prompt_count, {}).speed();
    const Report& report = speculator.report();
    EXPECT_GE(double(report.accepted()), 22.0 / 30 * double(report.drafted()));
    EXPECT_GE(report.accepted(), 80);
    EXPECT_GE(speed, 2.5);
  }
}

TEST(LookupDrafter, LongPromptsAreFollowedInParts) {
  Text text = random_text(100000, 11);
  LookupDrafter drafter({});
  append(text, std::span<const Token>(text).subspan(90000, 30));
  size_t calls = 0;
  while (drafted(drafter, text).tokens.empty() && calls < 40) ++calls;
  // 65536 tokens, 2048 at a time.
  EXPECT_EQ(calls, 31u);
  text.resize(10);
  EXPECT_TRUE(drafted(drafter, text).tokens.empty());
  append(text, random_text(20, 12));
  const Text repeated(text.end() - 12, text.end());
  append(text, repeated);
  EXPECT_FALSE(drafted(drafter, text).tokens.empty());
}

// Words and signs of a page of the documentation, as ids.
Text page_of(const char* name) {
  std::ifstream file(std::string(CAIRN_SOURCE) + "/docs/" + name);
  std::map<std::string, int32_t> ids;
  Text text;
  std::string word;
  const auto say = [&](const std::string& said) {
    if (said.empty()) return;
    text.push_back(Token(ids.emplace(said, int32_t(ids.size())).first->second));
  };
  for (char c = 0; file.get(c);) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    say(word);
    word.clear();
    say(std::string(1, c));
  }
  return text;
}

// The prompt, and what another turn adds to it; a step's tokens are the answer.
TEST(LookupDrafter, ReadsPromptsAndNoAnswers) {
  Text text = random_text(600, 1);
  LookupDrafter drafter({});
  drafted(drafter, text);
  EXPECT_TRUE(drafter.is_reading());
  for (const Token token : random_text(20, 2)) {
    text.push_back(token);
    drafted(drafter, text);
    EXPECT_FALSE(drafter.is_reading());
  }
  append(text, random_text(200, 3));
  drafted(drafter, text);
  EXPECT_TRUE(drafter.is_reading());
}

TEST(LookupDrafter, ReachIsTrueOnProse) {
  // The first page is what calibrations are learned from.
  Calibrations calibrations;
  auto knowledge = std::make_shared<Knowledge>(size_t(8) << 20);
  const std::shared_ptr<RecycleTable> table(knowledge, &knowledge->successors);
  std::array<double, 10> said{}, was{};
  double all = 0;
  bool is_first = true;
  for (const char* page : {"server.md", "memory.md", "python.md", "numerics.md", "store.md"}) {
    const Text text = page_of(page);
    ASSERT_GT(text.size(), 2000u) << page;
    std::vector<std::unique_ptr<Drafter>> drafters;
    drafters.push_back(
        std::make_unique<LookupDrafter>(LookupDrafter::Options{.knowledge = knowledge}));
    drafters.push_back(std::make_unique<RecycleDrafter>(table));
    Speculator speculator(std::move(drafters), 1 << 20, timeless(&calibrations));
    const auto see = [&](const Speculator::Proposal& proposal, int32_t right) {
      if (is_first) return;
      for (size_t i = 0; i < proposal.reach.size(); ++i) {
        const auto part = std::min(size_t(proposal.reach[i] * 10), size_t(9));
        said[part] += double(proposal.reach[i]);
        was[part] += int32_t(i) < right ? 1 : 0;
        ++all;
      }
    };
    EXPECT_GE(test::answer(speculator, text, 500, {.see = see}).speed(), 1.3) << page;
    knowledge->said.append(text);
    is_first = false;
  }
  double error = 0;
  for (size_t part = 0; part < 10; ++part) error += std::abs(said[part] - was[part]) / all;
  EXPECT_LE(error, 0.05);
  RecordProperty("error", std::to_string(error));
}

TEST(LookupDrafter, UselessOnRandomTextButCheap) {
  const Text text = random_text(10 + 256, 13, 50);
  Speculator speculator = speculator_of(nullptr);
  EXPECT_GE(test::answer(speculator, text, 10, {}).speed(), 0.98);
}

}  // namespace
}  // namespace cairn::draft::lookup_drafter_test
