// Headers and lists: what is written reads back, and no changed bit passes.
#include "store/record.h"

#include <gtest/gtest.h>

#include <random>

#include "store/crc32c.h"

namespace cairn::store::record_test {
namespace {

RecordHeader some_header() {
  return {.type = RecordType::state,
          .payload_bytes = 3 * kCrcBlockBytes + 5,
          .fingerprint = Sha256().add("f").finish(),
          .key_at_begin = Sha256().add("b").finish(),
          .key_at_end = Sha256().add("e").finish(),
          .begin = 64,
          .end = 90,
          .group = 2,
          .kind = 3,
          .layout = 77,
          .first_layer = 0,
          .last_layer = 11,
          .token_count = 26,
          .payload_digest = Sha256().add("p").finish(),
          .flags = kIsPartial};
}

struct Lists {
  std::vector<Token> tokens;
  std::vector<uint32_t> checksums = {1, 2, 3, 0xFFFFFFFF};
};

Lists some_lists() {
  Lists lists;
  for (int32_t id = 0; id < 26; ++id) lists.tokens.push_back(Token(id * 1000));
  return lists;
}

TEST(Record, AHeaderReadsBackAndHasItsPlaces) {
  const std::vector<std::byte> bytes = encode(some_header());
  ASSERT_EQ(bytes.size(), kHeaderBytes);
  EXPECT_EQ(Result<RecordHeader>(decode_header(bytes)).value(), some_header());
  // The places that docs/store.md gives.
  EXPECT_EQ(std::memcmp(bytes.data(), "CAIRNREC\x01\x00\x02\x00", 12), 0);
  EXPECT_EQ(bytes[128], std::byte{64});
  EXPECT_EQ(bytes[132], std::byte{90});
  EXPECT_EQ(bytes[140], std::byte{77});
  EXPECT_EQ(bytes[160], std::byte(some_header().payload_digest[0]));
  EXPECT_EQ(bytes[192], std::byte(some_header().payload_digest[0]));
  EXPECT_EQ(bytes[216], std::byte{1});
}

// Attack 34.
TEST(Record, NoChangedBitOfAHeaderPasses) {
  const std::vector<std::byte> bytes = encode(some_header());
  for (size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    std::vector<std::byte> changed = bytes;
    changed[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_FALSE(bool(decode_header(changed))) << "bit " << bit;
  }
  for (size_t count = 0; count < kHeaderBytes; ++count) {
    ASSERT_FALSE(bool(decode_header(std::span(bytes).first(count))));
  }
}

TEST(Record, NoChangedBitBeforeThePayloadPasses) {
  const Lists lists = some_lists();
  const std::vector<std::byte> bytes = encode_front(some_header(), lists.tokens, lists.checksums);
  ASSERT_EQ(bytes.size(), some_header().payload_offset());
  EXPECT_EQ(bytes.size() % kPayloadAlignment, 0u);
  const RecordFront front = decode_front(bytes).value();
  EXPECT_EQ(front.header, some_header());
  EXPECT_EQ(front.tokens, lists.tokens);
  EXPECT_EQ(front.checksums, lists.checksums);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::vector<std::byte> changed = bytes;
    changed[bit / 8] ^= std::byte(1 << bit % 8);
    ASSERT_FALSE(bool(decode_front(changed))) << "bit " << bit;
  }
}

// Attack 45: a header whose checksum is right may still say anything.
TEST(Record, FieldsAreCheckedBeforeAnythingIsMade) {
  const auto refused = [](auto change) {
    RecordHeader header = some_header();
    change(header);
    const Result<RecordHeader> decoded = decode_header(encode(header));
    return decoded ? ErrorCode::cancelled : decoded.error().code;
  };
  EXPECT_EQ(refused([](RecordHeader& header) { header.payload_bytes = UINT64_MAX / 2; }),
            ErrorCode::invalid_data);
  EXPECT_EQ(refused([](RecordHeader& header) { header.token_count = UINT32_MAX; }),
            ErrorCode::invalid_data);
  EXPECT_EQ(refused([](RecordHeader& header) { header.begin = -1; }), ErrorCode::invalid_data);
  EXPECT_EQ(refused([](RecordHeader& header) { header.end = 64; }), ErrorCode::invalid_data);
  EXPECT_EQ(refused([](RecordHeader& header) { header.type = RecordType(9); }),
            ErrorCode::unsupported);
  EXPECT_EQ(refused([](RecordHeader& header) { header.flags = 4; }), ErrorCode::unsupported);
  EXPECT_EQ(refused([](RecordHeader&) {}), ErrorCode::cancelled);
}

// A version, codec or block size of the future, with a right checksum.
TEST(Record, OtherVersionsAreUnsupportedAndNotDamaged) {
  for (const size_t place : {size_t(8), size_t(139), size_t(156)}) {
    std::vector<std::byte> bytes = encode(some_header());
    bytes[place] ^= std::byte{2};
    const uint32_t checksum = crc32c(std::span(bytes).first(220));
    for (size_t i = 0; i < 4; ++i) bytes[220 + i] = std::byte(checksum >> (8 * i));
    EXPECT_EQ(decode_header(bytes).error().code, ErrorCode::unsupported) << place;
  }
}

}  // namespace
}  // namespace cairn::store::record_test
