// Chains of successors, from the text and from what rows have shown.
#include "draft/recycle_drafter.h"

#include <gtest/gtest.h>

#include "tests/draft/world.h"

namespace cairn::draft::recycle_drafter_test {
namespace {

using test::Text;

std::vector<int32_t> drafted(RecycleDrafter& drafter, const Text& text, int32_t count_max = 16) {
  Draft draft;
  drafter.propose({.text = text, .count_max = count_max}, draft);
  EXPECT_EQ(draft.tokens.size(), draft.chances.size());
  std::vector<int32_t> ids;
  for (const Token token : draft.tokens) ids.push_back(index_of(token));
  return ids;
}

TEST(RecycleDrafter, FollowsSuccessors) {
  using Ids = std::vector<int32_t>;
  auto table = std::make_shared<RecycleTable>();
  RecycleDrafter drafter(table);
  EXPECT_EQ(drafted(drafter, {}), Ids());
  Text text = {Token(1), Token(2), Token(3), Token(1)};
  EXPECT_EQ(drafted(drafter, text), Ids({2, 3, 1, 2, 3, 1, 2, 3}));
  EXPECT_EQ(drafted(drafter, text, 2), Ids({2, 3}));
  text.push_back(Token(9));
  EXPECT_EQ(drafted(drafter, text), Ids());
  table->learn(Token(9), Token(3));
  // 1 was followed by 9 last.
  EXPECT_EQ(drafted(drafter, text, 4), Ids({3, 1, 9, 3}));
  // A rewind.
  text.resize(2);
  EXPECT_EQ(drafted(drafter, text, 1), Ids({3}));
}

TEST(RecycleDrafter, IsSurerOfWhatWasConfirmed) {
  auto table = std::make_shared<RecycleTable>();
  RecycleDrafter drafter(table);
  Text text = {Token(1), Token(2), Token(1)};
  Draft once, often;
  drafter.propose({.text = text, .count_max = 1}, once);
  for (int i = 0; i < 5; ++i) text.insert(text.end(), {Token(2), Token(1)});
  drafter.propose({.text = text, .count_max = 1}, often);
  EXPECT_GT(often.chances[0], once.chances[0]);
}

// On a text whose tokens follow each other as in a language (a chain with a few likely successors),
// drafts gain time although nothing repeats word for word.
TEST(RecycleDrafter, GainsOnTextsWithLikelySuccessors) {
  RandomStream random(3, 0, 0);
  Text text = {Token(0)};
  while (text.size() < 4000) {
    const uint32_t token = uint32_t(index_of(text.back()));
    const bool is_likely = random.unit() < .5f;
    const uint32_t next = is_likely ? token * 7 + 3 : random.below(200);
    text.push_back(Token(int32_t(next % 200)));
  }
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<RecycleDrafter>(std::make_shared<RecycleTable>()));
  Speculator speculator(std::move(drafters), test::kVocabulary, test::timeless());
  EXPECT_GT(test::answer(speculator, text, 500, {}).speed(), 1.25);
}

}  // namespace
}  // namespace cairn::draft::recycle_drafter_test
