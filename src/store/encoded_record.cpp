// Digests, checksums, and what lies before a payload.
#include "store/encoded_record.h"

#include <utility>

#include "store/crc32c.h"

namespace cairn::store {

std::vector<std::span<const std::byte>> EncodedRecord::parts() const {
  std::vector<std::span<const std::byte>> parts = {front};
  parts.insert(parts.end(), payload.begin(), payload.end());
  if (!own_payload.empty()) parts.emplace_back(own_payload);
  return parts;
}

EncodedRecord encode_piece(const Snapshot& snapshot, const Piece& piece, const Chain& chain) {
  EncodedRecord record{.header = header_of(piece, chain, snapshot.layout()),
                       .ref = {},
                       .front = {},
                       .payload = snapshot.parts_of(piece),
                       .own_payload = {}};
  BlockChecksums checksums;
  Sha256 sha;
  for (const std::span<const std::byte>& part : record.payload) {
    checksums.add(part);
    sha.add(part);
  }
  record.header.payload_digest = sha.finish();
  record.front = encode_front(record.header,
                              std::span(snapshot.outline().tokens)
                                  .subspan(size_t(piece.begin), size_t(piece.end - piece.begin)),
                              checksums.finish());
  record.ref = {.name = name_of(record.header),
                .digest = record.header.payload_digest,
                .file_bytes = record.header.file_bytes()};
  return record;
}

Result<EncodedRecord> encode_manifest(const Manifest& manifest, const Chain& chain,
                                      uint32_t layout) {
  EncodedRecord record;
  record.own_payload = encode(manifest);
  if (record.own_payload.size() > kManifestBytesMax) {
    return fail(ErrorCode::no_room, "manifest: expected at most {} bytes, found {}",
                kManifestBytesMax, record.own_payload.size());
  }
  record.header = manifest_header(chain, manifest, layout, record.own_payload);
  BlockChecksums checksums;
  checksums.add(record.own_payload);
  record.front = encode_front(record.header, manifest.outline.tokens, checksums.finish());
  record.ref = {.name = name_of(record.header),
                .digest = record.header.payload_digest,
                .file_bytes = record.header.file_bytes()};
  return record;
}

Result<ManifestRecord> decode_manifest_record(const Sha256Digest& name,
                                              std::span<const std::byte> file) {
  CAIRN_TRY(const RecordHeader header, decode_header(file));
  const bool is_expected = header.type == RecordType::manifest &&
                           header.payload_bytes <= kManifestBytesMax && header.begin == 0 &&
                           header.token_count == uint32_t(header.end) &&
                           header.file_bytes() == file.size() && name_of(header) == name;
  if (!is_expected) return fail(ErrorCode::invalid_data, "manifest: not that of its name");
  const size_t offset = size_t(header.payload_offset());
  CAIRN_TRY(RecordFront front, decode_front(file.first(offset)));
  const std::span<const std::byte> payload = file.subspan(offset);
  BlockChecksums checksums;
  checksums.add(payload);
  if (checksums.finish() != front.checksums) {
    return fail(ErrorCode::invalid_data, "manifest: a checksum of its payload is another");
  }
  CAIRN_TRY(Manifest manifest, decode_manifest(payload, std::move(front.tokens)));
  return ManifestRecord{.header = header, .manifest = std::move(manifest)};
}

}  // namespace cairn::store
