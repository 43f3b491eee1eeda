// Who has what, as machines tell each other: nobody else's words are believed.
#include "tier/peers/directory.h"

#include <gtest/gtest.h>

namespace cairn::test::directory_test {
namespace {

using tier::Holder;
using tier::Secret;

Holder holder(uint64_t node) {
  return {.node = node, .manifest = Sha256().add(node).finish()};
}

TEST(Directory, HoldersComeBackAsTheyWere) {
  const Secret secret(std::string(32, 'k'));
  for (uint64_t count = 1; count <= tier::kHoldersMax; ++count) {
    std::vector<Holder> holders;
    for (uint64_t node = 1; node <= count; ++node) holders.push_back(holder(node << 56 | 7));
    const auto value = encode_holders(secret, "key", holders);
    EXPECT_LE(value.size(), tier::kHoldersBytesMax);
    EXPECT_EQ(decode_holders(secret, "key", value), holders);
  }
}

// Every bit, every length, another key, another secret: nobody has it.
TEST(Directory, WhatIsNotSealedRightIsNobodys) {
  const Secret secret(std::string(32, 'k'));
  const std::vector<Holder> holders = {holder(1), holder(2)};
  const auto value = encode_holders(secret, "key", holders);
  EXPECT_TRUE(decode_holders(secret, "another key", value).empty());
  EXPECT_TRUE(decode_holders(Secret(""), "key", value).empty());
  for (size_t bit = 0; bit < 8 * value.size(); ++bit) {
    auto wrong = value;
    wrong[bit / 8] ^= std::byte(1 << (bit % 8));
    EXPECT_TRUE(decode_holders(secret, "key", wrong).empty()) << bit;
  }
  for (size_t length = 0; length < value.size(); ++length) {
    EXPECT_TRUE(decode_holders(secret, "key", std::span(value).first(length)).empty()) << length;
  }
  const std::vector<std::byte> long_value(100000);
  EXPECT_TRUE(decode_holders(secret, "key", long_value).empty());
  EXPECT_FALSE(decode_node(secret, "key", long_value).has_value());
  EXPECT_FALSE(decode_node(secret, "key", std::span(value)) == std::optional<std::string>("x"));
}

TEST(Directory, TheNewestComesFirstAndOnce) {
  std::vector<Holder> holders;
  for (uint64_t node = 1; node <= 6; ++node) holders = with_newest(holder(node), holders);
  EXPECT_EQ(holders, (std::vector<Holder>{holder(6), holder(5), holder(4), holder(3)}));
  Holder newer = holder(4);
  newer.manifest = {};
  holders = with_newest(newer, holders);
  EXPECT_EQ(holders, (std::vector<Holder>{newer, holder(6), holder(5), holder(3)}));
}

TEST(Directory, MachinesSayWhereTheyAre) {
  const Secret secret(std::string(32, 'k'));
  const auto value = encode_node(secret, "key", "10.0.0.1:7400");
  EXPECT_EQ(decode_node(secret, "key", value), "10.0.0.1:7400");
  EXPECT_FALSE(decode_node(secret, "other", value).has_value());
  EXPECT_FALSE(decode_node(Secret(std::string(32, 'l')), "key", value).has_value());
}

}  // namespace
}  // namespace cairn::test::directory_test
