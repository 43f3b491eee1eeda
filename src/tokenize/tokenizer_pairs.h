// The pairs of characters that are adjacent inside some token. Between two characters that are not
// such a pair no token can span, so a text may be cut there and its parts encoded separately, with
// the same result. A Bloom filter: a false positive only costs a cut. Thread-safe: constant once
// built.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenize/vocabulary_index.h"
#include "unicode/unicode.h"

namespace cairn::tokenize {

// A character's code, or, where none starts, a number of its own for the byte there.
inline unicode::Character character_or_byte(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const unicode::Character character = unicode::first_character(text);
  return character.length != 0 ? character : unicode::Character{char32_t(0x110000 + lead), 1};
}

class CharacterPairs {
 public:
  // Enters all pairs of a token.
  void add(std::string_view piece) {
    char32_t before = 0;
    for (size_t at = 0; at < piece.size();) {
      const unicode::Character character = character_or_byte(piece.substr(at));
      if (at > 0) {
        const uint32_t bit = bit_of(before, character.code);
        bits_[bit / 64] |= uint64_t{1} << (bit % 64);
      }
      before = character.code;
      at += character.length;
    }
  }

  bool may_join(char32_t left, char32_t right) const {
    const uint32_t bit = bit_of(left, right);
    return (bits_[bit / 64] >> (bit % 64)) & 1;
  }

 private:
  static constexpr int kBits = 21;  // 256 KiB; a vocabulary of 262,144 tokens sets some 5 %.

  static uint32_t bit_of(char32_t left, char32_t right) {
    const uint64_t pair = uint64_t(left) << 21 | right;
    return uint32_t((pair * 0x9E3779B97F4A7C15u) >> (64 - kBits));
  }

  std::vector<uint64_t> bits_ = std::vector<uint64_t>((size_t{1} << kBits) / 64);
};

}  // namespace cairn::tokenize
