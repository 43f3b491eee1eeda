// The tree of a template. Parsed once, then only read: any thread may render from it.
// Names are numbers into Tree::names; what is constant was made at parse time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jinja/values/value.h"

namespace cairn::jinja {

struct Place {
  uint32_t line = 1;
  uint32_t column = 1;  // In characters, from 1.
};

using Name = uint32_t;

enum class Operation : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

enum class ExpressionKind : uint8_t {
  constant,
  name,
  list,
  tuple,
  dict,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
  logical_not,
  negate,
  plus,
  logical_and,
  logical_or,
  conditional,
  binary,
  compare,
  concatenate,
};

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct CallArguments {
  std::vector<ExpressionPointer> positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
  ExpressionPointer star;         // *expression
  ExpressionPointer double_star;  // **expression
};

// `parts` by kind: attribute, filter, test, call, negations: the operand (filter: null where a
// block is filtered). item: object, index. slice: start, stop, step (null where left out).
// conditional: condition, value, other (may be null). dict: key, value, key, value, …
// compare: operands; operations[i] stands between parts[i] and parts[i + 1].
struct Expression {
  ExpressionKind kind = ExpressionKind::constant;
  Operation operation = Operation::add;
  bool is_soft = false;  // An unknown filter or test here is an error only when it is reached.
  uint16_t height = 1;   // Of the tree below, itself included.
  Place place;
  Name name = 0;
  uint32_t table_index = 0;  // Of a filter or test that is known.
  Value constant;            // The value; or the name of an attribute, filter or test.
  std::vector<ExpressionPointer> parts;
  std::vector<Operation> operations;
  std::unique_ptr<CallArguments> arguments;
};

enum class StatementKind : uint8_t {
  text,
  print,
  if_,
  for_,
  set,
  set_block,
  with,
  macro,
  call_block,
  filter_block,
  generation,
  break_,
  continue_,
};

enum class TargetKind : uint8_t { name, attribute, tuple };

struct Target {
  TargetKind kind = TargetKind::name;
  Name name = 0;
  std::string attribute;
  std::vector<Target> parts;
  Place place;
};

struct Statement;
using Block = std::vector<std::unique_ptr<Statement>>;

struct Branch {
  ExpressionPointer condition;  // Null: else.
  Block body;
};

// A macro or the body of a call block.
struct MacroShape {
  std::string name;
  std::vector<Name> parameters;
  std::vector<ExpressionPointer> defaults;  // For the last parameters.
  Block body;
  Place place;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
};

struct Statement {
  StatementKind kind = StatementKind::text;
  Place place;
  Value text;
  Target target;
  std::vector<Target> targets;                 // with
  std::vector<ExpressionPointer> expressions;  // print; set, for: one; with: one for each target
  ExpressionPointer condition;                 // for … if
  bool is_recursive = false;
  bool uses_loop = false;  // for: its body speaks of `loop`.
  std::vector<Branch> branches;
  Block body;
  Block else_body;
  std::unique_ptr<MacroShape> macro;
};

struct Tree {
  Block body;
  std::vector<std::string> names;
  std::vector<Value> name_values;  // The same as strings, for messages.
  Name loop_name = 0;
  Name caller_name = 0;
  Name varargs_name = 0;
  Name kwargs_name = 0;
};

}  // namespace cairn::jinja
