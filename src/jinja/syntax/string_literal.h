// The literals of template source: Python's escapes in strings, and its numbers.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::jinja {

// The characters of a string literal, whose quotes are off already. Unknown escapes stay as they
// are. Error: an escape that is cut short or names no character.
Result<std::string> unescaped(std::string_view literal);

struct NumberLiteral {
  bool is_real = false;  // The whole is a real; its integer part can still be read alone.
  double real = 0;
  size_t size = 0;
  int64_t integer = 0;
  size_t integer_size = 0;
  bool fits = true;  // The integer has at most 63 bits.
};

// The number at the start. REQUIRES: the text starts with a digit.
NumberLiteral number_literal(std::string_view text);

}  // namespace cairn::jinja
