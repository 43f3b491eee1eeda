// Format Specification Mini-Language of the Python library reference.
#include "jinja/values/number_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/text_form.h"
#include "unicode/unicode.h"

namespace cairn::jinja {
namespace {

// Wider fields and finer digits than any text needs; what is larger is a mistake or an attack.
constexpr int64_t kWidthMax = 100'000;
constexpr int64_t kPrecisionMax = 300;
// A digit of a real: those of 1e308 take the C library some 20 us, which are 100 steps and more.
constexpr size_t kDigitWork = 128;

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

Result<int64_t> read_count(std::string_view text, size_t& at, int64_t highest) {
  int64_t count = 0;
  const size_t begin = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    count = std::min(count * 10 + (text[at++] - '0'), highest + 1);
  }
  if (count > highest) {
    return fail(kOverBudget, "a format: expected at most {}, found '{}'", highest,
                text.substr(begin, 20));
  }
  return count;
}

// As many zeros before the digits as it takes to `width` at least, which may be one more: no
// separator comes first.
std::string grouped(std::string digits, bool is_hexadecimal, char separator, size_t every,
                    int64_t width) {
  const auto is_digit = [&](char c) {
    return (is_hexadecimal ? isxdigit(uint8_t(c)) : isdigit(uint8_t(c))) != 0;
  };
  size_t whole = 0;
  while (whole < digits.size() && is_digit(digits[whole])) ++whole;
  if (whole == 0) return digits;  // No number has any: inf, nan.
  const int64_t wanted = width - int64_t(digits.size() - whole);
  size_t count = whole;
  while (int64_t(count + (count - 1) / every) < wanted) ++count;
  std::string out;
  out.reserve(count + count / every + digits.size() - whole);
  for (size_t left = count; left > 0; --left) {
    if (left < count && left % every == 0) out += separator;
    out += left > whole ? '0' : digits[whole - left];
  }
  return out + digits.substr(whole);
}

std::string integer_digits(uint64_t magnitude, char type) {
  char buffer[72];
  const int base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, magnitude, base);
  std::string digits(buffer, end.ptr);
  if (type == 'X') std::transform(digits.begin(), digits.end(), digits.begin(), toupper);
  return digits;
}

std::string filling(const FieldSpec& spec, int64_t count) {
  if (count <= 0) return {};
  if (spec.fill.size() == 1) return std::string(size_t(count), spec.fill[0]);
  std::string text;
  text.reserve(size_t(count) * spec.fill.size());
  for (int64_t i = 0; i < count; ++i) text += spec.fill;
  return text;
}

MarkedText number_field(bool is_negative, std::string digits, FieldSpec spec, bool users) {
  if (spec.align == 0 && spec.is_zero_filled) spec.align = '=';
  std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  if (spec.is_alternate &&
      (spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b')) {
    sign += std::string{'0', spec.type};
  }
  if (spec.grouping != 0) {
    const bool is_hexadecimal = spec.type == 'x' || spec.type == 'X';
    const bool by_four = is_hexadecimal || spec.type == 'o' || spec.type == 'b';
    const bool is_filled = spec.align == '=' && spec.fill == "0";
    digits = grouped(std::move(digits), is_hexadecimal, spec.grouping, by_four ? 4 : 3,
                     is_filled ? spec.width - int64_t(sign.size()) : 0);
  }
  if (spec.align == '=') {
    MarkedText text(sign, !users);
    const auto size = int64_t(sign.size() + count_characters(digits));
    text.append(filling(spec, spec.width - size), true);
    text.append(digits, !users);
    return text;
  }
  return padded(MarkedText(sign + digits, !users), spec, '>');
}

Result<MarkedText> format_string(Runtime& runtime, const Value& value, const FieldSpec& spec) {
  if (spec.type != 0 && spec.type != 's') {
    return fail(kRunFailed, "a format: expected type 's' for a string, found '{}'", spec.type);
  }
  if (spec.align == '=') return fail(kRunFailed, "a format: '=' needs a number, found a string");
  if (spec.has_sign || spec.is_alternate || spec.drops_minus_of_zero || spec.grouping != 0) {
    return fail(kRunFailed, "a format: a sign, 'z', '#' or ',' needs a number, found a string");
  }
  const MarkedText& text = value.marked();
  const size_t end =
      spec.precision < 0 ? text.size() : offset_of_character(text.bytes(), size_t(spec.precision));
  CAIRN_TRY(runtime.work(end));
  return padded(text.slice(0, end), spec, '<');
}

bool is_integer_type(char type) {
  return type == 0 || std::string_view("bcdoxXn").find(type) != std::string_view::npos;
}

Result<std::string> character_digits(int64_t code, const FieldSpec& spec) {
  if (spec.has_sign || spec.is_alternate) {
    return fail(kRunFailed, "a format: expected no sign and no '#' for type 'c', found one");
  }
  if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    return fail(kRunFailed, "a format: expected a character's number for type 'c', found {}", code);
  }
  std::string text;
  unicode::append_utf8(char32_t(code), text);
  return text;
}

Status check_grouping(const FieldSpec& spec) {
  constexpr std::string_view kReals = "deEfFgG%", kByFour = "boxX";
  if (spec.grouping == 0 || spec.type == 0 || kReals.find(spec.type) != kReals.npos) return Ok{};
  if (spec.grouping == '_' && kByFour.find(spec.type) != kByFour.npos) return Ok{};
  return fail(kRunFailed, "a format: expected a type that has '{}', found '{}'", spec.grouping,
              spec.type);
}

Result<MarkedText> format_integer(const Value& value, const FieldSpec& spec) {
  const int64_t number = value.as_integer();
  if (spec.precision >= 0) {
    return fail(kRunFailed, "a format: expected no precision for an integer, found {}",
                spec.precision);
  }
  if (spec.drops_minus_of_zero) {
    return fail(kRunFailed, "a format: expected no 'z' for an integer, found it");
  }
  if (spec.type == 'c') {
    CAIRN_TRY(std::string text, character_digits(number, spec));
    return number_field(false, std::move(text), spec, value.is_users());
  }
  const uint64_t magnitude = number < 0 ? 0 - uint64_t(number) : uint64_t(number);
  return number_field(number < 0, integer_digits(magnitude, spec.type), spec, value.is_users());
}

// Without a type: like 'g', but for a digit behind the point at least, and an exponent from one
// power of ten less on.
Result<std::string> general_digits(Runtime& runtime, double value, int precision,
                                   bool is_alternate) {
  CAIRN_TRY(const std::string text, real_digits(runtime, value, 'e', precision - 1, false));
  if (!std::isfinite(value)) return text;
  const size_t mark = text.find('e');
  const int exponent = std::atoi(text.c_str() + mark + 1);
  std::string digits = text.substr(0, mark);
  std::erase(digits, '.');
  if (!is_alternate) digits.resize(std::max<size_t>(digits.find_last_not_of('0') + 1, 1));
  if (exponent < -4 || exponent >= precision - 1) {
    if (digits.size() > 1 || is_alternate) digits.insert(1, 1, '.');
    return digits + text.substr(mark);
  }
  if (exponent < 0) return "0." + std::string(size_t(-exponent - 1), '0') + digits;
  const size_t whole = size_t(exponent) + 1;
  if (digits.size() <= whole) digits.append(whole + 1 - digits.size(), '0');
  digits.insert(whole, 1, '.');
  return digits;
}

Result<std::string> digits_of_real(Runtime& runtime, double number, const FieldSpec& spec) {
  if (spec.type != 0) {
    const char type = spec.type == 'n' ? 'g' : spec.type;
    return real_digits(runtime, number, type, int(spec.precision), spec.is_alternate);
  }
  if (spec.precision >= 0) {
    const int precision = int(std::max<int64_t>(spec.precision, 1));
    return general_digits(runtime, number, precision, spec.is_alternate);
  }
  std::string digits = real_repr(std::fabs(number));
  const size_t mark = digits.find('e');
  const bool lacks_point = mark != std::string::npos && digits.find('.') == std::string::npos;
  if (spec.is_alternate && lacks_point) digits.insert(mark, 1, '.');
  return digits;
}

Result<MarkedText> format_real(Runtime& runtime, const Value& value, const FieldSpec& spec) {
  const double number = value.as_real();
  CAIRN_TRY(std::string digits, digits_of_real(runtime, number, spec));
  const bool is_zero = digits.find_first_of("123456789in") == std::string::npos;
  const bool is_negative =
      std::signbit(number) && !std::isnan(number) && !(is_zero && spec.drops_minus_of_zero);
  return number_field(is_negative, std::move(digits), spec, value.is_users());
}

}  // namespace

Result<FieldSpec> parse_field_spec(std::string_view text) {
  FieldSpec spec;
  size_t at = 0;
  bool has_fill = false;
  if (!text.empty()) {
    const size_t after = next_character(text, 0);
    if (after < text.size() && is_align(text[after])) {
      spec.fill = std::string(text.substr(0, after));
      spec.align = text[after];
      has_fill = true;
      at = after + 1;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto skip = [&](std::string_view choices) {
    if (at >= text.size() || choices.find(text[at]) == choices.npos) return '\0';
    return text[at++];
  };
  if (const char sign = skip("+- ")) {
    spec.sign = sign;
    spec.has_sign = true;
  }
  spec.drops_minus_of_zero = skip("z") != 0;
  spec.is_alternate = skip("#") != 0;
  spec.is_zero_filled = !has_fill && skip("0") != 0;
  if (spec.is_zero_filled) spec.fill.assign(1, '0');
  CAIRN_TRY(spec.width, read_count(text, at, kWidthMax));
  spec.grouping = skip(",_");
  if (skip(".") != 0) {
    const size_t digits = at;
    CAIRN_TRY(spec.precision, read_count(text, at, kPrecisionMax));
    if (at == digits) return fail(kRunFailed, "a format: expected digits after '.', found none");
  }
  spec.type = skip("bcdeEfFgGnosxX%");
  if (at == text.size()) return spec;
  return fail(kRunFailed, "a format: expected fill, sign, width, precision and type, found '{}'",
              text.substr(0, 60));
}

Result<std::string> real_digits(Runtime& runtime, double value, char type, int precision,
                                bool is_alternate) {
  const double magnitude = std::fabs(value);
  if (!std::isfinite(value)) {
    const bool is_upper = type >= 'A' && type <= 'Z';
    std::string word = std::isnan(value) ? (is_upper ? "NAN" : "nan") : is_upper ? "INF" : "inf";
    return type == '%' ? word + '%' : word;
  }
  if (precision < 0) precision = 6;
  int exponent = 0;
  std::frexp(value, &exponent);  // Ten bits are three digits, on either side of the point.
  CAIRN_TRY(runtime.work(size_t(std::abs(exponent) / 3 + precision + 1) * kDigitWork));
  const char lower = char(type | 32);
  std::string format = is_alternate ? "%#.*" : "%.*";
  format += lower == 'e' || lower == 'f' || lower == 'g' ? type : 'f';
  char buffer[700];
  const double scaled = type == '%' ? magnitude * 100 : magnitude;
  if (std::isinf(scaled)) return std::string("inf%");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size = snprintf(buffer, sizeof buffer, format.c_str(), precision, scaled);
#pragma GCC diagnostic pop
  std::string digits(buffer, size_t(std::clamp(size, 0, int(sizeof buffer) - 1)));
  if (type == '%') digits += '%';
  return digits;
}

MarkedText padded(MarkedText text, const FieldSpec& spec, char default_align) {
  const int64_t missing = spec.width - int64_t(count_characters(text.bytes()));
  if (missing <= 0) return text;
  const char align = spec.align == 0 ? default_align : spec.align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  MarkedText out(filling(spec, left), true);
  out.append(text);
  out.append(filling(spec, missing - left), true);
  return out;
}

Result<MarkedText> format_field(Runtime& runtime, const Value& value, const FieldSpec& spec) {
  CAIRN_TRY(runtime.work(size_t(spec.width) + 64));
  if (value.is(Kind::string)) return format_string(runtime, value, spec);
  CAIRN_TRY(check_grouping(spec));
  if (value.is_whole() && is_integer_type(spec.type)) return format_integer(value, spec);
  const bool fits_reals = !is_integer_type(spec.type) || spec.type == 0 || spec.type == 'n';
  if (!value.is_number() || spec.type == 's' || !fits_reals) {
    return fail(kRunFailed, "a format: expected a type for {}, found '{}'", name_of(value.kind()),
                spec.type == 0 ? ' ' : spec.type);
  }
  return format_real(runtime, value, spec);
}

}  // namespace cairn::jinja
