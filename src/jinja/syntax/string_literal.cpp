// Escapes as Python's unicode-escape codec reads them.
#include "jinja/syntax/string_literal.h"

#include <charconv>
#include <cmath>

#include "unicode/unicode.h"

namespace cairn::jinja {
namespace {

bool is_digit_of(char c, int base) {
  if (base == 16) return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
  return c >= '0' && c < '0' + base;
}

// Digits with single underscores between them; `out` gets the digits alone.
size_t read_digits(std::string_view text, size_t at, int base, bool may_start_with_underscore,
                   std::string& out) {
  size_t end = at;
  while (end < text.size()) {
    size_t digit = end;
    if (text[digit] == '_' && (end > at || may_start_with_underscore)) ++digit;
    if (digit >= text.size() || !is_digit_of(text[digit], base)) break;
    out += text[digit];
    end = digit + 1;
  }
  return end;
}

// Reads exactly `digits` hex digits after the escape's letter.
Result<char32_t> hex_escape(std::string_view literal, size_t at, size_t digits) {
  uint32_t code = 0;
  const std::string_view text = literal.substr(at, digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
  if (text.size() != digits || error != std::errc() || end != text.data() + digits) {
    return fail(ErrorCode::invalid_data, "an escape: expected {} hex digits, found '{}'", digits,
                text);
  }
  if (code > 0x10ffff) {
    return fail(ErrorCode::invalid_data, "an escape: expected at most 10ffff, found {:x}", code);
  }
  return char32_t(code);
}

size_t hex_digits_of(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
}

char simple_escape(char letter) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"";
  constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const size_t at = kLetters.find(letter);
  return at == std::string_view::npos ? '\0' : kMeanings[at];
}

// A code point by number; two halves of a surrogate pair become one character.
Result<size_t> append_code_escape(std::string_view literal, size_t at, std::string& out) {
  const size_t digits = hex_digits_of(literal[at]);
  CAIRN_TRY(char32_t code, hex_escape(literal, at + 1, digits));
  at += 1 + digits;
  if (code < 0xd800 || code > 0xdfff) {
    unicode::append_utf8(code, out);
    return at;
  }
  if (code < 0xdc00 && literal.substr(at, 2) == "\\u") {
    CAIRN_TRY(const char32_t low, hex_escape(literal, at + 2, 4));
    if (low >= 0xdc00 && low <= 0xdfff) {
      unicode::append_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00), out);
      return at + 6;
    }
  }
  return fail(ErrorCode::invalid_data, "an escape: expected a character, found half of one, {:x}",
              uint32_t(code));
}

}  // namespace

Result<std::string> unescaped(std::string_view literal) {
  std::string out;
  out.reserve(literal.size());
  for (size_t at = 0; at < literal.size();) {
    if (literal[at] != '\\' || at + 1 >= literal.size()) {
      out += literal[at++];
      continue;
    }
    const char letter = literal[++at];
    if (letter == '\n') {
      ++at;
    } else if (const char simple = simple_escape(letter)) {
      out += simple;
      ++at;
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      CAIRN_TRY(at, append_code_escape(literal, at, out));
    } else if (letter == 'N') {
      return fail(ErrorCode::invalid_data, "an escape: expected a number, found a name, \\N");
    } else if (is_digit_of(letter, 8)) {
      char32_t code = 0;
      for (int i = 0; i < 3 && at < literal.size() && is_digit_of(literal[at], 8); ++i) {
        code = code * 8 + char32_t(literal[at++] - '0');
      }
      unicode::append_utf8(code, out);
    } else {
      out += '\\';
    }
  }
  return out;
}

NumberLiteral number_literal(std::string_view text) {
  NumberLiteral number;
  std::string digits;
  int base = 10;
  if (text.size() > 1 && text[0] == '0') {
    const char mark = char(text[1] | 32);
    base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
  }
  if (base != 10) {
    const size_t end = read_digits(text, 2, base, true, digits);
    if (digits.empty()) {
      base = 10;
    } else {
      number.integer_size = end;
    }
  }
  if (base == 10) number.integer_size = read_digits(text, 0, 10, false, digits);
  const auto parsed =
      std::from_chars(digits.data(), digits.data() + digits.size(), number.integer, base);
  number.fits = parsed.ec == std::errc();
  // A leading zero stands alone, as 007 is no number in Python.
  if (base == 10 && digits.size() > 1 && digits[0] == '0' &&
      digits.find_first_not_of('0') != std::string::npos) {
    number.integer_size = digits.find_first_not_of('0');
    number.integer = 0;
    number.fits = true;
  }
  if (base != 10) return number;
  std::string real;
  size_t end = read_digits(text, 0, 10, false, real);
  if (end < text.size() && text[end] == '.') {
    std::string fraction;
    const size_t after = read_digits(text, end + 1, 10, false, fraction);
    if (!fraction.empty()) {
      number.is_real = true;
      real += "." + fraction;
      end = after;
    }
  }
  if (end < text.size() && (text[end] | 32) == 'e') {
    size_t exponent = end + 1;
    const bool has_sign =
        exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-');
    std::string power;
    const size_t after = read_digits(text, exponent + has_sign, 10, false, power);
    if (!power.empty()) {
      number.is_real = true;
      real += "e" + (has_sign && text[exponent] == '-' ? "-" + power : power);
      end = after;
    }
  }
  number.size = end;
  if (number.is_real) {
    const auto done = std::from_chars(real.data(), real.data() + real.size(), number.real);
    if (done.ec == std::errc::result_out_of_range) {
      const size_t sign = real.find("e-");
      number.real = sign == std::string::npos ? HUGE_VAL : 0;
    }
  }
  return number;
}

}  // namespace cairn::jinja
