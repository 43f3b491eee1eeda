// Categories come from utf8proc (Unicode 14, like the Python that templates are written for); what
// it lacks stands in special_casing.h (full case mappings) and derived_classes.h.
#include "jinja/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>

#include "unicode/derived_classes.h"
#include "unicode/special_casing.h"
#include "unicode/unicode.h"

namespace cairn::jinja {
namespace {

bool is_continuation(char byte) {
  return (uint8_t(byte) & 0xc0u) == 0x80u;
}

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(utf8proc_int32_t(code));
}

bool is_in(std::span<const CodeRange> table, char32_t code) {
  const auto at = std::lower_bound(table.begin(), table.end(), code,
                                   [](const CodeRange& r, char32_t c) { return r.last < c; });
  return at != table.end() && at->first <= code;
}

bool append_expansion(std::span<const Expansion> table, char32_t code, std::string& out) {
  const auto at = std::lower_bound(table.begin(), table.end(), code,
                                   [](const Expansion& e, char32_t c) { return e.code < c; });
  if (at == table.end() || at->code != code) return false;
  for (const char32_t part : at->to) {
    if (part != 0) unicode::append_utf8(part, out);
  }
  return true;
}

}  // namespace

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char byte : text) count += !is_continuation(byte);
  return count;
}

size_t offset_of_character(std::string_view text, size_t character) {
  size_t offset = 0;
  while (character > 0 && offset < text.size()) {
    offset = next_character(text, offset);
    --character;
  }
  return offset;
}

size_t next_character(std::string_view text, size_t offset) {
  ++offset;
  while (offset < text.size() && is_continuation(text[offset])) ++offset;
  return std::min(offset, text.size());
}

size_t previous_character(std::string_view text, size_t offset) {
  --offset;
  while (offset > 0 && is_continuation(text[offset])) --offset;
  return offset;
}

char32_t character_at(std::string_view text, size_t offset) {
  const uint8_t first = uint8_t(text[offset]);
  if (first < 0x80) return first;
  return unicode::first_character(text.substr(offset)).code;
}

bool is_python_space(char32_t code) {
  if (code < 0x80)
    return code == ' ' || (code >= 9 && code <= 13) || (code >= 0x1c && code <= 0x1f);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_line_break(char32_t code) {
  return (code >= 10 && code <= 13) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

bool is_alphabetic(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_ND;
}

bool is_numeric(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) ||
         is_in(kOtherNumerals, code);
}

bool is_digit(char32_t code) {
  return is_decimal(code) || is_in(kOtherDigits, code);
}

bool is_upper(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU || is_in(kOtherUppercase, code);
}
bool is_lower(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL || is_in(kOtherLowercase, code);
}
bool is_title(char32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LT;
}

bool is_case_ignorable(char32_t code) {
  switch (category(code)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return is_in(kInsideWords, code);
  }
}

bool is_printable(char32_t code) {
  if (code == ' ') return true;
  const utf8proc_category_t kind = category(code);
  return kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS;
}

bool is_identifier_start(char32_t code) {
  return code == '_' || is_alphabetic(code) || category(code) == UTF8PROC_CATEGORY_NL;
}

bool is_identifier_part(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return is_identifier_start(code) || kind == UTF8PROC_CATEGORY_ND ||
         kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_PC;
}

void append_upper(char32_t code, std::string& out) {
  if (append_expansion(kUpperExpansions, code, out)) return;
  unicode::append_utf8(char32_t(utf8proc_toupper(utf8proc_int32_t(code))), out);
}

void append_lower(char32_t code, std::string& out) {
  if (code == 0x130) {
    out += "i\u0307";  // The only lower case of two characters.
    return;
  }
  unicode::append_utf8(char32_t(utf8proc_tolower(utf8proc_int32_t(code))), out);
}

void append_title(char32_t code, std::string& out) {
  if (append_expansion(kTitleExpansions, code, out)) return;
  unicode::append_utf8(char32_t(utf8proc_totitle(utf8proc_int32_t(code))), out);
}

}  // namespace cairn::jinja
