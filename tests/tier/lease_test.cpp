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
  const tier::Lease lease = tier::lease_of(7, chain, 2000);
  EXPECT_EQ(lease.steps.size(), 3u);
  Result<tier::Lease> again = tier::decode_lease(tier::encode(lease));
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(*again, lease);
  EXPECT_EQ(tier::common_tokens(lease, chain, 2000), 2000);
  EXPECT_EQ(tier::common_tokens(lease, other, 2000), 1024);
  const std::vector<Token> brief = tokens(600, 600), longer = tokens(2100, 2000);
  EXPECT_EQ(tier::common_tokens(lease, store::Chain({}, brief), 600), 512);
  EXPECT_EQ(tier::common_tokens(lease, store::Chain({}, longer), 2100), 2000);
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
  for (const size_t size : {size_t(0), size_t(16), size_t(25), tier::kLeaseBytesMax + 8}) {
    EXPECT_FALSE(bool(tier::decode_lease(std::vector<std::byte>(size)))) << size;
  }
  std::vector<std::byte> bytes(24);
  EXPECT_TRUE(bool(tier::decode_lease(bytes)));
  bytes[11] = std::byte(0x80);  // The length.
  EXPECT_FALSE(bool(tier::decode_lease(bytes)));
}

}  // namespace
}  // namespace cairn::test::lease_test
