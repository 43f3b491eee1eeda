// A record as its file has it, from a snapshot: what is written to a folder and sent to a tier are
// the same bytes. Thread rule: that of the snapshot, which outlives it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "store/manifest.h"
#include "store/snapshot.h"

namespace cairn::store {

struct EncodedRecord {
  RecordHeader header;
  PieceRef ref;
  // One after another they are the file.
  std::vector<std::byte> front;
  std::vector<std::span<const std::byte>> payload;  // Parts of blocks, or of `own_payload`.
  std::vector<std::byte> own_payload;

  // Valid while it is not moved.
  std::vector<std::span<const std::byte>> parts() const;
};

// `chain`: that of the snapshot's tokens.
EncodedRecord encode_piece(const Snapshot& snapshot, const Piece& piece, const Chain& chain);
// Errors: no_room: larger than a manifest may be.
Result<EncodedRecord> encode_manifest(const Manifest& manifest, const Chain& chain,
                                      uint32_t layout);

// What a manifest's record says, all of it checked but whether a sequence of some layout could be
// so. Errors: invalid_data: it is damaged, or another's; unsupported.
struct ManifestRecord {
  RecordHeader header;
  Manifest manifest;
};
Result<ManifestRecord> decode_manifest_record(const Sha256Digest& name,
                                              std::span<const std::byte> file);

}  // namespace cairn::store
