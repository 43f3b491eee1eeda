// The interpreter's state and its parts: statements (interpreter.cpp), expressions
// (evaluation.cpp) and calls (calls.cpp). Private to these. One render, one thread.
// Invariant: a function that changes scope_ or out_ restores it, unless an error ends the render.
#pragma once

#include <vector>

#include "jinja/builtins/arguments.h"
#include "jinja/interpreter.h"
#include "jinja/operations.h"
#include "jinja/values/objects.h"

namespace cairn::jinja {

// Variables of one stretch of a template. A Value of kind `absent` that points here is a handle.
struct Scope final : MutableObject {
  explicit Scope(Heap& heap) : MutableObject(heap) {}
  void clear() override {
    variables.clear();
    parent = Value();
  }
  Value parent;
  std::vector<std::pair<Name, Value>> variables;
};

enum class Flow : uint8_t { onward, break_, continue_ };

class Machine {
 public:
  Machine(const Tree& tree, std::span<const Variable> variables, std::optional<CivilTime> clock,
          WorkBudget& budget);

  Result<MarkedText> run();

 private:
  // Statements.
  Result<Flow> run_block(const Block& block);
  Result<Flow> run_statement(const Statement& statement);
  Result<Flow> run_if(const Statement& statement);
  Result<Flow> run_for(const Statement& statement, const Value& values, int depth);
  Result<Flow> run_else(const Statement& statement);
  Result<Flow> run_with(const Statement& statement);
  Result<Flow> run_captured(const Statement& statement);
  Result<Flow> run_call_block(const Statement& statement);
  Status run_set(const Statement& statement);
  Status emit(const Value& value, Place place);
  Status assign(const Target& target, const Value& value);
  Status assign_attribute(const Target& target, const Value& value);
  // Runs a body with its output put aside.
  Result<Value> capture(const Block& body, Flow& flow);

  Result<Value> new_macro(const MacroShape& shape, const Value& name);
  Result<Value> new_scope(const Value& parent);
  Scope& scope() { return scope_.as<Scope>(); }
  Status set(Name name, Value value);
  // Null where nothing has this name.
  Result<const Value*> find(Name name);

  // The elements of a `for`: those of the values that its condition lets through.
  struct Walk;
  Result<bool> next_element(Walk& walk, Value& out);
  Result<bool> passes(const Statement& statement, const Value& element);
  Status make_loop(Walk& walk, int depth);
  Status enter_iteration(Walk& walk, const Value& element);

  // Expressions.
  Result<Value> evaluate(const Expression& node);
  Result<Value> evaluate_kind(const Expression& node);
  Result<Value> evaluate_name(const Expression& node);
  Result<Value> evaluate_items(const Expression& node);
  Result<Value> evaluate_dict(const Expression& node);
  Result<Value> evaluate_item(const Expression& node);
  Result<Value> evaluate_filter(const Expression& node);
  Result<Value> evaluate_test(const Expression& node);
  Result<Value> evaluate_comparison(const Expression& node);
  Result<Value> evaluate_binary(const Expression& node);
  Result<Value> evaluate_concatenation(const Expression& node);
  Result<Value> evaluate_conditional(const Expression& node);

  // Calls. The caller, where not absent, is what a call block hands over.
  Result<Value> evaluate_call(const Expression& node, const Value& caller);
  Result<Arguments> evaluate_arguments(const CallArguments* arguments, Place place);
  Result<Value> call(const Value& callee, const Arguments& arguments);
  Result<Value> call_macro(const MacroObject& macro, const Arguments& arguments);
  Status bind_macro(const MacroShape& shape, const Arguments& arguments);
  Status bind_rest(const MacroShape& shape, const Arguments& arguments,
                   const std::vector<bool>& was_named);
  Result<Value> call_loop(const LoopObject& loop, const Arguments& arguments);
  bool is_parameter(const MacroShape& shape, std::string_view name) const;

  const Tree& tree_;
  Runtime runtime_;
  std::vector<Value> context_;  // By name: what the caller gave, and the functions.
  Value scope_;
  MarkedText* out_ = nullptr;
  Value block_subject_;  // What the first filter of a block works on.
  int native_depth_ = 0;
  int call_depth_ = 0;
};

// Adds the place, once, to an error that has none.
Error located(Place place, Error error);

template <class T>
Result<T> at(Place place, Result<T> result) {
  if (result) return result;
  return located(place, std::move(result).error());
}

}  // namespace cairn::jinja
