// A small UTF-8 reader that keeps what is well-formed and harmless, and spells out the rest.
#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace cairn {
namespace {

struct Character {
  uint32_t code;
  size_t bytes;  // 0: not well-formed UTF-8 at this place.
};

// Overlong forms, surrogates and codes past U+10FFFF are not well-formed (Unicode, table 3-7).
Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint32_t(uint8_t(text[i])) : 0u; };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4) return {lead, 0};
  uint32_t code = lead & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0u) != 0x80u) return {lead, 0};
    code = (code << 6) | (byte(i) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  if (overlong || surrogate || code > 0x10ffff) return {lead, 0};
  return {code, bytes};
}

bool is_control(uint32_t code) {
  return (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code <= 0x9f);
}

// Marks, embeddings, overrides and isolates of the bidirectional algorithm (UAX 9), and U+2028/9.
bool turns_text(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.bytes == 0 || is_control(character.code)) {
      out += fmt::format("\\x{:02x}", character.code);
    } else if (turns_text(character.code)) {
      out += fmt::format("\\u{{{:04x}}}", character.code);
    } else {
      out.append(text.substr(0, character.bytes));
    }
    text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
  }
  return out;
}

}  // namespace cairn
