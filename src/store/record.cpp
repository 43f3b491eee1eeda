// The fields of a header, in the order in which they lie, and the two lists behind it.
#include "store/record.h"

#include <algorithm>

#include "store/bytes.h"
#include "store/crc32c.h"

namespace cairn::store {
namespace {

constexpr std::string_view kMagic = "CAIRNREC";
constexpr uint16_t kVersion = 1;
constexpr size_t kCheckedBytes = 220;  // The header's own checksum is behind them.
constexpr size_t kShortDigestBytes = 24;
constexpr uint64_t kPayloadBytesMax = uint64_t(1) << 40;

std::span<const std::byte> magic() {
  return std::as_bytes(std::span(kMagic));
}

Error damaged(std::string_view field) {
  return fail(ErrorCode::invalid_data, "record: {} is damaged", field);
}

Error foreign(std::string_view field, uint64_t expected, uint64_t found) {
  return fail(ErrorCode::unsupported, "record: expected {} {}, found {}", field, expected, found);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Status check_ranges(const RecordHeader& header) {
  if (header.begin < 0 || header.end <= header.begin) return damaged("the range of positions");
  if (header.token_count > kTokensMax || header.token_count > uint32_t(header.end)) {
    return damaged("the number of tokens");
  }
  if (header.payload_bytes > kPayloadBytesMax) return damaged("the payload's length");
  return Ok{};
}

}  // namespace

size_t RecordHeader::checksum_count() const {
  return size_t((payload_bytes + kCrcBlockBytes - 1) / kCrcBlockBytes);
}

uint64_t RecordHeader::payload_offset() const {
  const uint64_t lists = 4 * (uint64_t(token_count) + checksum_count() + 1);
  return (kHeaderBytes + lists + kPayloadAlignment - 1) / kPayloadAlignment * kPayloadAlignment;
}

std::vector<std::byte> encode(const RecordHeader& header) {
  ByteWriter out;
  out.raw(magic());
  out.u16(kVersion);
  out.u16(uint16_t(header.type));
  out.u32(header.payload_offset());
  out.u64(header.payload_bytes);  // As stored …
  out.u64(header.payload_bytes);  // … and raw: there is no codec yet.
  out.digest(header.fingerprint);
  out.digest(header.key_at_begin);
  out.digest(header.key_at_end);
  out.u32(uint32_t(header.begin));
  out.u32(uint32_t(header.end));
  out.u16(header.group);
  out.u8(header.kind);
  out.u8(0);  // The codec.
  out.u32(header.layout);
  out.u32(uint32_t(header.first_layer));
  out.u32(uint32_t(header.last_layer));
  out.u32(header.token_count);
  out.u32(kCrcBlockBytes);
  out.digest(header.payload_digest);
  out.raw(std::as_bytes(std::span(header.payload_digest)).first(kShortDigestBytes));
  out.u32(header.flags);
  out.u32(crc32c(out.bytes()));
  out.zeros_to(kHeaderBytes);  // No MAC.
  return std::move(out).take();
}

Result<RecordHeader> decode_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes) return damaged("the length");
  bytes = bytes.first(kHeaderBytes);
  ByteReader in(bytes);
  if (!std::ranges::equal(in.raw(kMagic.size()), magic())) return damaged("the magic");
  ByteReader last(bytes.subspan(kCheckedBytes));
  if (last.u32() != crc32c(bytes.first(kCheckedBytes))) return damaged("the header");
  if (!is_zero(last.raw(last.left()))) return damaged("the MAC, which nobody writes yet,");
  if (const uint16_t version = in.u16(); version != kVersion) {
    return foreign("version", kVersion, version);
  }
  RecordHeader header;
  const uint16_t type = in.u16();
  if (type < 1 || type > uint16_t(RecordType::manifest)) return foreign("a type up to", 4, type);
  header.type = RecordType(type);
  const uint32_t payload_offset = in.u32();
  header.payload_bytes = in.u64();
  const uint64_t raw_bytes = in.u64();
  header.fingerprint = in.digest();
  header.key_at_begin = in.digest();
  header.key_at_end = in.digest();
  header.begin = int32_t(in.u32());
  header.end = int32_t(in.u32());
  header.group = in.u16();
  header.kind = in.u8();
  const uint8_t codec = in.u8();
  header.layout = in.u32();
  header.first_layer = int32_t(in.u32());
  header.last_layer = int32_t(in.u32());
  header.token_count = in.u32();
  const uint32_t block_bytes = in.u32();
  header.payload_digest = in.digest();
  const auto short_digest = in.raw(kShortDigestBytes);
  header.flags = in.u32();
  if (codec != 0) return foreign("codec", 0, codec);
  if (block_bytes != kCrcBlockBytes) return foreign("blocks of", kCrcBlockBytes, block_bytes);
  constexpr uint32_t kKnownFlags = kIsPartial | kIsTenants;
  if ((header.flags & ~kKnownFlags) != 0) return foreign("flags up to", kKnownFlags, header.flags);
  if (raw_bytes != header.payload_bytes) return damaged("the payload's raw length");
  const auto digest = std::as_bytes(std::span(header.payload_digest)).first(kShortDigestBytes);
  if (!std::ranges::equal(short_digest, digest)) return damaged("the payload's raw digest");
  CAIRN_TRY(check_ranges(header));
  if (payload_offset != header.payload_offset()) return damaged("the payload's place");
  return header;
}

std::vector<std::byte> encode_front(const RecordHeader& header, std::span<const Token> tokens,
                                    std::span<const uint32_t> checksums) {
  CHECK(tokens.size() == header.token_count && checksums.size() == header.checksum_count());
  ByteWriter out;
  out.raw(encode(header));
  for (const Token token : tokens) out.u32(uint32_t(index_of(token)));
  for (const uint32_t checksum : checksums) out.u32(checksum);
  out.u32(crc32c(out.bytes().subspan(kHeaderBytes)));
  out.zeros_to(size_t(header.payload_offset()));
  return std::move(out).take();
}

Result<RecordFront> decode_front(std::span<const std::byte> bytes) {
  CAIRN_TRY(const RecordHeader header, decode_header(bytes));
  if (bytes.size() != header.payload_offset()) return damaged("the length");
  RecordFront front{.header = header, .tokens = {}, .checksums = {}};
  const size_t lists_bytes = 4 * (size_t(header.token_count) + header.checksum_count());
  ByteReader in(bytes.subspan(kHeaderBytes));
  ByteReader behind(bytes.subspan(kHeaderBytes + lists_bytes));
  if (behind.u32() != crc32c(bytes.subspan(kHeaderBytes, lists_bytes))) return damaged("a list");
  if (!is_zero(behind.raw(behind.left()))) return damaged("the padding");
  front.tokens.reserve(header.token_count);
  for (uint32_t i = 0; i < header.token_count; ++i)
    front.tokens.push_back(Token(int32_t(in.u32())));
  front.checksums.reserve(header.checksum_count());
  for (size_t i = 0; i < header.checksum_count(); ++i) front.checksums.push_back(in.u32());
  return front;
}

}  // namespace cairn::store
