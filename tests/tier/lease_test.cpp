// What machines tell each other of what they compute, as bytes that anybody may have written.
#include "tier/lease.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn::test::lease_test {
namespace {

std::vector<Token> tokens(int32_t count, int32_t same) {
  std::vector<Token> made;
  for (int32_t index = 0; index < count; ++index) {
    made.push_back(Token(index < same ? index : index + 1000));
  }
  return made;
}

TEST(Lease, ComesBackAndSaysWhatIsCommon) {
  const std::vector<Token> one = tokens(2000, 2000), two = tokens(2000, 1100);
  const store::Chain chain({}, one), other({}, two);
  const tier::Lease lease = tier::lease_of(7, chain);
  EXPECT_EQ(lease.steps.size(), 3u);
  Result<tier::Lease> again = tier::decode_lease(tier::encode(lease));
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(*again, lease);
  EXPECT_EQ(tier::common_links(lease, chain), 48);
  EXPECT_EQ(tier::common_links(lease, other), 32);
  const std::vector<Token> brief = tokens(600, 600);
  EXPECT_EQ(tier::common_links(lease, store::Chain({}, brief)), 16);
}

TEST(Lease, StandsForTheNextStepThatIsNotHeld) {
  const std::vector<Token> prompt = tokens(1100, 1100);
  const store::Chain chain({}, prompt);
  EXPECT_EQ(tier::lease_link(0, chain), 16);
  EXPECT_EQ(tier::lease_link(15, chain), 16);
  EXPECT_EQ(tier::lease_link(16, chain), 32);
  EXPECT_EQ(tier::lease_link(32, chain), std::nullopt);
}

TEST(Lease, OtherBytesAreRefused) {
  for (const size_t size : {size_t(0), size_t(7), size_t(9), size_t(8 * 4098)}) {
    EXPECT_FALSE(bool(tier::decode_lease(std::vector<std::byte>(size)))) << size;
  }
  EXPECT_TRUE(bool(tier::decode_lease(std::vector<std::byte>(8))));
}

}  // namespace
}  // namespace cairn::test::lease_test
