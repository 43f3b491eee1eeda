// Sets of characters, and their UTF-8 as sequences of byte ranges. Knows no grammar. Surrogates are
// never part of a set: UTF-8 has none. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace cairn::grammar {

constexpr char32_t kCharacterMax = 0x10FFFF;

struct CharacterRange {
  char32_t first, last;
  bool operator==(const CharacterRange&) const = default;
};

class CharacterSet {
 public:
  CharacterSet() = default;
  CharacterSet(std::initializer_list<CharacterRange> ranges);
  static CharacterSet all();

  void add(char32_t first, char32_t last);
  void add(char32_t character) { add(character, character); }
  void add(const CharacterSet& other);
  void remove(const CharacterSet& other);
  CharacterSet inverse() const;
  bool contains(char32_t character) const;
  // Ascending, neither touching nor overlapping.
  std::vector<CharacterRange> ranges() const;

 private:
  std::vector<CharacterRange> ranges_;  // In any order.
};

struct ByteRange {
  uint8_t first, last;
};

// Calls `sink` with one to four byte ranges at a time: together exactly the UTF-8 of the range.
void for_utf8_sequences(CharacterRange range, FunctionRef<void(std::span<const ByteRange>)> sink);

// The character at the beginning of `text` and its length; nothing where this is no UTF-8.
struct DecodedCharacter {
  char32_t value;
  size_t bytes;
};
std::optional<DecodedCharacter> decode_character(std::string_view text);

// REQUIRES: a character, no surrogate.
void append_character(char32_t character, std::string& out);

}  // namespace cairn::grammar
