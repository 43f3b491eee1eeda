// SentencePiece's normalizer as models carry it (precompiled_charsmap): a double array over the
// bytes of what is replaced, and the replacements as strings that end with a NUL. Trusts nothing:
// walks every path once before it is used. Knows nothing of spaces and tokens.
// Thread-safe: constant once built.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::tokenize {

class Charsmap {
 public:
  // Nothing is replaced where the bytes are none. Errors: invalid_data (sizes that disagree, a
  // path in a circle or longer than any honest one, a replacement outside).
  static Result<Charsmap> build(std::string_view bytes);

  struct Match {
    size_t length = 0;  // How much of the text is replaced; 0: nothing.
    std::string_view replacement;
  };
  // The longest entry with which the text begins. The view lives as long as the map.
  Match longest(std::string_view text) const;

 private:
  // A unit: its label in bits 0 to 7 (bit 31 marks a value), whether a value hangs below in bit 8,
  // and the distance to its children in bits 10 to 30, times 256 where bit 9 is set.
  uint32_t children_of(uint32_t node) const {
    const uint32_t unit = units_[node];
    return node ^ (unit >> 10 << ((unit & 1u << 9) >> 6));
  }
  // Whether the unit exists and is reached by this byte. A unit outside of the array is none.
  bool is_child(uint32_t node, uint8_t byte) const {
    return node < units_.size() && (units_[node] & (1u << 31 | 0xff)) == byte;
  }
  bool has_value(uint32_t node) const { return (units_[node] >> 8 & 1) != 0; }

  Status check_paths() const;
  Status check_value(uint32_t node) const;

  std::vector<uint32_t> units_;
  std::string replacements_;
};

}  // namespace cairn::tokenize
