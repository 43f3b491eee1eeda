// What a stored sequence consists of: its outline, the records that hold its blocks, and its hidden
// rows. Written last, so that whoever sees it sees them. The tokens lie in the record's own list.
// Everything read is untrusted: decoding checks the form, memory::check() that a sequence could be
// so. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "memory/outline.h"
#include "store/keys.h"
#include "store/record.h"

namespace cairn::store {

struct PieceRef {
  Sha256Digest name{};
  Sha256Digest digest{};  // Of the payload.
  uint64_t file_bytes = 0;

  bool operator==(const PieceRef&) const = default;
};

struct Manifest {
  memory::Outline outline;
  std::string model;                   // Its name, for people.
  uint64_t tenant = 0;                 // Whose it is; 0: everybody's.
  std::vector<PieceRef> pieces;        // As pieces_of() orders them.
  uint32_t hidden_row_bytes = 0;       // f32, little endian.
  std::vector<std::byte> hidden_rows;  // One for each of outline.hidden_positions().

  bool operator==(const Manifest&) const = default;
};

inline constexpr uint64_t kManifestBytesMax = uint64_t(256) << 20;

// The payload.
std::vector<std::byte> encode(const Manifest& manifest);
// Errors: invalid_data.
Result<Manifest> decode_manifest(std::span<const std::byte> payload, std::vector<Token> tokens);

// The header of its record, payload digest included.
RecordHeader manifest_header(const Chain& chain, const Manifest& manifest, uint32_t layout,
                             std::span<const std::byte> payload);

}  // namespace cairn::store
