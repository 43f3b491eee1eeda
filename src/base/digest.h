// A fast digest of 64 bits that finds accidents: flipped bits, torn or foreign blocks. It reads as
// fast as memory does. Not a defence against somebody who wants two inputs to agree.
// The value is part of file formats: it never changes. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cairn {

// Runs of bytes can be chained: the digest of one is the seed of the next.
uint64_t digest(std::span<const std::byte> bytes, uint64_t seed = 0);

}  // namespace cairn
