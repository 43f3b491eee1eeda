// Pooling: how the embedding of a text is computed from those of its tokens. The kinds, their names
// and the file's metadata. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "gguf/gguf.h"

namespace cairn {

// The values are those of the file's `pooling_type`.
enum class Pooling : uint8_t {
  none,  // A vector for each token.
  mean,  // Of all tokens' vectors.
  cls,   // The first token's.
  last,  // The last token's.
  rank,  // The classifier's scores of the first token's vector.
};

std::string_view name(Pooling pooling);  // "none", "mean" …

// Errors: invalid_argument, with the names there are.
Result<Pooling> parse_pooling(std::string_view option, std::string_view text);

// What the file says (pooling_type); absent where it says nothing. Errors: an unknown number.
Result<std::optional<Pooling>> pooling_of(const gguf::File& file);

}  // namespace cairn
