// Expressions.
#include "jinja/builtins/filters.h"
#include "jinja/builtins/predicates.h"
#include "jinja/machine.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {

Result<Value> Machine::evaluate(const Expression& node) {
  CAIRN_TRY(at(node.place, runtime_.step()));
  if (node.kind == ExpressionKind::constant) return node.constant;
  if (node.kind == ExpressionKind::name) return evaluate_name(node);
  if (++native_depth_ > kNativeDepthMax) {
    return located(node.place, fail(kOverBudget,
                                    "the template's depth: expected at most {} "
                                    "levels, found more",
                                    kNativeDepthMax));
  }
  auto value = evaluate_kind(node);
  --native_depth_;
  return value;
}

Result<Value> Machine::evaluate_kind(const Expression& node) {
  switch (node.kind) {
    case ExpressionKind::list:
    case ExpressionKind::tuple:
      return evaluate_items(node);
    case ExpressionKind::dict:
      return evaluate_dict(node);
    case ExpressionKind::attribute: {
      CAIRN_TRY(const Value object, evaluate(*node.parts[0]));
      return at(node.place, attribute_of(runtime_, object, node.constant));
    }
    case ExpressionKind::item:
      return evaluate_item(node);
    case ExpressionKind::slice:
      return located(node.place, fail(kRunFailed, "an index: expected one slice, found several"));
    case ExpressionKind::call:
      return evaluate_call(node, {});
    case ExpressionKind::filter:
      return evaluate_filter(node);
    case ExpressionKind::test:
      return evaluate_test(node);
    case ExpressionKind::logical_not: {
      CAIRN_TRY(const Value operand, evaluate(*node.parts[0]));
      return Value::boolean(!truth(operand));
    }
    case ExpressionKind::negate:
    case ExpressionKind::plus: {
      CAIRN_TRY(const Value operand, evaluate(*node.parts[0]));
      return at(node.place, negated(operand, node.kind == ExpressionKind::negate));
    }
    case ExpressionKind::logical_and:
    case ExpressionKind::logical_or: {
      CAIRN_TRY(Value left, evaluate(*node.parts[0]));
      if (truth(left) == (node.kind == ExpressionKind::logical_or)) return left;
      return evaluate(*node.parts[1]);
    }
    case ExpressionKind::conditional:
      return evaluate_conditional(node);
    case ExpressionKind::binary:
      return evaluate_binary(node);
    case ExpressionKind::compare:
      return evaluate_comparison(node);
    case ExpressionKind::concatenate:
      return evaluate_concatenation(node);
    default:
      return node.constant;
  }
}

Result<Value> Machine::evaluate_name(const Expression& node) {
  CAIRN_TRY(const Value* const value, at(node.place, find(node.name)));
  if (value != nullptr) return *value;
  return Value::undefined(Missing::variable, Kind::absent, tree_.name_values[node.name].pointer());
}

Result<Value> Machine::evaluate_items(const Expression& node) {
  std::vector<Value> items;
  items.reserve(node.parts.size());
  for (const ExpressionPointer& part : node.parts) {
    CAIRN_TRY(Value item, evaluate(*part));
    items.push_back(std::move(item));
  }
  const Kind kind = node.kind == ExpressionKind::list ? Kind::list : Kind::tuple;
  return at(node.place, runtime_.list(std::move(items), kind));
}

Result<Value> Machine::evaluate_dict(const Expression& node) {
  std::vector<Entry> entries;
  entries.reserve(node.parts.size() / 2);
  for (size_t i = 0; i < node.parts.size(); i += 2) {
    CAIRN_TRY(Value key, evaluate(*node.parts[i]));
    CAIRN_TRY(Value value, evaluate(*node.parts[i + 1]));
    if (!is_key(key)) {
      return located(node.parts[i]->place, wrong_type("a dict", "a value that can be a key", key));
    }
    entries.emplace_back(std::move(key), std::move(value));
  }
  return at(node.place, runtime_.dict(std::move(entries)));
}

Result<Value> Machine::evaluate_item(const Expression& node) {
  CAIRN_TRY(const Value object, evaluate(*node.parts[0]));
  const Expression& index = *node.parts[1];
  if (index.kind != ExpressionKind::slice) {
    CAIRN_TRY(const Value key, evaluate(index));
    return at(node.place, item_of(runtime_, object, key));
  }
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    bounds[i] = Value::none();
    if (index.parts[i] != nullptr) {
      CAIRN_TRY(bounds[i], evaluate(*index.parts[i]));
    }
  }
  return at(node.place, slice_of(runtime_, object, bounds[0], bounds[1], bounds[2]));
}

Result<Value> Machine::evaluate_filter(const Expression& node) {
  Value subject = block_subject_;
  if (node.parts[0] != nullptr) {
    CAIRN_TRY(subject, evaluate(*node.parts[0]));
  }
  if (node.table_index == kUnknownFunction) {
    return located(node.place, fail(kRunFailed, "expected a known filter, found '{}'",
                                    node.constant.text().substr(0, 60)));
  }
  CAIRN_TRY(const Arguments arguments, evaluate_arguments(node.arguments.get(), node.place));
  return at(node.place, call_filter(runtime_, node.table_index, subject, arguments));
}

Result<Value> Machine::evaluate_test(const Expression& node) {
  CAIRN_TRY(const Value subject, evaluate(*node.parts[0]));
  if (node.table_index == kUnknownFunction) {
    return located(node.place, fail(kRunFailed, "expected a known test, found '{}'",
                                    node.constant.text().substr(0, 60)));
  }
  CAIRN_TRY(const Arguments arguments, evaluate_arguments(node.arguments.get(), node.place));
  CAIRN_TRY(const bool answer,
            at(node.place, call_test(runtime_, node.table_index, subject, arguments)));
  return Value::boolean(answer);
}

Result<Value> Machine::evaluate_comparison(const Expression& node) {
  CAIRN_TRY(Value left, evaluate(*node.parts[0]));
  for (size_t i = 0; i < node.operations.size(); ++i) {
    CAIRN_TRY(Value right, evaluate(*node.parts[i + 1]));
    CAIRN_TRY(const bool holds,
              at(node.place, comparison(runtime_, node.operations[i], left, right)));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Value> Machine::evaluate_binary(const Expression& node) {
  CAIRN_TRY(const Value left, evaluate(*node.parts[0]));
  CAIRN_TRY(const Value right, evaluate(*node.parts[1]));
  return at(node.place, arithmetic(runtime_, node.operation, left, right));
}

Result<Value> Machine::evaluate_concatenation(const Expression& node) {
  std::vector<Value> texts;
  size_t size = 0;
  for (const ExpressionPointer& part : node.parts) {
    CAIRN_TRY(const Value value, evaluate(*part));
    CAIRN_TRY(Value text, at(node.place, to_string(runtime_, value)));
    size += text.text().size();
    CAIRN_TRY(at(node.place, runtime_.check_string(size)));
    texts.push_back(std::move(text));
  }
  CAIRN_TRY(at(node.place, runtime_.prepare_string(size)));
  MarkedText joined;
  joined.reserve(size);
  for (const Value& text : texts) joined.append(text.marked());
  return at(node.place, runtime_.string(std::move(joined)));
}

Result<Value> Machine::evaluate_conditional(const Expression& node) {
  CAIRN_TRY(const Value condition, evaluate(*node.parts[0]));
  if (truth(condition)) return evaluate(*node.parts[1]);
  if (node.parts[2] != nullptr) return evaluate(*node.parts[2]);
  return Value::undefined(Missing::other);
}

}  // namespace cairn::jinja
