// Chains grow with their tokens; whatever decides bytes decides names.
#include "store/keys.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/store/store_bench.h"

namespace cairn::store::keys_test {
namespace {

TEST(Keys, AChainIsThatOfItsBeginning) {
  const std::vector<Token> text = memory::toy::tokens(100);
  const Sha256Digest fingerprint = toy::kFingerprint;
  const Chain whole(fingerprint, text);
  EXPECT_EQ(whole.link_count(), 3);
  std::set<Sha256Digest> keys;
  for (int32_t length = 0; length <= 100; ++length) {
    const Chain chain(fingerprint, std::span(text).first(size_t(length)));
    EXPECT_EQ(chain.key_at(length), whole.key_at(length));
    keys.insert(chain.key_at(length));
  }
  EXPECT_EQ(keys.size(), 101u);
  std::vector<Token> other = text;
  other[40] = Token(9999);
  const Chain changed(fingerprint, other);
  EXPECT_EQ(changed.link(1), whole.link(1));
  EXPECT_NE(changed.link(2), whole.link(2));
  EXPECT_NE(Chain({}, text).link(0), whole.link(0));
}

TEST(Keys, EveryFieldIsPartOfAName) {
  const Sha256Digest a = Sha256().add("a").finish(), b = Sha256().add("b").finish();
  std::set<Sha256Digest> names = {name_of(a, b, {}), name_of(b, a, {}), name_of(a, a, {})};
  names.insert(name_of(a, b, {.type = 1}));
  names.insert(name_of(a, b, {.group = 1}));
  names.insert(name_of(a, b, {.begin = 1}));
  names.insert(name_of(a, b, {.end = 1}));
  names.insert(name_of(a, b, {.layout = 1}));
  names.insert(name_of(a, b, {.content = a}));
  EXPECT_EQ(names.size(), 9u);
}

TEST(Keys, LayoutsHaveIdsByWhatLiesInTheirBlocks) {
  std::set<uint32_t> ids;
  for (const toy::ToyModel& model : toy::store_models()) {
    ids.insert(layout_id(model.layout()));
    EXPECT_EQ(layout_id(model.layout()), layout_id(toy::StoreBench(model).here.memory->layout()));
    if (model.layout().recurrent_group >= 0) ids.insert(layout_id(model.layout(false)));
  }
  EXPECT_EQ(ids.size(), 14u);
}

}  // namespace
}  // namespace cairn::store::keys_test
