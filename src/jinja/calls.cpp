// Calls of functions, methods, macros and recursive loops.
#include <algorithm>

#include "jinja/builtins/functions.h"
#include "jinja/builtins/methods.h"
#include "jinja/machine.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {
namespace {

// A name out of a dict is copied; one that the template's text has is not longer than that.
Status check_argument_name(Runtime& runtime, std::string_view name) {
  constexpr size_t kNameBytesMax = 1000;
  if (name.size() <= kNameBytesMax) return runtime.work(name.size());
  return fail(kOverBudget, "'**': expected names of at most {} bytes, found {}", kNameBytesMax,
              name.size());
}

}  // namespace

Result<Arguments> Machine::evaluate_arguments(const CallArguments* given, Place place) {
  Arguments arguments;
  if (given == nullptr) return arguments;
  for (const ExpressionPointer& expression : given->positional) {
    CAIRN_TRY(Value value, evaluate(*expression));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, expression] : given->named) {
    CAIRN_TRY(Value value, evaluate(*expression));
    arguments.named.emplace_back(name, std::move(value));
  }
  if (given->star != nullptr) {
    CAIRN_TRY(const Value star, evaluate(*given->star));
    CAIRN_TRY(const std::vector<Value> items, at(place, items_of(runtime_, star)));
    arguments.positional.insert(arguments.positional.end(), items.begin(), items.end());
  }
  if (given->double_star == nullptr) return arguments;
  CAIRN_TRY(const Value names, evaluate(*given->double_star));
  if (!names.is(Kind::dict)) return located(place, wrong_type("'**'", "a dict", names));
  CAIRN_TRY(at(place, runtime_.work(names.as<DictObject>().entries.size() * kStepBytes)));
  if (names.as<DictObject>().entries.size() > 1000) {
    return located(place, fail(kOverBudget, "'**': expected at most 1000 names, found more"));
  }
  for (const auto& [key, value] : names.as<DictObject>().entries) {
    CAIRN_TRY(const std::string_view name, at(place, text_of(key, "'**'")));
    CAIRN_TRY(at(place, check_argument_name(runtime_, name)));
    arguments.named.emplace_back(std::string(name), value);
  }
  return arguments;
}

Result<Value> Machine::evaluate_call(const Expression& node, const Value& caller) {
  const Expression& callee = *node.parts[0];
  Value object;
  Value function;
  uint32_t method = kUnknownFunction;
  if (callee.kind == ExpressionKind::attribute) {
    // Straight to the method: most calls are such, and need no object in between.
    CAIRN_TRY(at(callee.place, runtime_.step()));
    CAIRN_TRY(object, evaluate(*callee.parts[0]));
    const auto found = find_method(object.kind(), callee.constant.text());
    if (found && method_is_safe(*found)) method = *found;
    if (method == kUnknownFunction) {
      CAIRN_TRY(function, at(callee.place, attribute_of(runtime_, object, callee.constant)));
    }
  } else {
    CAIRN_TRY(function, evaluate(callee));
  }
  CAIRN_TRY(Arguments arguments, evaluate_arguments(node.arguments.get(), node.place));
  if (!caller.is(Kind::absent)) arguments.named.emplace_back("caller", caller);
  if (method != kUnknownFunction) {
    return at(node.place, call_method(runtime_, method, object, arguments));
  }
  return at(node.place, call(function, arguments));
}

Result<Value> Machine::call(const Value& callee, const Arguments& arguments) {
  switch (callee.kind()) {
    case Kind::undefined:
      return undefined_error(callee);
    case Kind::function:
      return call_function(runtime_, callee.function_id(), arguments);
    case Kind::macro:
      return call_macro(callee.as<MacroObject>(), arguments);
    case Kind::loop:
      return call_loop(callee.as<LoopObject>(), arguments);
    case Kind::method: {
      const MethodObject& method = callee.as<MethodObject>();
      return call_method(runtime_, method.index, method.self, arguments);
    }
    case Kind::joiner: {
      JoinerObject& joiner = callee.as<JoinerObject>();
      if (std::exchange(joiner.is_used, true)) return joiner.separator;
      return runtime_.string({}, true);
    }
    default:
      return wrong_type("a call", "something that can be called", callee);
  }
}

bool Machine::is_parameter(const MacroShape& shape, std::string_view name) const {
  return std::any_of(shape.parameters.begin(), shape.parameters.end(),
                     [&](Name parameter) { return tree_.names[parameter] == name; });
}

// What is left after the parameters: caller, kwargs and varargs, for macros that speak of them.
Status Machine::bind_rest(const MacroShape& shape, const Arguments& arguments,
                          const std::vector<bool>& was_named) {
  std::vector<Entry> rest;
  Value caller;
  for (size_t i = 0; i < arguments.named.size(); ++i) {
    const auto& [name, value] = arguments.named[i];
    if (was_named[i]) continue;
    if (shape.uses_caller && name == "caller") {
      caller = value;
    } else if (shape.uses_kwargs) {
      CAIRN_TRY(Value key, runtime_.string(name, true));
      rest.emplace_back(std::move(key), value);
    } else {
      return fail(kRunFailed, "macro '{}': expected known arguments, found '{}'", shape.name,
                  name.substr(0, 60));
    }
  }
  if (shape.uses_caller && !is_parameter(shape, "caller")) {
    if (caller.is(Kind::absent)) {
      caller = Value::undefined(Missing::variable, Kind::absent,
                                tree_.name_values[tree_.caller_name].pointer());
    }
    CAIRN_TRY(set(tree_.caller_name, caller));
  }
  if (shape.uses_kwargs) {
    CAIRN_TRY(Value kwargs, runtime_.dict(std::move(rest)));
    CAIRN_TRY(set(tree_.kwargs_name, std::move(kwargs)));
  }
  const size_t taken = std::min(arguments.positional.size(), shape.parameters.size());
  if (shape.uses_varargs) {
    CAIRN_TRY(Value varargs, runtime_.tuple({arguments.positional.begin() + int64_t(taken),
                                             arguments.positional.end()}));
    CAIRN_TRY(set(tree_.varargs_name, std::move(varargs)));
  } else if (arguments.positional.size() > taken) {
    return fail(kRunFailed, "macro '{}': expected at most {} arguments, found {}", shape.name,
                taken, arguments.positional.size());
  }
  return Ok{};
}

Status Machine::bind_macro(const MacroShape& shape, const Arguments& arguments) {
  std::vector<bool> was_named(arguments.named.size(), false);
  std::vector<Value> given(shape.parameters.size());
  for (size_t i = 0; i < shape.parameters.size(); ++i) {
    const std::string& name = tree_.names[shape.parameters[i]];
    CAIRN_TRY(runtime_.work((arguments.named.size() + 1) * (8 + name.size() / 4)));
    if (i < arguments.positional.size()) given[i] = arguments.positional[i];
    for (size_t named = 0; named < arguments.named.size(); ++named) {
      if (arguments.named[named].first != name || i < arguments.positional.size()) continue;
      given[i] = arguments.named[named].second;
      was_named[named] = true;
    }
  }
  CAIRN_TRY(bind_rest(shape, arguments, was_named));
  const size_t first_default = shape.parameters.size() - shape.defaults.size();
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].is(Kind::absent) && i >= first_default) {
      CAIRN_TRY(given[i], evaluate(*shape.defaults[i - first_default]));
    } else if (given[i].is(Kind::absent)) {
      given[i] = Value::undefined(Missing::argument, Kind::absent,
                                  tree_.name_values[shape.parameters[i]].pointer());
    }
    CAIRN_TRY(set(shape.parameters[i], given[i]));
  }
  return Ok{};
}

Result<Value> Machine::call_macro(const MacroObject& macro, const Arguments& arguments) {
  if (++call_depth_ > kCallDepthMax) {
    return fail(kOverBudget, "calls in calls: expected at most {}, found more", kCallDepthMax);
  }
  const Value outer = scope_;
  CAIRN_TRY(scope_, new_scope(macro.scope));
  CAIRN_TRY(bind_macro(macro.shape, arguments));
  Flow flow = Flow::onward;
  CAIRN_TRY(Value text, capture(macro.shape.body, flow));
  scope_ = outer;
  --call_depth_;
  return text;
}

Result<Value> Machine::call_loop(const LoopObject& loop, const Arguments& arguments) {
  if (loop.statement == nullptr) {
    return fail(kRunFailed, "loop(…): expected a loop marked 'recursive', found another");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return fail(kRunFailed, "loop(…): expected one argument, found {}",
                arguments.positional.size() + arguments.named.size());
  }
  if (++call_depth_ > kCallDepthMax) {
    return fail(kOverBudget, "calls in calls: expected at most {}, found more", kCallDepthMax);
  }
  const Value outer = std::exchange(scope_, loop.parent);
  MarkedText text;
  MarkedText* const outside = std::exchange(out_, &text);
  const auto& statement = *static_cast<const Statement*>(loop.statement);
  CAIRN_TRY(run_for(statement, arguments.positional[0], loop.depth + 1));
  out_ = outside;
  runtime_.heap().refund(text.size());
  scope_ = outer;
  --call_depth_;
  return runtime_.string(std::move(text));
}

}  // namespace cairn::jinja
