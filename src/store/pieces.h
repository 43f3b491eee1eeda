// How a sequence is cut into records: whole pages of one group on a grid of positions, so that
// sequences with a common beginning have common records; the last, unfinished page alone; each
// state alone; the log whole, from the position at which it begins. Hidden rows are few bytes and
// lie in the manifest. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <vector>

#include "memory/outline.h"
#include "store/keys.h"
#include "store/record.h"

namespace cairn::store {

struct Piece {
  RecordType type = RecordType::extent;
  int32_t group = 0;
  memory::PageRun pages;       // Of extents and the log.
  int32_t begin = 0, end = 0;  // Positions; of a state: those of the link that ends there.
  bool is_partial = false;
  uint64_t payload_bytes = 0;

  bool operator==(const Piece&) const = default;
};

// REQUIRES: memory::check(outline, layout).
std::vector<Piece> pieces_of(const memory::Outline& outline, const memory::Layout& layout);

// The header but for the payload's digest. `chain` is that of the outline's tokens.
RecordHeader header_of(const Piece& piece, const Chain& chain, const memory::Layout& layout);
Sha256Digest name_of(const RecordHeader& header);

// Whether something of a piece is held by this outline, which was cut from its own.
bool has_part_in(const Piece& piece, const memory::Outline& outline);
// Forgets what a piece holds, since it cannot be had.
void drop(const Piece& piece, const memory::Layout& layout, memory::Outline& outline);

}  // namespace cairn::store
