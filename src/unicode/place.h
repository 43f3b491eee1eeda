// A text that is read from its beginning to its end, and errors that say where in it: line, column
// and reason. Knows no syntax. One thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cairn::unicode {

// Counted from 1; columns in bytes.
struct Place {
  size_t line = 1, column = 1;
};

Place place_of(std::string_view text, size_t offset);

// An error that begins with "name: line 3, column 14: ". What is quoted from the text must be
// printable and short already: quote() makes it so.
template <class... Args>
[[nodiscard]] Error fail_at(ErrorCode code, std::string_view name, std::string_view text,
                            size_t offset, fmt::format_string<Args...> format, Args&&... args) {
  const Place place = place_of(text, offset);
  return fail(code, "{}: line {}, column {}: {}", name, place.line, place.column,
              fmt::format(format, std::forward<Args>(args)...));
}

// At most 40 bytes of untrusted text between quotes, control characters made visible.
std::string quote(std::string_view text);

// The text from `offset` on, as an error shows it: a character or two, or "the end".
std::string found_at(std::string_view text, size_t offset);

}  // namespace cairn::unicode
