// The rules for keys, tensor names and shapes that reader and writer share (L2 and L3 of
// docs/formats.md; the numbers are in gguf/limits.h). Thread-safe: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "gguf/limits.h"

namespace cairn::gguf {

// Text of a file as it stands in a message: one line, control characters visible, the end of what
// is longer than `bytes_max` cut off.
std::string shown(std::string_view text, size_t bytes_max = kShownBytesMax);

// `what` names the entry in errors, since the key itself may not be fit for that.
Status check_key(std::string_view what, std::string_view key);
Status check_tensor_name(std::string_view what, std::string_view name);
// A power of two in the range of the limits.
Status check_alignment(uint64_t alignment);

struct Extent {
  int64_t weight_count;
  uint64_t bytes;
};

// 1 to 4 dimensions whose product is in range, whole blocks in a row, a type of known size.
// Errors name the tensor; unsupported if it is the type.
Result<Extent> check_shape(std::string_view name, std::span<const uint64_t> dims, uint32_t type_id);

}  // namespace cairn::gguf
