// Each test answers for any value; only the ones that compare can fail.
#include "jinja/builtins/predicates.h"

#include <cmath>

#include "jinja/builtins/filters.h"
#include "jinja/builtins/methods.h"
#include "jinja/operations.h"
#include "jinja/values/objects.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

using Args = std::span<const Value>;
using Answer = Result<bool> (*)(Runtime&, const Value&, Args);

struct Predicate {
  std::string_view name;
  std::string_view parameters;
  Answer answer;
};

template <Kind... kinds>
Result<bool> is_kind(Runtime&, const Value& value, Args) {
  return (value.is(kinds) || ...);
}

Result<bool> is_defined(Runtime&, const Value& value, Args) {
  return !value.is(Kind::undefined);
}

template <bool wanted>
Result<bool> is_boolean(Runtime&, const Value& value, Args) {
  return value.is(Kind::boolean) && value.as_boolean() == wanted;
}

Result<bool> is_sequence(Runtime&, const Value& value, Args) {
  return value.is_sequence() || value.is(Kind::string) || value.is(Kind::dict) ||
         value.is(Kind::range) || value.is(Kind::undefined);
}

Result<bool> is_iterable(Runtime&, const Value& value, Args) {
  return value.is(Kind::loop) || bool(Iterator::over(value));
}

Result<bool> is_callable(Runtime&, const Value& value, Args) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::macro:
    case Kind::function:
    case Kind::method:
    case Kind::loop:
    case Kind::joiner:
      return true;
    default:
      return false;
  }
}

template <int remainder>
Result<bool> leaves(Runtime& runtime, const Value& value, Args) {
  CAIRN_TRY(const Value rest, arithmetic(runtime, Operation::modulo, value, Value::integer(2)));
  return equal(runtime, rest, Value::integer(remainder));
}

Result<bool> is_divisible(Runtime& runtime, const Value& value, Args args) {
  CAIRN_TRY(const Value rest, arithmetic(runtime, Operation::modulo, value, args[0]));
  return equal(runtime, rest, Value::integer(0));
}

template <Operation operation>
Result<bool> compares(Runtime& runtime, const Value& value, Args args) {
  return comparison(runtime, operation, value, args[0]);
}

Result<bool> is_same(Runtime& runtime, const Value& value, Args args) {
  if (value.kind() != args[0].kind()) return false;
  if (value.pointer() != nullptr) return value.pointer() == args[0].pointer();
  return equal(runtime, value, args[0]);
}

Result<bool> is_escaped(Runtime&, const Value& value, Args) {
  return value.is(Kind::string) && value.is_markup();
}

template <bool upper>
Result<bool> has_case(Runtime& runtime, const Value& value, Args) {
  CAIRN_TRY(const Value text, to_string(runtime, value));
  const auto method = find_method(Kind::string, upper ? "isupper" : "islower");
  CHECK(method.has_value());
  CAIRN_TRY(const Value answer, call_method(runtime, *method, text, {}));
  return answer.as_boolean();
}

template <auto look_up>
Result<bool> is_known(Runtime&, const Value& value, Args) {
  return value.is(Kind::string) && look_up(value.text()).has_value();
}

constexpr Predicate kPredicates[] = {
    {"boolean", "", is_kind<Kind::boolean>},
    {"callable", "", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisible},
    {"eq", "other", compares<Operation::equal>},
    {"equalto", "other", compares<Operation::equal>},
    {"==", "other", compares<Operation::equal>},
    {"escaped", "", is_escaped},
    {"even", "", leaves<0>},
    {"false", "", is_boolean<false>},
    {"filter", "", is_known<find_filter>},
    {"float", "", is_kind<Kind::real>},
    {"ge", "other", compares<Operation::greater_equal>},
    {">=", "other", compares<Operation::greater_equal>},
    {"gt", "other", compares<Operation::greater>},
    {"greaterthan", "other", compares<Operation::greater>},
    {">", "other", compares<Operation::greater>},
    {"in", "seq", compares<Operation::in>},
    {"integer", "", is_kind<Kind::integer>},
    {"iterable", "", is_iterable},
    {"le", "other", compares<Operation::less_equal>},
    {"<=", "other", compares<Operation::less_equal>},
    {"lower", "", has_case<false>},
    {"lt", "other", compares<Operation::less>},
    {"lessthan", "other", compares<Operation::less>},
    {"<", "other", compares<Operation::less>},
    {"mapping", "", is_kind<Kind::dict>},
    {"ne", "other", compares<Operation::not_equal>},
    {"!=", "other", compares<Operation::not_equal>},
    {"none", "", is_kind<Kind::none>},
    {"number", "", is_kind<Kind::boolean, Kind::integer, Kind::real>},
    {"odd", "", leaves<1>},
    {"sameas", "other", is_same},
    {"sequence", "", is_sequence},
    {"string", "", is_kind<Kind::string>},
    {"test", "", is_known<find_test>},
    {"true", "", is_boolean<true>},
    {"undefined", "", is_kind<Kind::undefined>},
    {"upper", "", has_case<true>},
};

}  // namespace

std::optional<uint32_t> find_test(std::string_view name) {
  for (uint32_t index = 0; index < std::size(kPredicates); ++index) {
    if (kPredicates[index].name == name) return index;
  }
  return std::nullopt;
}

Result<bool> call_test(Runtime& runtime, uint32_t index, const Value& subject,
                       const Arguments& arguments) {
  const Predicate& test = kPredicates[index];
  CAIRN_TRY(runtime.work((arguments.positional.size() + arguments.named.size()) * kArgumentWork));
  CAIRN_TRY(const std::vector<Value> bound, bind(test.name, test.parameters, arguments));
  return test.answer(runtime, subject, bound);
}

}  // namespace cairn::jinja
