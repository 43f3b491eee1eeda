// The compression function of SHA-256, on one block: by its definition, and by the instructions
// that some processors have for it, with the same result. Thread-safe: pure.
#pragma once

#include <array>
#include <cstdint>

namespace cairn {

using Sha256State = std::array<uint32_t, 8>;

// `block`: 64 bytes.
void take_sha256_block(Sha256State& state, const uint8_t* block);
void take_sha256_block_by_definition(Sha256State& state, const uint8_t* block);

}  // namespace cairn
