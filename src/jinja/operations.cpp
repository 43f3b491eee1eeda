// Truth, equality, order, membership and arithmetic.
#include "jinja/operations.h"

#include <algorithm>
#include <cmath>

#include "jinja/builtins/percent_format.h"
#include "jinja/builtins/string_functions.h"
#include "jinja/values/objects.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

std::string_view sign_of(Operation operation) {
  static constexpr std::string_view kSigns[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSigns[size_t(operation)];
}

Error no_operator(Operation operation, const Value& a, const Value& b) {
  if (a.is(Kind::undefined)) return undefined_error(a);
  if (b.is(Kind::undefined)) return undefined_error(b);
  return fail(kRunFailed, "'{}': expected operands that fit, found {} and {}", sign_of(operation),
              name_of(a.kind()), name_of(b.kind()));
}

Error overflow(Operation operation, int64_t a, int64_t b) {
  return fail(kRunFailed, "expected a result of at most 64 bits, found {} {} {}", a,
              sign_of(operation), b);
}

Error division_by_zero() {
  return fail(kRunFailed, "division: expected a divisor other than 0, found 0");
}

Result<int64_t> power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  const int64_t whole_base = base;
  for (int64_t left = exponent; left > 0; left /= 2) {
    if (left % 2 == 1 && __builtin_mul_overflow(result, base, &result)) {
      return overflow(Operation::power, whole_base, exponent);
    }
    if (left > 1 && __builtin_mul_overflow(base, base, &base)) {
      return overflow(Operation::power, whole_base, exponent);
    }
  }
  return result;
}

// Python's floor: the quotient rounds down, the remainder has the divisor's sign.
Result<Value> integer_division(Operation operation, int64_t a, int64_t b) {
  if (b == 0) return division_by_zero();
  if (a == INT64_MIN && b == -1) {
    if (operation == Operation::modulo) return Value::integer(0);
    return overflow(operation, a, b);
  }
  const int64_t remainder = a % b;
  const bool is_off = remainder != 0 && (remainder < 0) != (b < 0);
  if (operation == Operation::modulo) return Value::integer(is_off ? remainder + b : remainder);
  return Value::integer(a / b - is_off);
}

Result<Value> integer_arithmetic(Operation operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case Operation::add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Operation::subtract:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Operation::multiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Operation::divide:
      if (b == 0) return division_by_zero();
      return Value::real(double(a) / double(b));
    case Operation::power: {
      if (b < 0) {
        if (a == 0) return division_by_zero();
        return Value::real(std::pow(double(a), double(b)));
      }
      CAIRN_TRY(result, power(a, b));
      break;
    }
    default:
      return integer_division(operation, a, b);
  }
  if (overflows) return overflow(operation, a, b);
  return Value::integer(result);
}

Result<Value> real_arithmetic(Operation operation, double a, double b) {
  switch (operation) {
    case Operation::add:
      return Value::real(a + b);
    case Operation::subtract:
      return Value::real(a - b);
    case Operation::multiply:
      return Value::real(a * b);
    case Operation::power: {
      if (a == 0 && b < 0) return division_by_zero();
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        return fail(kRunFailed, "'**': expected a real result, found a complex one");
      }
      return Value::real(result);
    }
    default:
      break;
  }
  if (b == 0) return division_by_zero();
  if (operation == Operation::divide) return Value::real(a / b);
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (operation == Operation::modulo) {
    return Value::real(remainder == 0 ? std::copysign(0.0, b) : remainder);
  }
  const double quotient = (a - remainder) / b;
  const double whole = std::floor(quotient);
  return Value::real(quotient - whole > 0.5 ? whole + 1 : whole);
}

Result<Value> repeated(Runtime& runtime, const Value& value, int64_t times) {
  const size_t count = times > 0 ? size_t(times) : 0;
  if (value.is(Kind::string)) {
    const size_t size = value.text().size();
    if (size > 0 && count > kStringBytesMax / size) {
      return fail(kOverBudget, "'*': expected a string of at most {} bytes, found {} times {}",
                  kStringBytesMax, size, count);
    }
    CAIRN_TRY(runtime.prepare_string(size * count));
    // By doubling, so that a long run of one character is no long loop.
    MarkedText text;
    MarkedText block = value.marked();
    for (size_t left = size == 0 ? 0 : count; left > 0; left /= 2) {
      if (left % 2 == 1) text.append(block);
      if (left > 1) block.append(MarkedText(block));
    }
    CAIRN_TRY(Value made, runtime.string(std::move(text)));
    made.set_markup(value.is_markup());
    return made;
  }
  const std::vector<Value>& items = value.items();
  if (!items.empty() && count > kHeapBytesMax / sizeof(Value) / items.size()) {
    return fail(kOverBudget, "'*': expected a list of at most {} elements, found {} times {}",
                kHeapBytesMax / sizeof(Value), items.size(), count);
  }
  CAIRN_TRY(runtime.prepare_items(items.size() * count));
  std::vector<Value> made;
  made.reserve(items.size() * count);
  for (size_t i = 0; i < (items.empty() ? 0 : count); ++i) {
    made.insert(made.end(), items.begin(), items.end());
  }
  return runtime.list(std::move(made), value.kind());
}

Result<Value> joined(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is(Kind::string) && b.is(Kind::string)) {
    const bool is_markup = a.is_markup() || b.is_markup();
    // Escaping makes a character at most five bytes longer.
    CAIRN_TRY(runtime.prepare_string(a.text().size() + b.text().size()));
    MarkedText text;
    text.reserve(a.text().size() + b.text().size());
    for (const Value* part : {&a, &b}) {
      if (is_markup && !part->is_markup()) {
        CAIRN_TRY(runtime.prepare_string(part->text().size() * 5));
        CAIRN_TRY(runtime.work(part->text().size() * kPropertyWork));
        text.append(escaped(part->marked()));
      } else {
        text.append(part->marked());
      }
    }
    CAIRN_TRY(Value made, runtime.string(std::move(text)));
    made.set_markup(is_markup);
    return made;
  }
  const size_t count = a.items().size() + b.items().size();
  CAIRN_TRY(runtime.prepare_items(count));
  std::vector<Value> items;
  items.reserve(count);
  items.insert(items.end(), a.items().begin(), a.items().end());
  items.insert(items.end(), b.items().begin(), b.items().end());
  return runtime.list(std::move(items), a.kind());
}

bool can_repeat(const Value& value) {
  return value.is(Kind::string) || value.is_sequence();
}

Result<bool> equal_items(Runtime& runtime, const std::vector<Value>& a,
                         const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  CAIRN_TRY(runtime.work(a.size() * kElementWork));
  for (size_t i = 0; i < a.size(); ++i) {
    CAIRN_TRY(const bool same, equal(runtime, a[i], b[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> equal_dicts(Runtime& runtime, const DictObject& a, const DictObject& b) {
  if (a.entries.size() != b.entries.size()) return false;
  CAIRN_TRY(runtime.work(a.entries.size() * 2 * kElementWork));
  for (const auto& [key, value] : a.entries) {
    CAIRN_TRY(const Value* const other, runtime.find(b, key));
    if (other == nullptr) return false;
    CAIRN_TRY(const bool same, equal(runtime, value, *other));
    if (!same) return false;
  }
  return true;
}

bool equal_numbers(const Value& a, const Value& b) {
  if (std::isnan(a.as_real()) || std::isnan(b.as_real())) return false;
  return compare_numbers(a, b) == 0;
}

}  // namespace

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::absent:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.as_integer() != 0;
    case Kind::real:
      return value.as_real() != 0;
    case Kind::string:
      return !value.text().empty();
    case Kind::list:
    case Kind::tuple:
      return !value.items().empty();
    case Kind::dict:
      return !value.as<DictObject>().entries.empty();
    case Kind::view:
      return truth(value.as<ViewObject>().dict);
    case Kind::range:
      return value.as<RangeObject>().size() > 0;
    default:
      return true;
  }
}

Result<bool> equal(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return equal_numbers(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::none:
      return true;
    case Kind::undefined:
      return true;
    case Kind::function:
      return a.function_id() == b.function_id();
    case Kind::string:
      if (a.text().size() != b.text().size()) return false;
      CAIRN_TRY(runtime.work(a.text().size()));
      return a.text() == b.text();
    case Kind::list:
    case Kind::tuple:
      return equal_items(runtime, a.items(), b.items());
    case Kind::dict:
      return equal_dicts(runtime, a.as<DictObject>(), b.as<DictObject>());
    case Kind::range: {
      const RangeObject& x = a.as<RangeObject>();
      const RangeObject& y = b.as<RangeObject>();
      if (x.size() != y.size()) return false;
      return x.size() == 0 || (x.start == y.start && (x.size() == 1 || x.step == y.step));
    }
    default:
      return a.pointer() == b.pointer();
  }
}

Result<int> compare(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.is(Kind::string) && b.is(Kind::string)) {
    CAIRN_TRY(runtime.work(std::min(a.text().size(), b.text().size())));
    return a.text().compare(b.text());  // UTF-8 keeps the order of code points.
  }
  if (!a.is_sequence() || a.kind() != b.kind()) return no_operator(Operation::less, a, b);
  const size_t common = std::min(a.items().size(), b.items().size());
  CAIRN_TRY(runtime.work(common * kElementWork));
  for (size_t i = 0; i < common; ++i) {
    CAIRN_TRY(const bool same, equal(runtime, a.items()[i], b.items()[i]));
    if (!same) return compare(runtime, a.items()[i], b.items()[i]);
  }
  return int(a.items().size() > b.items().size()) - int(a.items().size() < b.items().size());
}

Result<bool> contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is(Kind::string)) {
    if (!item.is(Kind::string)) return wrong_type("'in' a string", "a string", item);
    CAIRN_TRY(runtime.work(container.text().size() * kSearchWork));
    return find_bytes(container.text(), item.text()) != std::string_view::npos;
  }
  const bool is_keys = container.is(Kind::view) && container.as<ViewObject>().which == ViewOf::keys;
  if (container.is(Kind::dict) || is_keys) {
    const Value& dict = is_keys ? container.as<ViewObject>().dict : container;
    if (!is_key(item)) {
      if (!is_unhashable(item)) return false;
      return wrong_type("'in' a dict", "a value that can be a key", item);
    }
    CAIRN_TRY(const Value* const found, runtime.find(dict.as<DictObject>(), item));
    return found != nullptr;
  }
  CAIRN_TRY(Iterator walk, Iterator::over(container));
  while (true) {
    Value element;
    CAIRN_TRY(const bool more, walk.next(runtime, element));
    if (!more) return false;
    CAIRN_TRY(runtime.work(kElementWork));
    CAIRN_TRY(const bool same, equal(runtime, element, item));
    if (same) return true;
  }
}

Result<bool> comparison(Runtime& runtime, Operation operation, const Value& a, const Value& b) {
  if (operation == Operation::equal) return equal(runtime, a, b);
  if (operation == Operation::not_equal) {
    CAIRN_TRY(const bool same, equal(runtime, a, b));
    return !same;
  }
  if (operation == Operation::in || operation == Operation::not_in) {
    CAIRN_TRY(const bool found, contains(runtime, b, a));
    return found == (operation == Operation::in);
  }
  const bool is_ordered = (a.is_number() && b.is_number()) ||
                          (a.is(Kind::string) && b.is(Kind::string)) ||
                          (a.is_sequence() && a.kind() == b.kind());
  if (!is_ordered) return no_operator(operation, a, b);
  if (a.is_number() && (std::isnan(a.as_real()) || std::isnan(b.as_real()))) return false;
  CAIRN_TRY(const int order, compare(runtime, a, b));
  switch (operation) {
    case Operation::less:
      return order < 0;
    case Operation::less_equal:
      return order <= 0;
    case Operation::greater:
      return order > 0;
    default:
      return order >= 0;
  }
}

Result<Value> arithmetic(Runtime& runtime, Operation operation, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    auto result = a.is_whole() && b.is_whole()
                      ? integer_arithmetic(operation, a.as_integer(), b.as_integer())
                      : real_arithmetic(operation, a.as_real(), b.as_real());
    if (result) result->set_users(a.is_users() || b.is_users());
    return result;
  }
  if (operation == Operation::modulo && a.is(Kind::string)) return percent_format(runtime, a, b);
  if (operation == Operation::add) {
    const bool fits =
        (a.is(Kind::string) && b.is(Kind::string)) || (a.is_sequence() && a.kind() == b.kind());
    if (fits) return joined(runtime, a, b);
  }
  if (operation == Operation::multiply) {
    if (can_repeat(a) && b.is_whole()) return repeated(runtime, a, b.as_integer());
    if (can_repeat(b) && a.is_whole()) return repeated(runtime, b, a.as_integer());
  }
  return no_operator(operation, a, b);
}

Result<Value> negated(const Value& value, bool minus) {
  if (value.is(Kind::undefined)) return undefined_error(value);
  if (!value.is_number()) return wrong_type(minus ? "'-'" : "'+'", "a number", value);
  Value result;
  if (value.is(Kind::real)) {
    result = Value::real(minus ? -value.as_real() : value.as_real());
  } else {
    if (minus && value.as_integer() == INT64_MIN) {
      return overflow(Operation::subtract, 0, value.as_integer());
    }
    result = Value::integer(minus ? -value.as_integer() : value.as_integer());
  }
  result.set_users(value.is_users());
  return result;
}

Result<int64_t> length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return int64_t(value.as<StringObject>().character_count);
    case Kind::list:
    case Kind::tuple:
      return int64_t(value.items().size());
    case Kind::dict:
      return int64_t(value.as<DictObject>().entries.size());
    case Kind::view:
      return length_of(value.as<ViewObject>().dict);
    case Kind::range:
      return int64_t(value.as<RangeObject>().size());
    case Kind::loop:
      return int64_t(value.as<LoopObject>().length);
    default:
      return wrong_type("a length", "a value that has one", value);
  }
}

Error undefined_error(const Value& value) {
  const std::string name = value.pointer() == nullptr
                               ? std::string("a value")
                               : std::string(value.as<StringObject>().text.bytes().substr(0, 100));
  switch (value.why_missing()) {
    case Missing::variable:
      return fail(kRunFailed, "'{}' is undefined", name);
    case Missing::argument:
      return fail(kRunFailed, "parameter '{}' was not provided", name);
    case Missing::attribute:
      return fail(kRunFailed, "'{} object' has no attribute '{}'", name_of(value.missing_of()),
                  name);
    case Missing::element:
      return fail(kRunFailed, "{} object has no element {}", name_of(value.missing_of()), name);
    case Missing::unsafe:
      return fail(kRunFailed, "access to attribute '{}' of '{}' object is unsafe", name,
                  name_of(value.missing_of()));
    default:
      return fail(kRunFailed, "{} is undefined", name);
  }
}

Error wrong_type(std::string_view what, std::string_view expected, const Value& found) {
  if (found.is(Kind::undefined)) {
    Error error = undefined_error(found);
    return fail(kRunFailed, "{}: expected {}, found nothing: {}", what, expected, error.message);
  }
  return fail(kRunFailed, "{}: expected {}, found {}", what, expected, name_of(found.kind()));
}

Result<int64_t> integer_argument(std::string_view what, const Value& value) {
  if (!value.is_whole()) return wrong_type(what, "an integer", value);
  return value.as_integer();
}

MarkedText escaped(const MarkedText& text) {
  MarkedText out;
  OriginWalk origin(text);
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string_view entity;
    switch (text.bytes()[i]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      case '"':
        entity = "&#34;";
        break;
      default:
        continue;
    }
    out.append(text, from, i);
    out.append(entity, origin.is_trusted_at(i));
    from = i + 1;
  }
  out.append(text, from, text.size());
  return out;
}

}  // namespace cairn::jinja
