// A template's source as tokens, with Jinja's white space rules: trim_blocks, lstrip_blocks, the
// signs - and +, comments and raw blocks. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/syntax/syntax.h"

namespace cairn::jinja {

constexpr size_t kSourceBytesMax = 1u << 20;

enum class TokenKind : uint8_t {
  text,
  print_begin,
  print_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  sign,
  end,
};

struct LexerToken {
  TokenKind kind;
  Place place;
  std::string text;  // Of text and strings: the characters themselves; of signs: the sign.
  int64_t integer = 0;
  double real = 0;
};

// Always ends with a token of kind `end`.
Result<std::vector<LexerToken>> tokenize(std::string_view source);

// For messages: `'endif'`, `the end of the template`, …
std::string describe(const LexerToken& token);

// A syntax error at a place.
template <class... Args>
Error syntax_error(Place place, fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::invalid_data, "template line {}, column {}: {}", place.line, place.column,
              fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cairn::jinja
