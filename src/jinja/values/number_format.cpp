// Format Specification Mini-Language of the Python library reference.
#include "jinja/values/number_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/text_form.h"

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

std::string grouped(std::string digits, char separator, size_t every) {
  size_t whole = 0;
  while (whole < digits.size() && isxdigit(uint8_t(digits[whole])) != 0) ++whole;
  for (size_t at = whole; at > every; at -= every) digits.insert(at - every, 1, separator);
  return digits;
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

MarkedText number_field(bool is_negative, std::string digits, const FieldSpec& spec, bool users) {
  std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  if (spec.is_alternate &&
      (spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b')) {
    sign += std::string{'0', spec.type};
  }
  if (spec.grouping != 0) {
    const bool by_four =
        spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b';
    digits = grouped(std::move(digits), spec.grouping, by_four ? 4 : 3);
  }
  if (spec.align == '=') {
    MarkedText text(sign, !users);
    text.append(filling(spec, spec.width - int64_t(sign.size() + digits.size())), true);
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
  const MarkedText& text = value.marked();
  const size_t end =
      spec.precision < 0 ? text.size() : offset_of_character(text.bytes(), size_t(spec.precision));
  CAIRN_TRY(runtime.work(end));
  return padded(text.slice(0, end), spec, '<');
}

bool is_integer_type(char type) {
  return type == 0 || std::string_view("bcdoxXn").find(type) != std::string_view::npos;
}

}  // namespace

Result<FieldSpec> parse_field_spec(std::string_view text) {
  FieldSpec spec;
  size_t at = 0;
  if (!text.empty()) {
    const size_t after = next_character(text, 0);
    if (after < text.size() && is_align(text[after])) {
      spec.fill = std::string(text.substr(0, after));
      spec.align = text[after];
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
  if (const char sign = skip("+- ")) spec.sign = sign;
  spec.is_alternate = skip("#") != 0;
  if (skip("0") != 0 && spec.align == 0) {
    spec.fill.assign(1, '0');
    spec.align = '=';
  }
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
  if (std::isnan(value)) return std::string("nan");
  if (std::isinf(value)) return std::string("inf");
  if (precision < 0) precision = 6;
  int exponent = 0;
  std::frexp(value, &exponent);  // Ten bits are three digits, on either side of the point.
  CAIRN_TRY(runtime.work(size_t(std::abs(exponent) / 3 + precision + 1) * kDigitWork));
  const char lower = char(type | 32);
  std::string format = is_alternate ? "%#.*" : "%.*";
  format += lower == 'e' || lower == 'f' || lower == 'g' ? type : 'f';
  char buffer[700];
  const double scaled = type == '%' ? magnitude * 100 : magnitude;
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
  const bool users = value.is_users();
  if (value.is(Kind::integer) || (value.is(Kind::boolean) && spec.type != 0)) {
    if (is_integer_type(spec.type)) {
      const int64_t number = value.as_integer();
      if (spec.precision >= 0) {
        return fail(kRunFailed, "a format: expected no precision for an integer, found {}",
                    spec.precision);
      }
      if (spec.type == 'c') return fail(kRunFailed, "a format: expected no type 'c', found it");
      const uint64_t magnitude = number < 0 ? 0 - uint64_t(number) : uint64_t(number);
      return number_field(number < 0, integer_digits(magnitude, spec.type), spec, users);
    }
  }
  if (value.is_number() && !value.is(Kind::boolean)) {
    if (spec.type == 's' ||
        (value.is(Kind::real) && is_integer_type(spec.type) && spec.type != 0)) {
      return fail(kRunFailed, "a format: expected a type for {}, found '{}'", name_of(value.kind()),
                  spec.type);
    }
    const double number = value.as_real();
    std::string digits;
    if (spec.type == 0 && spec.precision < 0) {
      digits = real_repr(std::fabs(number));
    } else {
      const bool is_general = spec.type == 0;
      const int precision = int(is_general ? std::max<int64_t>(spec.precision, 1) : spec.precision);
      CAIRN_TRY(digits, real_digits(runtime, number, is_general ? 'g' : spec.type, precision,
                                    !is_general && spec.is_alternate));
    }
    return number_field(std::signbit(number), std::move(digits), spec, users);
  }
  CAIRN_TRY(const Value text, to_string(runtime, value));
  return format_string(runtime, text, spec);
}

}  // namespace cairn::jinja
