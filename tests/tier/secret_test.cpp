// Digests that only those can make who know the secret.
#include "tier/secret.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::test::secret_test {
namespace {

using tier::Secret;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// RFC 4231, cases 1, 2 and 6.
TEST(KeyedDigest, IsHmacOfBothTexts) {
  const auto digest = [](std::string_view key, std::string_view first, std::string_view second) {
    return hex_of(
        tier::keyed_digest(key, std::as_bytes(std::span(first)), std::as_bytes(std::span(second))));
  };
  EXPECT_EQ(digest(std::string(20, '\x0b'), "Hi ", "There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(digest("Jefe", "what do ya want ", "for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(digest(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key",
                   " - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Secret, NamesAndSealsFollowFromIt) {
  const Secret none(""), one(std::string(32, 'a')), other(std::string(32, 'b'));
  const Sha256Digest name = Sha256().add("a record").finish();
  EXPECT_EQ(none.key_of("r:", name), "c1:r:" + hex_of(name));
  EXPECT_EQ(one.key_of("r:", name).size(), none.key_of("r:", name).size() + 9);
  EXPECT_NE(one.key_of("r:", name), other.key_of("r:", name));
  EXPECT_EQ(none.key_of("n:", 0xabcu), "c1:n:0000000000000abc");
  const std::span<const std::byte> parts[] = {bytes_of("one "), bytes_of("record")};
  const std::span<const std::byte> whole[] = {bytes_of("one record")};
  EXPECT_EQ(one.seal_of(name, parts), one.seal_of(name, whole));
  EXPECT_NE(one.seal_of(name, parts), other.seal_of(name, parts));
  EXPECT_NE(one.seal_of("a key", bytes_of("value")), one.seal_of("b key", bytes_of("value")));
}

// Whoever sends back what he has got proves nothing.
TEST(Secret, ProofsAreOfOneSideAndOneTalk) {
  const Secret one(std::string(32, 'a')), other(std::string(32, 'b'));
  const Sha256Digest asker = tier::new_number(), lender = tier::new_number();
  std::set<Sha256Digest> proofs;
  for (const Secret* secret : {&one, &other}) {
    for (const auto side : {Secret::Side::lender, Secret::Side::asker}) {
      proofs.insert(secret->proof_of(side, asker, lender));
      proofs.insert(secret->proof_of(side, lender, asker));
      proofs.insert(secret->proof_of(side, asker, tier::new_number()));
    }
  }
  EXPECT_EQ(proofs.size(), 12u);
  EXPECT_NE(asker, lender);
}

}  // namespace
}  // namespace cairn::test::secret_test
