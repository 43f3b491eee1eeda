// Words for what became of look-ups.
#include "store/shared_tier.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::store::shared_tier_test {
namespace {

TEST(TierOutcome, HasAWordOfItsOwnForEach) {
  std::set<std::string_view> names;
  for (size_t outcome = 0; outcome < kTierOutcomes; ++outcome) {
    const std::string_view name = name_of(TierOutcome(outcome));
    EXPECT_FALSE(name.empty());
    names.insert(name);
  }
  EXPECT_EQ(names.size(), kTierOutcomes);
  EXPECT_EQ(name_of(TierOutcome::computed), "computed");
}

}  // namespace
}  // namespace cairn::store::shared_tier_test
