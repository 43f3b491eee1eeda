// A record: what a store keeps of a range of positions in one file, which describes and checks
// itself and never changes. A header of 256 bytes, token ids, a CRC-32C for each 64 KiB of payload,
// one of both lists, zeros, then the payload. docs/store.md draws it. This file reads and writes
// all but the payload; every byte is untrusted until it is checked. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/sha256.h"

namespace cairn::store {

enum class RecordType : uint16_t { extent = 1, state = 2, log = 3, manifest = 4 };

inline constexpr size_t kHeaderBytes = 256;
inline constexpr size_t kPayloadAlignment = 4096;
inline constexpr uint32_t kTokensMax = uint32_t(1) << 26;
// Of the flags: rows beside those of the positions hold whatever was there, so that two records of
// one name may differ in them.
inline constexpr uint32_t kIsPartial = 1;
// Of a manifest: a tenant has it, whose number is the last of the payload.
inline constexpr uint32_t kIsTenants = 2;

struct RecordHeader {
  RecordType type = RecordType::extent;
  uint64_t payload_bytes = 0;
  Sha256Digest fingerprint{};
  Sha256Digest key_at_begin{}, key_at_end{};
  int32_t begin = 0, end = 0;  // Positions.
  uint16_t group = 0;
  uint8_t kind = 0;  // memory::GroupKind; 0 of manifests.
  uint32_t layout = 0;
  int32_t first_layer = 0, last_layer = 0;
  uint32_t token_count = 0;  // Those before `end`.
  Sha256Digest payload_digest{};
  uint32_t flags = 0;

  size_t checksum_count() const;
  uint64_t payload_offset() const;
  uint64_t file_bytes() const { return payload_offset() + payload_bytes; }

  bool operator==(const RecordHeader&) const = default;
};

std::vector<std::byte> encode(const RecordHeader& header);
// Errors: unsupported (another version, codec or flag), invalid_data (damage).
Result<RecordHeader> decode_header(std::span<const std::byte> bytes);

// All that lies before the payload. REQUIRES: as many tokens and checksums as the header says.
std::vector<std::byte> encode_front(const RecordHeader& header, std::span<const Token> tokens,
                                    std::span<const uint32_t> checksums);

struct RecordFront {
  RecordHeader header;
  std::vector<Token> tokens;
  std::vector<uint32_t> checksums;  // One for each 64 KiB of payload.
};
// `bytes`: the first payload_offset() of a file. Errors: as decode_header().
Result<RecordFront> decode_front(std::span<const std::byte> bytes);

}  // namespace cairn::store
