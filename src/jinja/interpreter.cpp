// Statements: blocks, branches, loops, assignments and output.
#include "jinja/interpreter.h"

#include <algorithm>

#include "jinja/builtins/functions.h"
#include "jinja/machine.h"
#include "jinja/values/text_form.h"

namespace cairn::jinja {

struct Machine::Walk {
  const Statement& statement;
  Iterator values;
  Value outer;           // The scope around the loop.
  Value iteration = {};  // The scope of one round.
  Value loop = {};
  bool is_filtered = false;  // The condition was asked already.
};

Error located(Place place, Error error) {
  if (error.message.starts_with("template line ")) return error;
  return fail(error.code, "template line {}, column {}: {}", place.line, place.column,
              error.message);
}

namespace {

// Walking over a scope, and over a variable in it.
constexpr size_t kScopeWork = 16;
constexpr size_t kVariableWork = 2;
// Giving a name of the template its value.
constexpr size_t kNameWork = 64;

std::vector<const Variable*> by_name(std::span<const Variable> variables) {
  std::vector<const Variable*> sorted;
  for (const Variable& variable : variables) sorted.push_back(&variable);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Variable* a, const Variable* b) { return a->first < b->first; });
  return sorted;
}

}  // namespace

// Of variables that are given twice the last one counts.
Machine::Machine(const Tree& tree, std::span<const Variable> variables,
                 std::optional<CivilTime> clock, WorkBudget& budget)
    : tree_(tree), runtime_(clock, budget), context_(tree.names.size()) {
  const std::vector<const Variable*> given = by_name(variables);
  for (size_t name = 0; name < tree.names.size(); ++name) {
    if (const auto id = find_function(tree.names[name])) context_[name] = Value::function(*id);
    const auto after = std::upper_bound(given.begin(), given.end(), tree.names[name],
                                        [](const std::string& wanted, const Variable* variable) {
                                          return wanted < variable->first;
                                        });
    if (after == given.begin() || (*(after - 1))->first != tree.names[name]) continue;
    context_[name] = (*(after - 1))->second;
  }
}

Result<MarkedText> Machine::run() {
  CAIRN_TRY(runtime_.work(tree_.names.size() * kNameWork));
  MarkedText out;
  out_ = &out;
  CAIRN_TRY(scope_, new_scope({}));
  CAIRN_TRY(run_block(tree_.body));
  return out;
}

Result<Value> Machine::new_scope(const Value& parent) {
  auto* scope = new Scope(runtime_.heap());
  CAIRN_TRY(Value handle, runtime_.heap().adopt(Kind::absent, scope, sizeof(Scope)));
  scope->parent = parent;
  return handle;
}

Status Machine::set(Name name, Value value) {
  auto& variables = scope().variables;
  CAIRN_TRY(runtime_.work(variables.size() * kVariableWork));
  for (auto& [known, old] : variables) {
    if (known != name) continue;
    old = std::move(value);
    return Ok{};
  }
  variables.emplace_back(name, std::move(value));
  return Ok{};
}

Result<const Value*> Machine::find(Name name) {
  for (const Value* at = &scope_; at->pointer() != nullptr; at = &at->as<Scope>().parent) {
    const auto& variables = at->as<Scope>().variables;
    size_t walked = 0;
    while (walked < variables.size() && variables[walked].first != name) ++walked;
    CAIRN_TRY(runtime_.work(kScopeWork + walked * kVariableWork));
    if (walked < variables.size()) return &variables[walked].second;
  }
  return context_[name].is(Kind::absent) ? nullptr : &context_[name];
}

Status Machine::emit(const Value& value, Place place) {
  const size_t before = out_->size();
  if (value.is(Kind::string)) {
    if (value.text().size() > kOutputBytesMax - before) {
      return located(place, fail(kOverBudget, "the output: expected at most {} bytes, found {}",
                                 kOutputBytesMax, before + value.text().size()));
    }
    CAIRN_TRY(at(place, runtime_.work(value.text().size())));
    CAIRN_TRY(at(place, runtime_.heap().take(value.text().size())));
    out_->append(value.marked());
    return Ok{};
  }
  CAIRN_TRY(const Value text, at(place, to_string(runtime_, value)));
  return emit(text, place);
}

Result<Value> Machine::capture(const Block& body, Flow& flow) {
  MarkedText text;
  MarkedText* const outside = std::exchange(out_, &text);
  CAIRN_TRY(flow, run_block(body));
  out_ = outside;
  runtime_.heap().refund(text.size());
  return runtime_.string(std::move(text));
}

Result<Flow> Machine::run_block(const Block& block) {
  if (++native_depth_ > kNativeDepthMax) {
    return fail(kOverBudget, "the template's depth: expected at most {} levels, found more",
                kNativeDepthMax);
  }
  for (const auto& statement : block) {
    CAIRN_TRY(at(statement->place, runtime_.step()));
    CAIRN_TRY(const Flow flow, run_statement(*statement));
    if (flow != Flow::onward) {
      --native_depth_;
      return flow;
    }
  }
  --native_depth_;
  return Flow::onward;
}

Result<Flow> Machine::run_statement(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::text:
      CAIRN_TRY(emit(statement.text, statement.place));
      break;
    case StatementKind::print:
      for (const ExpressionPointer& expression : statement.expressions) {
        CAIRN_TRY(const Value value, evaluate(*expression));
        CAIRN_TRY(emit(value, statement.place));
      }
      break;
    case StatementKind::set:
      CAIRN_TRY(run_set(statement));
      break;
    case StatementKind::macro: {
      CAIRN_TRY(Value macro, new_macro(*statement.macro, tree_.name_values[statement.target.name]));
      CAIRN_TRY(set(statement.target.name, std::move(macro)));
      break;
    }
    case StatementKind::if_:
      return run_if(statement);
    case StatementKind::for_: {
      CAIRN_TRY(const Value values, evaluate(*statement.expressions[0]));
      return run_for(statement, values, 0);
    }
    case StatementKind::with:
    case StatementKind::generation:
      return run_with(statement);
    case StatementKind::set_block:
    case StatementKind::filter_block:
      return run_captured(statement);
    case StatementKind::call_block:
      return run_call_block(statement);
    case StatementKind::break_:
      return Flow::break_;
    case StatementKind::continue_:
      return Flow::continue_;
  }
  return Flow::onward;
}

Result<Flow> Machine::run_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition != nullptr) {
      CAIRN_TRY(const Value condition, evaluate(*branch.condition));
      if (!truth(condition)) continue;
    }
    return run_block(branch.body);
  }
  return Flow::onward;
}

Status Machine::run_set(const Statement& statement) {
  CAIRN_TRY(const Value value, evaluate(*statement.expressions[0]));
  return assign(statement.target, value);
}

Result<Flow> Machine::run_with(const Statement& statement) {
  const Value outer = scope_;
  std::vector<Value> values;
  for (const ExpressionPointer& expression : statement.expressions) {
    CAIRN_TRY(Value value, evaluate(*expression));
    values.push_back(std::move(value));
  }
  CAIRN_TRY(scope_, new_scope(outer));
  for (size_t i = 0; i < values.size(); ++i) CAIRN_TRY(assign(statement.targets[i], values[i]));
  CAIRN_TRY(const Flow flow, run_block(statement.body));
  scope_ = outer;
  return flow;
}

// {% set x %}…{% endset %} and {% filter f %}…{% endfilter %}.
Result<Flow> Machine::run_captured(const Statement& statement) {
  const Value outer = scope_;
  CAIRN_TRY(scope_, new_scope(outer));
  Flow flow = Flow::onward;
  CAIRN_TRY(Value text, at(statement.place, capture(statement.body, flow)));
  if (flow == Flow::onward && statement.expressions[0] != nullptr) {
    const Value outer_subject = std::exchange(block_subject_, std::move(text));
    CAIRN_TRY(text, evaluate(*statement.expressions[0]));
    block_subject_ = outer_subject;
  }
  scope_ = outer;
  if (flow != Flow::onward) return flow;
  if (statement.kind == StatementKind::set_block) {
    CAIRN_TRY(assign(statement.target, text));
  } else {
    CAIRN_TRY(emit(text, statement.place));
  }
  return flow;
}

Result<Value> Machine::new_macro(const MacroShape& shape, const Value& name) {
  return runtime_.heap().adopt(Kind::macro,
                               new MacroObject(shape, name, tree_.name_values, scope_));
}

Result<Flow> Machine::run_call_block(const Statement& statement) {
  CAIRN_TRY(const Value caller, new_macro(*statement.macro, Value::none()));
  CAIRN_TRY(const Value text, evaluate_call(*statement.expressions[0], caller));
  CAIRN_TRY(emit(text, statement.place));
  return Flow::onward;
}

Status Machine::assign_attribute(const Target& target, const Value& value) {
  CAIRN_TRY(const Value* const object, at(target.place, find(target.name)));
  if (object == nullptr || !object->is(Kind::namespace_)) {
    return located(target.place,
                   fail(kRunFailed, "an assignment: expected a namespace before '.{}', found {}",
                        target.attribute, object == nullptr ? "nothing" : name_of(object->kind())));
  }
  if (target.attribute.starts_with('_')) {
    return located(target.place, fail(kRunFailed,
                                      "a namespace: expected names without '_' in "
                                      "front, found '{}'",
                                      target.attribute));
  }
  NamespaceObject& names = object->as<NamespaceObject>();
  CAIRN_TRY(at(target.place, runtime_.work(names.find_work(target.attribute))));
  names.set(target.attribute, value);
  return Ok{};
}

Status Machine::assign(const Target& target, const Value& value) {
  if (target.kind == TargetKind::name) return at(target.place, set(target.name, value));
  if (target.kind == TargetKind::attribute) return assign_attribute(target, value);
  CAIRN_TRY(const std::vector<Value> parts, at(target.place, items_of(runtime_, value)));
  if (parts.size() != target.parts.size()) {
    return located(target.place, fail(kRunFailed, "an assignment: expected {} values, found {}",
                                      target.parts.size(), parts.size()));
  }
  for (size_t i = 0; i < parts.size(); ++i) CAIRN_TRY(assign(target.parts[i], parts[i]));
  return Ok{};
}

// Whether `for … if` takes the element; asked in a scope of its own.
Result<bool> Machine::passes(const Statement& statement, const Value& element) {
  const Value outer = scope_;
  CAIRN_TRY(scope_, new_scope(outer));
  CAIRN_TRY(assign(statement.target, element));
  CAIRN_TRY(const Value answer, evaluate(*statement.condition));
  scope_ = outer;
  return truth(answer);
}

Result<bool> Machine::next_element(Walk& walk, Value& out) {
  while (true) {
    CAIRN_TRY(at(walk.statement.place, runtime_.step()));
    CAIRN_TRY(const bool more, at(walk.statement.place, walk.values.next(runtime_, out)));
    if (!more) {
      out = Value();
      return false;
    }
    if (walk.is_filtered || walk.statement.condition == nullptr) return true;
    CAIRN_TRY(const bool passed, passes(walk.statement, out));
    if (passed) return true;
  }
}

// A scope is used again for the next round, unless a macro has kept it.
Status Machine::enter_iteration(Walk& walk, const Value& element) {
  if (walk.iteration.pointer() == nullptr || walk.iteration.pointer()->is_shared()) {
    CAIRN_TRY(walk.iteration, new_scope(walk.outer));
  } else {
    walk.iteration.as<Scope>().variables.clear();
  }
  scope_ = walk.iteration;
  CAIRN_TRY(assign(walk.statement.target, element));
  return walk.statement.uses_loop ? set(tree_.loop_name, walk.loop) : Status(Ok{});
}

Result<Flow> Machine::run_else(const Statement& statement) {
  const Value outer = scope_;
  CAIRN_TRY(scope_, new_scope(outer));
  CAIRN_TRY(const Flow flow, run_block(statement.else_body));
  scope_ = outer;
  return flow;
}

// The variable `loop`. Its length must be known, so a condition is asked for all elements first.
Status Machine::make_loop(Walk& walk, int depth) {
  const Statement& statement = walk.statement;
  if (statement.condition != nullptr) {
    std::vector<Value> kept;
    Value element;
    while (true) {
      CAIRN_TRY(const bool more, next_element(walk, element));
      if (!more) break;
      CAIRN_TRY(runtime_.check_string(kept.size() * sizeof(Value)));
      kept.push_back(std::move(element));
    }
    CAIRN_TRY(const Value list, runtime_.list(std::move(kept)));
    CAIRN_TRY(walk.values, Iterator::over(list));
    walk.is_filtered = true;
  }
  auto* loop = new LoopObject(runtime_.heap());
  CAIRN_TRY(walk.loop, runtime_.heap().adopt(Kind::loop, loop, sizeof(LoopObject)));
  loop->length = walk.values.remaining();
  loop->depth = depth;
  loop->statement = statement.is_recursive ? &statement : nullptr;
  loop->parent = walk.outer;
  return Ok{};
}

Result<Flow> Machine::run_for(const Statement& statement, const Value& values, int depth) {
  CAIRN_TRY(Iterator first_walk, at(statement.place, Iterator::over(values)));
  Walk walk{statement, std::move(first_walk), scope_};
  LoopObject* loop = nullptr;
  if (statement.uses_loop) {
    CAIRN_TRY(at(statement.place, make_loop(walk, depth)));
    loop = &walk.loop.as<LoopObject>();
  }
  Value element;
  CAIRN_TRY(bool more, next_element(walk, element));
  Flow flow = Flow::onward;
  bool reached_end = false;  // Of the body, in some round: `else` is for loops that never did.
  while (more && flow != Flow::break_) {
    Value following;
    bool has_following = false;
    if (loop != nullptr) {
      CAIRN_TRY(has_following, next_element(walk, following));
      loop->next = following;
    }
    CAIRN_TRY(enter_iteration(walk, element));
    CAIRN_TRY(flow, run_block(statement.body));
    scope_ = walk.outer;
    reached_end = reached_end || flow == Flow::onward;
    if (loop != nullptr) {
      loop->previous = std::move(element);
      element = std::move(following);
      more = has_following;
      ++loop->index;
    } else if (flow != Flow::break_) {
      CAIRN_TRY(more, next_element(walk, element));
    }
  }
  return reached_end ? Result<Flow>(Flow::onward) : run_else(statement);
}

Result<MarkedText> render(const Tree& tree, std::span<const Variable> variables,
                          std::optional<CivilTime> clock) {
  WorkBudget budget;
  return render(tree, variables, clock, budget);
}

Result<MarkedText> render(const Tree& tree, std::span<const Variable> variables,
                          std::optional<CivilTime> clock, WorkBudget& budget) {
  return Machine(tree, variables, clock, budget).run();
}

}  // namespace cairn::jinja
