// Binding of arguments to parameters.
#include "jinja/builtins/arguments.h"

#include <algorithm>

#include "jinja/operations.h"

namespace cairn::jinja {

Result<std::vector<Value>> bind(std::string_view function, std::string_view parameters,
                                const Arguments& arguments) {
  std::vector<Value> bound;
  std::vector<bool> was_named(arguments.named.size(), false);
  for (size_t at = 0; at < parameters.size();) {
    const size_t end = std::min(parameters.find(' ', at), parameters.size());
    std::string_view name = parameters.substr(at, end - at);
    const bool is_optional = name.back() == '=';
    if (is_optional) name.remove_suffix(1);
    Value value;
    const bool is_positional = bound.size() < arguments.positional.size();
    if (is_positional) value = arguments.positional[bound.size()];
    for (size_t i = 0; i < arguments.named.size(); ++i) {
      if (arguments.named[i].first != name) continue;
      if (is_positional) {
        return fail(kRunFailed, "{}: expected argument '{}' once, found it twice", function, name);
      }
      value = arguments.named[i].second;
      was_named[i] = true;
    }
    if (value.is(Kind::absent) && !is_optional) {
      return fail(kRunFailed, "{}: expected argument '{}', found none", function, name);
    }
    bound.push_back(std::move(value));
    at = end + 1;
  }
  if (arguments.positional.size() > bound.size()) {
    return fail(kRunFailed, "{}: expected at most {} arguments, found {}", function, bound.size(),
                arguments.positional.size());
  }
  for (size_t i = 0; i < was_named.size(); ++i) {
    if (!was_named[i]) {
      return fail(kRunFailed, "{}: expected known arguments, found '{}'", function,
                  arguments.named[i].first.substr(0, 60));
    }
  }
  return bound;
}

Result<Value> invoke(Runtime& runtime, const Callable& callable, const Value& subject,
                     const Arguments& arguments) {
  CAIRN_TRY(runtime.work(arguments.positional.size() * kArgumentWork +
                         arguments.named.size() * 2 * kArgumentWork));
  if (callable.free_call != nullptr) return callable.free_call(runtime, subject, arguments);
  CAIRN_TRY(const std::vector<Value> bound, bind(callable.name, callable.parameters, arguments));
  return callable.call(runtime, subject, bound);
}

Result<int64_t> integer_or(const Value& argument, int64_t fallback, std::string_view what) {
  if (argument.is(Kind::absent)) return fallback;
  return integer_argument(what, argument);
}

bool truth_or(const Value& argument, bool fallback) {
  return argument.is(Kind::absent) ? fallback : truth(argument);
}

Result<std::string_view> text_of(const Value& argument, std::string_view what) {
  if (argument.is(Kind::string)) return argument.text();
  return wrong_type(what, "a string", argument);
}

}  // namespace cairn::jinja
