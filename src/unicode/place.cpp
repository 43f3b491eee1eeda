// Counting lines; quoting what a stranger wrote.
#include "unicode/place.h"

#include <algorithm>

#include "base/printable.h"
#include "unicode/unicode.h"

namespace cairn::unicode {

Place place_of(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const size_t line_end = before.rfind('\n');
  return {.line = size_t(std::count(before.begin(), before.end(), '\n')) + 1,
          .column = before.size() - (line_end == std::string_view::npos ? 0 : line_end + 1) + 1};
}

std::string quote(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string shown = printable(text.substr(0, kShown));
  // A quotation is one line.
  for (size_t at = 0; (at = shown.find('\n', at)) != std::string::npos;)
    shown.replace(at, 1, "\\n");
  return fmt::format("\"{}{}\"", shown, text.size() > kShown ? "…" : "");
}

std::string found_at(std::string_view text, size_t offset) {
  if (offset >= text.size()) return "the end";
  const Character character = first_character(text.substr(offset));
  return quote(text.substr(offset, character.length == 0 ? 1 : character.length));
}

}  // namespace cairn::unicode
