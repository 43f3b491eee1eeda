// A digest that files keep: it never changes, and no small accident leaves it as it was.
#include "base/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

namespace cairn::digest_test {
namespace {

std::vector<std::byte> counted(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = std::byte(i * 37 + 11);
  return bytes;
}

TEST(Digest, ItsValuesArePartOfFileFormats) {
  EXPECT_EQ(digest({}), 0x99d1c22024353171u);
  EXPECT_EQ(digest(std::as_bytes(std::span(std::string_view("cairn")))), 0x69c57e73234b64ebu);
  EXPECT_EQ(digest(counted(1000)), 0x921800b8075d5dafu);
  EXPECT_EQ(digest(counted(1000), 7), 0x614090390c0b4f88u);
}

TEST(Digest, AnyFlippedBitShows) {
  std::vector<std::byte> bytes = counted(200);
  std::set<uint64_t> seen{digest(bytes)};
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_TRUE(seen.insert(digest(bytes)).second) << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

// The same bit in two words of a lane: what a sum or a plain exclusive or would not see.
TEST(Digest, TwoFlippedBitsOfALaneShow) {
  std::vector<std::byte> bytes = counted(64 * 8);
  std::set<uint64_t> seen{digest(bytes)};
  const auto flip = [&](size_t word, int bit) {
    bytes[64 * word + size_t(bit / 8)] ^= std::byte(1 << bit % 8);
  };
  for (size_t first = 0; first < 8; ++first) {
    for (size_t second = first + 1; second < 8; ++second) {
      for (int bit = 0; bit < 64; ++bit) {
        flip(first, bit), flip(second, bit);
        EXPECT_TRUE(seen.insert(digest(bytes)).second) << first << " " << second << " " << bit;
        flip(first, bit), flip(second, bit);
      }
    }
  }
}

TEST(Digest, SwappedAndMovedWordsShow) {
  std::vector<std::byte> bytes = counted(256);
  const uint64_t before = digest(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64);
  EXPECT_NE(digest(bytes), before);  // Stripes.
  bytes = counted(256);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  EXPECT_NE(digest(bytes), before);  // Lanes.
}

TEST(Digest, ZerosAreCounted) {
  std::set<uint64_t> seen;
  const std::vector<std::byte> zeros(300);
  for (size_t count = 0; count <= zeros.size(); ++count) {
    EXPECT_TRUE(seen.insert(digest(std::span(zeros).first(count))).second) << count;
  }
  EXPECT_NE(digest(zeros, 1), digest(zeros, 2));
}

}  // namespace
}  // namespace cairn::digest_test
