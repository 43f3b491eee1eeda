// What a drafter proposes is not trusted, and is compared with what the text becomes.
#include "draft/asked_drafter.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/draft/world.h"

namespace cairn::draft::asked_drafter_test {
namespace {

using test::Scripted;
using test::Text;

constexpr int32_t kVocabulary = 100;

AskedDrafter asked(Scripted::Propose propose, Calibration* shared = nullptr) {
  return AskedDrafter(std::make_unique<Scripted>(std::move(propose)), shared);
}

// Proposes tokens with a chance of a half each.
Scripted::Propose proposing(std::vector<int32_t> ids, float chance = .5f) {
  return [ids = std::move(ids), chance](const View&, Draft& draft) {
    for (const int32_t id : ids) draft.add(Token(id), chance);
  };
}

size_t count_of(Scripted::Propose propose, int32_t count_max = 8) {
  const Text text(10, Token(1));
  AskedDrafter drafter = asked(std::move(propose));
  drafter.ask({.text = text, .count_max = count_max}, kVocabulary);
  return drafter.tokens().size();
}

TEST(AskedDrafter, DropsWhatCannotBeAndAllAfterIt) {
  EXPECT_EQ(count_of(proposing({1, 2, 3})), 3u);
  EXPECT_EQ(count_of(proposing({1, 99, 100, 3})), 2u);
  EXPECT_EQ(count_of(proposing({-1, 2})), 0u);
  EXPECT_EQ(count_of(proposing({std::numeric_limits<int32_t>::max()})), 0u);
  for (const float chance : {std::numeric_limits<float>::quiet_NaN(), -.1f, 1.1f,
                             std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(count_of(proposing({1, 2}, chance)), 0u) << chance;
  }
  EXPECT_EQ(count_of(proposing({1, 2, 3, 4}), 3), 3u);
  EXPECT_EQ(count_of([](const View&, Draft& draft) { draft.tokens.assign(5, Token(1)); }), 0u);
  EXPECT_EQ(count_of([](const View&, Draft& draft) { draft.chances.assign(5, .5f); }), 0u);
  EXPECT_EQ(count_of([](const View&, Draft& draft) {
              for (int i = 0; i < 1000000; ++i) draft.add(Token(i % kVocabulary), .5f);
            }),
            8u);
}

TEST(AskedDrafter, IsNotAskedAfterThreeFaults) {
  const Text text(10, Token(1));
  const View view{.text = text, .count_max = 2};
  AskedDrafter invalid = asked(proposing({-1}));
  AskedDrafter lengthy = asked(proposing({1, 2, 3}));
  AskedDrafter late = asked(proposing({1}));
  for (int fault = 0; fault < 3; ++fault) {
    for (AskedDrafter* drafter : {&invalid, &lengthy, &late}) {
      EXPECT_EQ(drafter->off_reason(), "");
      drafter->ask(view, kVocabulary);
    }
    late.drop_late();
    EXPECT_TRUE(late.tokens().empty());
  }
  EXPECT_EQ(invalid.off_reason(), "its drafts were not valid");
  EXPECT_EQ(lengthy.off_reason(), "its drafts were too long");
  EXPECT_EQ(late.off_reason(), "its drafts came too late");
}

TEST(AskedDrafter, GivesTheMemoryOfWildListsBack) {
  // Seen through the second call, which gets the same lists.
  size_t capacity = 0;
  AskedDrafter drafter = asked([&](const View&, Draft& draft) {
    capacity = draft.tokens.capacity();
    draft.tokens.assign(1000000, Token(1));
    draft.chances.assign(1000000, 1);
  });
  const Text text(10, Token(1));
  for (int i = 0; i < 2; ++i) drafter.ask({.text = text, .count_max = 8}, kVocabulary);
  EXPECT_LE(capacity, 4096u);
}

TEST(AskedDrafter, CountsTokensThatWereNotCheckedToo) {
  // Right at first, wrong after that; the text comes one token at a time, so that each draft's
  // second token is known only when there is another draft.
  Text text(10, Token(1));
  AskedDrafter drafter = asked(proposing({1, 2}));
  for (int i = 0; i < 50; ++i) {
    drafter.ask({.text = text, .count_max = 8}, kVocabulary);
    text.push_back(Token(1));
    drafter.follow(text);
  }
  EXPECT_GT(drafter.chance(0), .9f);
  EXPECT_LT(drafter.chance(1), .1f);
}

TEST(AskedDrafter, OneRateForAllSequencesIsWhereANewOneBegins) {
  Calibration shared(Calibration::kShared);
  Text text(10, Token(1));
  AskedDrafter first = asked(proposing({2}), &shared);
  for (int i = 0; i < 50; ++i) {
    first.ask({.text = text, .count_max = 8}, kVocabulary);
    text.push_back(Token(1));
    first.follow(text);
  }
  AskedDrafter second = asked(proposing({2}), &shared);
  second.ask({.text = text, .count_max = 8}, kVocabulary);
  EXPECT_LT(second.chance(0), .1f);
}

TEST(AskedDrafter, ARewoundTextIsNotComparedWithDraftsOfTheOther) {
  Text text(10, Token(1));
  AskedDrafter drafter = asked(proposing({1, 1, 1}));
  drafter.ask({.text = text, .count_max = 8}, kVocabulary);
  drafter.follow(text);
  const float before = drafter.chance(0);
  text.resize(5);
  drafter.follow(text);
  EXPECT_TRUE(drafter.tokens().empty());
  text.resize(20, Token(2));
  drafter.follow(text);
  drafter.ask({.text = text, .count_max = 8}, kVocabulary);
  EXPECT_EQ(drafter.chance(0), before);
}

TEST(AskedDrafter, TellsWhatBecameOfAWatchedDraft) {
  for (const int32_t right : {0, 1, 2, 3}) {
    Text text(10, Token(1));
    AskedDrafter drafter = asked(proposing({3, 4, 5, 6}));
    drafter.ask({.text = text, .count_max = 8}, kVocabulary);
    drafter.watch(3);
    for (int32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(drafter.take_watched().right, -1);
      text.push_back(i < right ? Token(3 + i) : Token(1));
      drafter.follow(text);
      if (i >= std::min(right, 2)) break;
      // Others in between are not watched.
      drafter.ask({.text = text, .count_max = 8}, kVocabulary);
      drafter.watch(1);
    }
    const AskedDrafter::Watched watched = drafter.take_watched();
    EXPECT_EQ(watched.right, right);
    EXPECT_EQ(watched.count, 3);
    EXPECT_EQ(drafter.take_watched().right, -1);
  }
}

}  // namespace
}  // namespace cairn::draft::asked_drafter_test
