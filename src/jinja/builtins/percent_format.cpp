// printf-style String Formatting of the Python library reference.
#include "jinja/builtins/percent_format.h"

#include <algorithm>
#include <cmath>

#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/number_format.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

class PercentFormat {
 public:
  PercentFormat(Runtime& runtime, const Value& format, const Value& values)
      : runtime_(runtime),
        format_(format.marked()),
        values_(values),
        is_markup_(format.is_markup()) {}

  Result<Value> run() {
    const std::string_view text = format_.bytes();
    while (at_ < text.size()) {
      const size_t percent = std::min(text.find('%', at_), text.size());
      CAIRN_TRY(check(percent - at_));
      out_.append(format_, at_, percent);
      at_ = percent + 1;
      if (percent < text.size()) CAIRN_TRY(directive());
    }
    const bool took_all = !values_.is(Kind::tuple)
                              ? (used_ > 0 || values_.is(Kind::dict) || values_.is(Kind::list))
                              : used_ == values_.items().size();
    if (!took_all) {
      return fail(kRunFailed, "'%': expected {} values, found more", used_);
    }
    CAIRN_TRY(Value made, runtime_.string(std::move(out_)));
    made.set_markup(is_markup_);
    return made;
  }

 private:
  Status check(size_t more) {
    CAIRN_TRY(runtime_.work(more + 16));
    return runtime_.check_string(out_.size() + more);
  }
  char here() const { return at_ < format_.size() ? format_.bytes()[at_] : '\0'; }

  Result<Value> next_value() {
    if (!values_.is(Kind::tuple)) {
      if (used_++ == 0) return values_;
    } else if (used_ < values_.items().size()) {
      return values_.items()[used_++];
    }
    return fail(kRunFailed, "'%': expected a value for each directive, found only {}",
                values_.is(Kind::tuple) ? values_.items().size() : 1);
  }

  Result<Value> named_value() {
    const size_t end = format_.bytes().find(')', at_);
    if (end == std::string_view::npos || !values_.is(Kind::dict)) {
      return fail(kRunFailed, "'%(': expected a name and a dict, found {}",
                  name_of(values_.kind()));
    }
    const std::string_view name = format_.bytes().substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    ++used_;
    CAIRN_TRY(runtime_.work(name.size()));
    CAIRN_TRY(const Value* const found, runtime_.find(values_.as<DictObject>(), name));
    if (found != nullptr) return *found;
    return fail(kRunFailed, "'%({})': expected this key in the dict, found none",
                name.substr(0, 60));
  }

  Result<int64_t> count(int64_t fallback) {
    if (here() == '*') {
      ++at_;
      CAIRN_TRY(const Value value, next_value());
      return integer_argument("'%*'", value);
    }
    if (here() < '0' || here() > '9') return fallback;
    int64_t number = 0;
    while (here() >= '0' && here() <= '9') {
      number = std::min<int64_t>(number * 10 + (format_.bytes()[at_++] - '0'), 1 << 30);
    }
    return number;
  }

  Status directive() {
    constexpr size_t kDirectiveWork = 512;
    CAIRN_TRY(runtime_.work(kDirectiveWork));
    FieldSpec spec;
    Value value;
    const bool is_named = here() == '(';
    if (is_named) {
      CAIRN_TRY(value, named_value());
    }
    bool is_zero_filled = false;
    bool is_left = false;
    for (; at_ < format_.size() && std::string_view("#0- +").find(here()) != std::string_view::npos;
         ++at_) {
      is_zero_filled = is_zero_filled || here() == '0';
      is_left = is_left || here() == '-';
      spec.is_alternate = spec.is_alternate || here() == '#';
      if (here() == '+' || (here() == ' ' && spec.sign != '+')) spec.sign = here();
    }
    CAIRN_TRY(spec.width, count(0));
    if (spec.width < 0) {
      is_left = true;
      spec.width = spec.width < -kLimit ? kLimit + 1 : -spec.width;
    }
    if (here() == '.') {
      ++at_;
      CAIRN_TRY(spec.precision, count(0));
      spec.precision = std::max<int64_t>(spec.precision, 0);
    }
    while (here() == 'l' || here() == 'h' || here() == 'L') ++at_;
    if (spec.width > kLimit || spec.precision > kLimit) {
      return fail(kOverBudget, "'%': expected width and precision of at most {}, found more",
                  kLimit);
    }
    CAIRN_TRY(check(size_t(spec.width)));
    const char type = here();
    ++at_;
    if (type == '%') return out_.append("%", true), Status(Ok{});
    if (!is_named) {
      CAIRN_TRY(value, next_value());
    }
    spec.align = is_left ? '<' : is_zero_filled ? '=' : '>';
    if (is_zero_filled && !is_left) spec.fill = "0";
    return field(value, spec, type);
  }

  Status text_field(const Value& value, FieldSpec spec, bool is_repr, bool is_ascii = false) {
    MarkedText text;
    if (is_repr) {
      CAIRN_TRY(append_repr(runtime_, text, value, is_ascii));
    } else {
      CAIRN_TRY(append_text(runtime_, text, value));
    }
    if (is_markup_ && !(value.is(Kind::string) && value.is_markup())) {
      CAIRN_TRY(check(text.size() * 5));
      CAIRN_TRY(runtime_.work(text.size() * kPropertyWork));
      text = escaped(text);
    }
    if (spec.precision >= 0) {
      text = text.slice(0, offset_of_character(text.bytes(), size_t(spec.precision)));
    }
    spec.fill = " ";
    if (spec.align == '=') spec.align = '>';
    CAIRN_TRY(check(text.size()));
    out_.append(padded(std::move(text), spec, '>'));
    return Ok{};
  }

  Status field(const Value& value, FieldSpec spec, char type) {
    switch (type) {
      case 's':
        return text_field(value, spec, false);
      case 'r':
      case 'a':
        return text_field(value, spec, true, type == 'a');
      case 'c':
        if (value.is_whole()) return character_field(value, spec);
        if (!value.is(Kind::string) || value.as<StringObject>().character_count != 1) {
          return wrong_type("'%c'", "a string of one character, or its number", value);
        }
        return text_field(value, spec, false);
      case 'd':
      case 'i':
      case 'u':
        spec.type = 'd';
        return integer_field(value, spec);
      case 'x':
      case 'X':
      case 'o':
        spec.type = type;
        return integer_field(value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        break;
      default:
        return fail(kRunFailed, "'%': expected a directive such as s, d or f, found '{}'",
                    type < ' ' ? '?' : type);
    }
    if (!value.is_number()) return wrong_type("'%f'", "a number", value);
    if (spec.precision > 300) {
      return fail(kOverBudget, "'%': expected a precision of at most 300, found {}",
                  spec.precision);
    }
    spec.type = type;
    CAIRN_TRY(
        const MarkedText text,
        format_field(runtime_, Value::real(value.as_real()).set_users(value.is_users()), spec));
    out_.append(text);
    return Ok{};
  }

  // By its number.
  Status character_field(const Value& value, const FieldSpec& spec) {
    const char align = spec.align == '=' ? '>' : spec.align;
    CAIRN_TRY(const MarkedText text,
              format_field(runtime_, value, {.align = align, .width = spec.width, .type = 'c'}));
    out_.append(text);
    return Ok{};
  }

  // A precision asks for at least so many digits.
  Status integer_field(const Value& value, FieldSpec spec) {
    if (!value.is_number() || (value.is(Kind::real) && spec.type != 'd')) {
      return wrong_type("'%d'", "a number", value);
    }
    int64_t number = value.as_integer();
    if (value.is(Kind::real)) {
      if (!(std::fabs(value.as_real()) < 0x1p63)) {
        return fail(kRunFailed, "'%d': expected a number of at most 64 bits, found {}",
                    value.as_real());
      }
      number = int64_t(value.as_real());
    }
    const int64_t digits = std::exchange(spec.precision, -1);
    const Value whole = Value::integer(number).set_users(value.is_users());
    if (digits > 0) {
      FieldSpec inner = spec;
      inner.fill = "0";
      inner.align = '=';
      inner.width = digits + (number < 0 || inner.sign != '-');
      CAIRN_TRY(MarkedText text, format_field(runtime_, whole, inner));
      if (spec.align == '=' && spec.fill == "0") spec.align = '>';
      out_.append(padded(std::move(text), spec, '>'));
      return Ok{};
    }
    CAIRN_TRY(const MarkedText text, format_field(runtime_, whole, spec));
    out_.append(text);
    return Ok{};
  }

  static constexpr int64_t kLimit = 100'000;

  Runtime& runtime_;
  const MarkedText& format_;
  const Value& values_;
  bool is_markup_;
  MarkedText out_;
  size_t at_ = 0;
  size_t used_ = 0;
};

}  // namespace

Result<Value> percent_format(Runtime& runtime, const Value& format, const Value& values) {
  if (values.is(Kind::undefined)) return undefined_error(values);
  return PercentFormat(runtime, format, values).run();
}

}  // namespace cairn::jinja
