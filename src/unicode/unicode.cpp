// UTF-8 by the table of the Unicode standard (3-7); classes and foldings from utf8proc.
#include "unicode/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstring>
#include <iterator>
#include <span>

#include "base/check.h"

namespace cairn::unicode {
namespace {

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

// The length that a lead byte announces; 0 for a byte that leads nothing.
uint32_t announced_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xC2) return 0;
  if (lead < 0xE0) return 2;
  if (lead < 0xF0) return 3;
  return lead < 0xF5 ? 4 : 0;
}

// The second byte decides about overlong forms, surrogates and values above U+10FFFF.
bool second_byte_fits(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0 && second < 0xC0;
    case 0xED:
      return second >= 0x80 && second < 0xA0;
    case 0xF0:
      return second >= 0x90 && second < 0xC0;
    case 0xF4:
      return second >= 0x80 && second < 0x90;
    default:
      return is_continuation(second);
  }
}

bool prints_in_latin1(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct ByteAlphabet {
  std::array<char32_t, 256> symbols{};
  std::array<int16_t, 324> bytes{};  // 256 + 68 symbols: none lies above U+0143.

  ByteAlphabet() {
    bytes.fill(-1);
    char32_t next = 256;
    for (int byte = 0; byte < 256; ++byte) {
      const char32_t symbol = prints_in_latin1(byte) ? char32_t(byte) : next++;
      symbols[size_t(byte)] = symbol;
      bytes[symbol] = int16_t(byte);
    }
    CHECK(next == bytes.size());
  }
};

const ByteAlphabet& byte_alphabet() {
  static const ByteAlphabet alphabet;
  return alphabet;
}

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(utf8proc_int32_t(code));
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const uint32_t length = announced_length(lead);
  if (length == 1) return {lead, 1};
  if (length == 0 || text.size() < length || !second_byte_fits(lead, byte(1))) return {0, 0};
  char32_t code = (lead & (0x7Fu >> length)) << 6 | (byte(1) & 0x3Fu);
  for (size_t i = 2; i < length; ++i) {
    if (!is_continuation(byte(i))) return {0, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, length};
}

size_t valid_utf8_bytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;  // Eight bytes of ASCII at a time.
    if (text.size() - at >= 8) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const Character character = first_character(text.substr(at));
    if (character.length == 0) return at;
    at += character.length;
  }
  return at;
}

size_t unfinished_utf8_bytes(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto lead = static_cast<unsigned char>(text[text.size() - back]);
    if (is_continuation(lead)) continue;
    if (announced_length(lead) <= back) return 0;
    if (back == 1) return 1;
    const auto second = static_cast<unsigned char>(text[text.size() - back + 1]);
    return second_byte_fits(lead, second) ? back : 0;
  }
  return 0;
}

void append_utf8(char32_t code, std::string& out) {
  DCHECK(code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF));
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(utf8proc_int32_t(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), size_t(length));
}

char32_t symbol_of_byte(uint8_t byte) {
  return byte_alphabet().symbols[byte];
}

int byte_of_symbol(char32_t symbol) {
  const ByteAlphabet& alphabet = byte_alphabet();
  return symbol < alphabet.bytes.size() ? alphabet.bytes[symbol] : -1;
}

bool is_space(char32_t code) {
  if (code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85) return true;
  const auto kind = category(code);
  return kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  switch (category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return true;
    default:
      return false;
  }
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    const bool is_alphanumeric = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                                 (code >= 'a' && code <= 'z');
    return code > ' ' && code < 0x7F && !is_alphanumeric;
  }
  const auto kind = category(code);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_ideograph(char32_t code) {
  // The gap below U+2B920 is a slip of the widely used implementation that vocabularies rely on.
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
         (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
         (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

void append_folded(char32_t code, Folding folding, std::u32string& out) {
  utf8proc_int32_t parts[8] = {utf8proc_int32_t(code)};
  utf8proc_ssize_t part_count = 1;
  const bool strips = folding.strip_accents && code >= 0x80;
  if (strips) {
    part_count =
        utf8proc_decompose_char(parts[0], parts, std::size(parts), UTF8PROC_DECOMPOSE, nullptr);
    // Canonical decompositions have at most four parts.
    CHECK(part_count >= 1 && part_count <= utf8proc_ssize_t(std::size(parts)));
  }
  for (const utf8proc_int32_t part : std::span(parts).first(size_t(part_count))) {
    if (strips && category(char32_t(part)) == UTF8PROC_CATEGORY_MN) continue;
    out += char32_t(folding.lowercase ? utf8proc_tolower(part) : part);
  }
}

}  // namespace cairn::unicode
