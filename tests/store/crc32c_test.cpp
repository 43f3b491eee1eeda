// Known values, chains, and that the instruction and the table agree.
#include "store/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>

namespace cairn::store::crc32c_test {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Crc32c, HasThePublishedValues) {
  // RFC 3720, B.4, and the check value of the catalogues.
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283u);
  const std::vector<std::byte> zeros(32, std::byte{0}), ones(32, std::byte{0xFF});
  EXPECT_EQ(crc32c(zeros), 0x8A9136AAu);
  EXPECT_EQ(crc32c(ones), 0x62A8AB43u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, TheInstructionAndTheTableAgree) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(3000);
  for (std::byte& byte : bytes) byte = std::byte(random());
  for (size_t begin = 0; begin < 20; ++begin) {
    for (size_t count = 0; count < 300; ++count) {
      const auto part = std::span(bytes).subspan(begin, count);
      ASSERT_EQ(crc32c(part), crc32c_by_table(part));
      ASSERT_EQ(crc32c(part.subspan(count / 3), crc32c(part.first(count / 3))), crc32c(part));
    }
  }
}

TEST(Crc32c, LongRunsAgreeToo) {
  std::mt19937 random(3);
  std::vector<std::byte> bytes(40000);
  for (std::byte& byte : bytes) byte = std::byte(random());
  for (int round = 0; round < 200; ++round) {
    const size_t begin = random() % 4000;
    const auto part = std::span(bytes).subspan(begin, random() % (bytes.size() - begin));
    const auto before = uint32_t(random());
    ASSERT_EQ(crc32c(part, before), crc32c_by_table(part, before)) << part.size();
  }
}

TEST(Crc32c, BlocksDoNotDependOnHowTheirBytesCome) {
  std::vector<std::byte> bytes(2 * kCrcBlockBytes + 1000);
  std::mt19937 random(2);
  for (std::byte& byte : bytes) byte = std::byte(random());
  BlockChecksums at_once;
  at_once.add(bytes);
  const std::vector<uint32_t> expected = at_once.finish();
  ASSERT_EQ(expected.size(), 3u);
  EXPECT_EQ(expected[1], crc32c(std::span(bytes).subspan(kCrcBlockBytes, kCrcBlockBytes)));
  BlockChecksums in_parts;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t count = std::min<size_t>(1 + random() % 40000, bytes.size() - begin);
    in_parts.add(std::span(bytes).subspan(begin, count));
    begin += count;
  }
  EXPECT_EQ(in_parts.finish(), expected);
  EXPECT_TRUE(BlockChecksums().finish().empty());
}

}  // namespace
}  // namespace cairn::store::crc32c_test
