// SHA-256: the examples of FIPS 180-4 and NIST, and that pieces make no difference.
#include "base/sha256.h"

#include <gtest/gtest.h>

namespace cairn::sha256_test {
namespace {

std::string sha256(std::string_view text) {
  return hex_of(Sha256().add(text).finish());
}

TEST(Sha256, PublishedExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesMakeNoDifference) {
  const std::string text(300, 'x');
  for (size_t first = 0; first <= text.size(); ++first) {
    Sha256 sha;
    sha.add(std::string_view(text).substr(0, first)).add(std::string_view(text).substr(first));
    EXPECT_EQ(hex_of(sha.finish()), sha256(text)) << first;
  }
  EXPECT_EQ(hex_of(Sha256().add(uint64_t(0x0102)).finish()),
            sha256(std::string_view("\2\1\0\0\0\0\0\0", 8)));
}

}  // namespace
}  // namespace cairn::sha256_test
