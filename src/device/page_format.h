// What a backend decides of the blocks that memory keeps for it: how many bytes the keys and values
// of a page take, and where parts of a block may begin. How they lie inside is the backend's
// affair. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

inline constexpr int32_t kPageTokens = 32;  // Consecutive tokens of a page, in every group.

// What keys and values are rounded to when they are stored.
enum class KvType : uint8_t { f32, f16, bf16, q8_0, q4_0 };

struct PageFormat {
  // Of the keys, or the values, of one head in a page: kPageTokens times `dim` numbers.
  size_t (*head_bytes)(KvType type, int32_t dim) = nullptr;
  size_t alignment = 1;   // Of the planes and tensors in a block.
  size_t unit_bytes = 1;  // The system takes memory back in such units: large blocks fill them.
};

}  // namespace cairn
