// Filters over texts, numbers and single values.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "jinja/builtins/filters.h"
#include "jinja/builtins/methods.h"
#include "jinja/builtins/percent_format.h"
#include "jinja/builtins/string_functions.h"
#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/number_format.h"
#include "jinja/values/objects.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

using Args = std::span<const Value>;

// The subject as a string, changed; what was safe stays safe.
template <class Change>
Result<Value> changed(Runtime& runtime, const Value& self, Change change) {
  CAIRN_TRY(const Value text, to_string(runtime, self));
  CAIRN_TRY(MarkedText result, change(text.marked()));
  CAIRN_TRY(Value made, runtime.string(std::move(result)));
  made.set_markup(text.is_markup());
  return made;
}

template <Case wanted>
Result<Value> change_case(Runtime& runtime, const Value& self, Args) {
  return changed(runtime, self,
                 [&](const MarkedText& text) { return with_case(runtime, text, wanted); });
}

Result<Value> title(Runtime& runtime, const Value& self, Args) {
  CAIRN_TRY(Value made, changed(runtime, self, [&](const MarkedText& text) {
              return with_title_filter(runtime, text);
            }));
  made.set_markup(false);
  return made;
}

Result<Value> trim(Runtime& runtime, const Value& self, Args args) {
  return changed(runtime, self, [&](const MarkedText& text) {
    return stripped(runtime, text, args[0], Side::both);
  });
}

Result<Value> replace(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const Value from, to_string(runtime, args[0]));
  CAIRN_TRY(const Value to, to_string(runtime, args[1]));
  int64_t most = -1;
  if (!args[2].is(Kind::none)) {
    CAIRN_TRY(most, integer_or(args[2], -1, "replace"));
  }
  CAIRN_TRY(Value made, changed(runtime, self, [&](const MarkedText& text) {
              return replaced(runtime, text, from.marked(), to.marked(), most);
            }));
  made.set_markup(false);
  return made;
}

Result<Value> string(Runtime& runtime, const Value& self, Args) {
  return to_string(runtime, self);
}

Result<Value> safe(Runtime& runtime, const Value& self, Args) {
  CAIRN_TRY(Value text, to_string(runtime, self));
  text.set_markup(true);
  return text;
}

template <bool force>
Result<Value> escape(Runtime& runtime, const Value& self, Args) {
  CAIRN_TRY(const Value text, to_string(runtime, self));
  if (text.is_markup() && !force) return text;
  CAIRN_TRY(runtime.prepare_string(text.text().size() * 5));
  CAIRN_TRY(runtime.work(text.text().size() * kPropertyWork));
  CAIRN_TRY(Value made, runtime.string(escaped(text.marked())));
  made.set_markup(true);
  return made;
}

Result<Value> default_value(Runtime& runtime, const Value& self, Args args) {
  const bool takes = self.is(Kind::undefined) || (truth_or(args[1], false) && !truth(self));
  if (!takes) return self;
  if (args[0].is(Kind::absent)) return runtime.string({}, true);
  return args[0];
}

Result<Value> attribute(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(text_of(args[0], "attr"));
  if (self.is(Kind::dict)) {
    // Unlike a dot, this filter does not fall back to the dict's keys.
    const auto method = find_method(Kind::dict, args[0].text());
    if (!method) return Value::undefined(Missing::attribute, Kind::dict, args[0].pointer());
  }
  return attribute_of(runtime, self, args[0]);
}

Result<Value> center(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const Value text, to_string(runtime, self));
  const auto method = find_method(Kind::string, "center");
  CHECK(method.has_value());
  const Value width = args[0].is(Kind::absent) ? Value::integer(80) : args[0];
  return call_method(runtime, *method, text, {{width}, {}});
}

Result<Value> format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  CAIRN_TRY(const Value text, to_string(runtime, self));
  if (arguments.named.empty()) {
    CAIRN_TRY(const Value values, runtime.tuple(arguments.positional));
    return percent_format(runtime, text, values);
  }
  if (!arguments.positional.empty()) {
    return fail(kRunFailed, "format: expected positional or named arguments, found both");
  }
  std::vector<Entry> entries;
  for (const auto& [name, value] : arguments.named) {
    CAIRN_TRY(Value key, runtime.string(name, true));
    entries.emplace_back(std::move(key), value);
  }
  CAIRN_TRY(const Value values, runtime.dict(std::move(entries)));
  return percent_format(runtime, text, values);
}

Result<Value> indent(Runtime& runtime, const Value& self, Args args) {
  if (!self.is(Kind::string)) return wrong_type("indent", "a string", self);
  const Value& text = self;
  MarkedText indention(std::string(4, ' '), true);
  if (args[0].is(Kind::string)) {
    indention = args[0].marked();
  } else if (!args[0].is(Kind::absent)) {
    CAIRN_TRY(const int64_t width, integer_argument("indent", args[0]));
    const size_t spaces = size_t(std::clamp<int64_t>(width, 0, kStringBytesMax + 1));
    CAIRN_TRY(runtime.prepare_string(spaces));
    indention = MarkedText(std::string(spaces, ' '), true);
  }
  MarkedText ended = text.marked();
  ended.append("\n", true);  // So that a last empty line is one.
  CAIRN_TRY(const std::vector<MarkedText> lines, split_lines(runtime, ended, false));
  if (lines.size() * (indention.size() + 1) > kStringBytesMax) {
    CAIRN_TRY(runtime.prepare_string(lines.size() * (indention.size() + 1)));
  }
  CAIRN_TRY(runtime.prepare_string(ended.size() + lines.size() * (indention.size() + 1)));
  const bool indents_blank = truth_or(args[2], false);
  MarkedText out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.append("\n", true);
    const bool is_indented = i == 0 ? truth_or(args[1], false) : indents_blank || !lines[i].empty();
    if (is_indented) out.append(indention);
    out.append(lines[i]);
  }
  CAIRN_TRY(Value made, runtime.string(std::move(out)));
  made.set_markup(text.is_markup());
  return made;
}

Result<Value> truncate(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const int64_t length, integer_or(args[0], 255, "truncate"));
  CAIRN_TRY(const int64_t leeway, integer_or(args[3], 5, "truncate"));
  const MarkedText end = args[2].is(Kind::string) ? args[2].marked() : MarkedText("...", true);
  CAIRN_TRY(runtime.work(4 * end.size()));
  const int64_t end_length = int64_t(count_characters(end.bytes()));
  if (length < end_length || leeway < 0) {
    return fail(kRunFailed, "truncate: expected a length of at least {}, found {}", end_length,
                length);
  }
  CAIRN_TRY(const int64_t size, length_of(self));
  if (size <= length + leeway) return self;
  if (!self.is(Kind::string)) return wrong_type("truncate", "a string", self);
  const MarkedText& text = self.marked();
  CAIRN_TRY(runtime.prepare_string(text.size() + end.size()));
  CAIRN_TRY(runtime.work(text.size() * kCharacterWork));
  size_t cut = offset_of_character(text.bytes(), size_t(length - end_length));
  if (!truth_or(args[1], false)) {
    cut = std::min(text.bytes().substr(0, cut).rfind(' '), cut);
  }
  MarkedText out = text.slice(0, cut);
  out.append(end);
  return runtime.string(std::move(out));
}

Result<Value> wordcount(Runtime& runtime, const Value& self, Args) {
  CAIRN_TRY(const Value text, to_string(runtime, self));
  CAIRN_TRY(runtime.work(text.text().size() * kPropertyWork));
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text.text().size(); at = next_character(text.text(), at)) {
    const char32_t code = character_at(text.text(), at);
    const bool is_word = is_alphabetic(code) || is_numeric(code) || code == '_';
    count += is_word && !inside;
    inside = is_word;
  }
  return Value::integer(count);
}

// In a query a space is '+', and '/' is no separator.
Result<MarkedText> url_quoted(Runtime& runtime, const Value& value, bool in_query) {
  CAIRN_TRY(const Value text, to_string(runtime, value));
  CAIRN_TRY(runtime.prepare_string(text.text().size() * 3));
  CAIRN_TRY(runtime.work(text.text().size() * kPropertyWork));
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  MarkedText out;
  OriginWalk origin(text.marked());
  for (size_t at = 0; at < text.text().size(); ++at) {
    const char byte = text.text()[at];
    const bool is_plain =
        isalnum(uint8_t(byte)) != 0 ||
        std::string_view("_.-~/", in_query ? 4 : 5).find(byte) != std::string_view::npos;
    const bool trusted = origin.is_trusted_at(at);
    if (is_plain && uint8_t(byte) < 0x80) {
      out.append({&byte, 1}, trusted);
    } else if (in_query && byte == ' ') {
      out.append("+", trusted);
    } else {
      const char code[] = {'%', kDigits[uint8_t(byte) >> 4], kDigits[uint8_t(byte) & 15]};
      out.append({code, sizeof code}, trusted);
    }
  }
  return out;
}

// A mapping, or a walk over pairs, becomes a query.
Result<Value> urlencode(Runtime& runtime, const Value& self, Args) {
  const bool is_query = self.is_sequence() || self.is(Kind::dict) || self.is(Kind::view) ||
                        self.is(Kind::generator) || self.is(Kind::range);
  if (!is_query) {
    CAIRN_TRY(MarkedText quoted, url_quoted(runtime, self, false));
    return runtime.string(std::move(quoted));
  }
  Value pairs = self;
  if (self.is(Kind::dict)) {
    CAIRN_TRY(pairs, runtime.heap().adopt(Kind::view, new ViewObject(self, ViewOf::items)));
  }
  CAIRN_TRY(Iterator walk, Iterator::over(pairs));
  MarkedText out;
  Value pair;
  while (true) {
    CAIRN_TRY(runtime.step());
    CAIRN_TRY(const bool more, walk.next(runtime, pair));
    if (!more) return runtime.string(std::move(out));
    CAIRN_TRY(const std::vector<Value> parts, items_of(runtime, pair));
    if (parts.size() != 2) {
      return fail(kRunFailed, "urlencode: expected pairs, found one of {} values", parts.size());
    }
    CAIRN_TRY(const MarkedText name, url_quoted(runtime, parts[0], true));
    CAIRN_TRY(const MarkedText value, url_quoted(runtime, parts[1], true));
    CAIRN_TRY(runtime.check_string(out.size() + name.size() + value.size() + 2));
    if (!out.empty()) out.append("&", true);
    out.append(name);
    out.append("=", true);
    out.append(value);
  }
}

// Python's int(text, base) and float(text): white space around, underscores between digits.
std::string number_text(std::string_view text) {
  std::string out;
  size_t begin = 0;
  size_t end = text.size();
  while (begin < end && is_python_space(uint8_t(text[begin]))) ++begin;
  while (end > begin && is_python_space(uint8_t(text[end - 1]))) --end;
  for (size_t i = begin; i < end; ++i) {
    const bool is_separator = text[i] == '_' && i > begin && i + 1 < end &&
                              isxdigit(uint8_t(text[i - 1])) != 0 &&
                              isxdigit(uint8_t(text[i + 1])) != 0;
    if (!is_separator) out += text[i];
  }
  return out;
}

std::optional<double> parse_real(std::string_view text) {
  const std::string clean = number_text(text);
  const bool has_plus = clean.size() > 1 && clean[0] == '+' && clean[1] != '-';
  const char* begin = clean.data() + has_plus;
  const char* end = clean.data() + clean.size();
  double value = 0;
  const auto parsed = std::from_chars(begin, end, value);
  if (parsed.ptr != end || begin == end) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) {
    const bool is_small =
        clean.find("e-") != std::string::npos || clean.find("E-") != std::string::npos;
    return is_small ? 0.0 : *begin == '-' ? -HUGE_VAL : HUGE_VAL;
  }
  if (parsed.ec != std::errc()) return std::nullopt;
  return value;
}

enum class Parsed : uint8_t { good, bad, too_large };

Parsed parse_integer(std::string_view text, int base, int64_t& value) {
  std::string clean = number_text(text);
  const bool is_negative = !clean.empty() && clean[0] == '-';
  std::string_view digits = clean;
  if (is_negative || (!clean.empty() && clean[0] == '+')) digits.remove_prefix(1);
  const char mark = digits.size() > 2 && digits[0] == '0' ? char(digits[1] | 32) : '\0';
  const int marked_base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked_base != 0 && (base == 0 || base == marked_base)) {
    base = marked_base;
    digits.remove_prefix(2);
  }
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return Parsed::bad;
  const std::string whole = (is_negative ? "-" : "") + std::string(digits);
  const auto parsed =
      std::from_chars(whole.data(), whole.data() + whole.size(), value, base == 0 ? 10 : base);
  if (parsed.ptr != whole.data() + whole.size()) return Parsed::bad;
  return parsed.ec == std::errc::result_out_of_range ? Parsed::too_large : Parsed::good;
}

bool has_users_text(const Value& value) {
  return value.is(Kind::string) ? !value.marked().is_trusted() : value.is_users();
}

Error too_large(std::string_view what) {
  return fail(kRunFailed, "{}: expected an integer of at most 64 bits, found a larger one", what);
}

Result<Value> to_integer(Runtime& runtime, const Value& self, Args args) {
  if (self.is(Kind::undefined)) return undefined_error(self);
  const Value fallback = args[0].is(Kind::absent) ? Value::integer(0) : args[0];
  std::optional<double> real;
  if (self.is(Kind::string)) {
    CAIRN_TRY(const int64_t base, integer_or(args[1], 10, "int"));
    if (base != 0 && (base < 2 || base > 36)) return fallback;
    CAIRN_TRY(runtime.work(self.text().size() * kPropertyWork));
    int64_t value = 0;
    const Parsed parsed = parse_integer(self.text(), int(base), value);
    if (parsed == Parsed::too_large) return too_large("int");
    if (parsed == Parsed::good) return Value::integer(value).set_users(has_users_text(self));
    real = parse_real(self.text());
  } else if (self.is_whole()) {
    return Value::integer(self.as_integer()).set_users(self.is_users());
  } else if (self.is(Kind::real)) {
    real = self.as_real();
    // int() of an infinity is an error that the filter does not catch; of NaN it is.
    if (std::isinf(*real))
      return fail(kRunFailed, "int: expected a finite number, found {}", *real);
  }
  if (!real || !std::isfinite(*real)) return fallback;
  if (std::fabs(*real) >= 0x1p63) return too_large("int");
  return Value::integer(int64_t(*real)).set_users(has_users_text(self));
}

Result<Value> to_real(Runtime& runtime, const Value& self, Args args) {
  if (self.is(Kind::undefined)) return undefined_error(self);
  const Value fallback = args[0].is(Kind::absent) ? Value::real(0) : args[0];
  if (self.is_number()) return Value::real(self.as_real()).set_users(self.is_users());
  if (!self.is(Kind::string)) return fallback;
  CAIRN_TRY(runtime.work(self.text().size() * kPropertyWork));
  const auto value = parse_real(self.text());
  return value ? Value::real(*value).set_users(has_users_text(self)) : fallback;
}

Result<Value> absolute(Runtime&, const Value& self, Args) {
  if (!self.is_number()) return wrong_type("abs", "a number", self);
  const bool is_negative = self.is_whole() ? self.as_integer() < 0 : std::signbit(self.as_real());
  return negated(self, is_negative);
}

// Rounds the decimal that the number prints as: half to even, as Python's round does.
Result<double> rounded(Runtime& runtime, double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision >= 0) {
    CAIRN_TRY(const std::string digits, real_digits(runtime, value, 'f', int(precision), false));
    double result = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), result);
    return std::copysign(result, value);
  }
  const double scale = std::pow(10.0, double(-std::max<int64_t>(precision, -300)));
  return std::nearbyint(value / scale) * scale;
}

Result<Value> round(Runtime& runtime, const Value& self, Args args) {
  if (!self.is_number()) return wrong_type("round", "a number", self);
  CAIRN_TRY(const int64_t precision, integer_or(args[0], 0, "round"));
  std::string_view method = "common";
  if (!args[1].is(Kind::absent)) {
    CAIRN_TRY(method, text_of(args[1], "round"));
  }
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, double(precision));
    const double scaled = self.as_real() * scale;
    return Value::real((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale)
        .set_users(self.is_users());
  }
  if (method != "common") {
    return fail(kRunFailed, "round: expected common, ceil or floor, found '{}'",
                method.substr(0, 60));
  }
  if (self.is_whole() && precision >= 0) {
    return Value::integer(self.as_integer()).set_users(self.is_users());
  }
  CAIRN_TRY(const double result, rounded(runtime, self.as_real(), precision));
  if (self.is_whole()) return Value::integer(int64_t(result)).set_users(self.is_users());
  return Value::real(result).set_users(self.is_users());
}

Result<Value> filesizeformat(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const Value number, to_real(runtime, self, std::vector<Value>{Value::none()}));
  if (!number.is(Kind::real)) return wrong_type("filesizeformat", "a number", self);
  const bool binary = truth_or(args[0], false);
  const double base = binary ? 1024 : 1000;
  const double bytes = number.as_real();
  if (bytes == 1) return runtime.string("1 Byte", true);
  if (bytes < base) {
    const double whole = std::trunc(bytes);
    if (std::isinf(whole)) {
      return fail(kRunFailed, "filesizeformat: expected a finite number, found {}", whole);
    }
    CAIRN_TRY(const std::string digits, real_digits(runtime, whole, 'f', 0, false));
    return runtime.string(fmt::format("{}{} Bytes", whole < 0 ? "-" : "", digits), true);
  }
  double unit = base * base;
  size_t prefix = 0;
  while (prefix < 7 && !(bytes < unit)) {  // NaN, too, is of the largest unit.
    unit *= base;
    ++prefix;
  }
  CAIRN_TRY(const std::string digits, real_digits(runtime, base * bytes / unit, 'f', 1, false));
  return runtime.string(fmt::format("{} {}{}B", digits, (binary ? "KMGTPEZY" : "kMGTPEZY")[prefix],
                                    binary ? "i" : ""),
                        true);
}

Result<std::string> separator_of(const Value& pair, const Value& index, Runtime& runtime) {
  CAIRN_TRY(const Value text, item_of(runtime, pair, index));
  CAIRN_TRY(const std::string_view bytes, text_of(text, "tojson separators"));
  return std::string(bytes.substr(0, 64));
}

Result<Value> tojson(Runtime& runtime, const Value& self, Args args) {
  JsonStyle style;
  style.ensure_ascii = truth_or(args[0], false);
  const Value& indent = args[1];
  if (!indent.is(Kind::absent) && !indent.is(Kind::none)) {
    style.has_indent = true;
    style.item_separator = ",";
    if (indent.is(Kind::string)) {
      style.indent = std::string(indent.text().substr(0, 1000));
    } else {
      CAIRN_TRY(const int64_t width, integer_argument("tojson", indent));
      style.indent = std::string(size_t(std::clamp<int64_t>(width, 0, 1000)), ' ');
    }
  }
  if (!args[2].is(Kind::absent) && !args[2].is(Kind::none)) {
    if (!args[2].is_sequence() || args[2].items().size() != 2) {
      return wrong_type("tojson separators", "two strings", args[2]);
    }
    CAIRN_TRY(style.item_separator, separator_of(args[2], Value::integer(0), runtime));
    CAIRN_TRY(style.key_separator, separator_of(args[2], Value::integer(1), runtime));
  }
  style.sort_keys = truth_or(args[3], false);
  return to_json(runtime, self, style);
}

constexpr Callable kFilters[] = {
    {"abs", "", absolute},
    {"attr", "name", attribute},
    {"capitalize", "", change_case<Case::capitalize>},
    {"center", "width=", center},
    {"d", "default_value= boolean=", default_value},
    {"default", "default_value= boolean=", default_value},
    {"e", "", escape<false>},
    {"escape", "", escape<false>},
    {"filesizeformat", "binary=", filesizeformat},
    {"float", "default=", to_real},
    {"forceescape", "", escape<true>},
    {"format", "", nullptr, format},
    {"indent", "width= first= blank=", indent},
    {"int", "default= base=", to_integer},
    {"lower", "", change_case<Case::lower>},
    {"replace", "old new count=", replace},
    {"round", "precision= method=", round},
    {"safe", "", safe},
    {"string", "", string},
    {"title", "", title},
    {"tojson", "ensure_ascii= indent= separators= sort_keys=", tojson},
    {"trim", "chars=", trim},
    {"truncate", "length= killwords= end= leeway=", truncate},
    {"upper", "", change_case<Case::upper>},
    {"urlencode", "", urlencode},
    {"wordcount", "", wordcount},
};

}  // namespace

std::span<const Callable> text_filters() {
  return kFilters;
}

}  // namespace cairn::jinja
