// A fast 64-bit checksum that detects accidental damage: flipped bits, torn or foreign blocks. As
// fast as memory is read. Not cryptographic: collisions can be constructed. The value is part of
// file formats: it never changes. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn {

// Runs of bytes can be chained: the digest of one is the seed of the next.
uint64_t digest(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace cairn
