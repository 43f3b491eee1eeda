// What follows a primary expression: subscripts, calls, filters and tests; and the targets of
// assignments. The other half of ExpressionParser.
#include <algorithm>

#include "jinja/builtins/filters.h"
#include "jinja/builtins/predicates.h"
#include "jinja/syntax/expression_parser.h"

namespace cairn::jinja {

Result<ExpressionPointer> ExpressionParser::parse_postfix(ExpressionPointer node) {
  while (true) {
    if (is_sign(".") || is_sign("[")) {
      CAIRN_TRY(node, parse_subscript(std::move(node)));
    } else if (is_sign("(")) {
      CAIRN_TRY(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPointer> ExpressionParser::parse_postfix_filters(ExpressionPointer node) {
  while (true) {
    if (is_sign("|")) {
      CAIRN_TRY(node, parse_filters(std::move(node), false));
    } else if (is_word("is")) {
      CAIRN_TRY(node, parse_test(std::move(node)));
    } else if (is_sign("(")) {
      CAIRN_TRY(node, parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPointer> ExpressionParser::parse_subscript(ExpressionPointer node) {
  const Place place = token().place;
  if (skip_sign(".")) {
    if (token().kind == TokenKind::integer) {
      ExpressionPointer index = make(ExpressionKind::constant, token().place);
      index->constant = Value::integer(token().integer);
      advance();
      return join(ExpressionKind::item, place, std::move(node), std::move(index));
    }
    ExpressionPointer attribute = make(ExpressionKind::attribute, place);
    CAIRN_TRY(const std::string name, expect_name());
    attribute->constant = plain_string(name, true);
    attribute->parts.push_back(std::move(node));
    return finish(std::move(attribute));
  }
  CAIRN_TRY(expect_sign("["));
  ExpressionPointer indices = make(ExpressionKind::tuple, place);
  while (!is_sign("]")) {
    if (!indices->parts.empty()) CAIRN_TRY(expect_sign(","));
    CAIRN_TRY(ExpressionPointer index, parse_subscribed());
    indices->parts.push_back(std::move(index));
  }
  CAIRN_TRY(expect_sign("]"));
  if (indices->parts.size() == 1) {
    return join(ExpressionKind::item, place, std::move(node), std::move(indices->parts.front()));
  }
  CAIRN_TRY(indices, finish(std::move(indices)));
  return join(ExpressionKind::item, place, std::move(node), std::move(indices));
}

Result<ExpressionPointer> ExpressionParser::parse_subscribed() {
  ExpressionPointer slice = make(ExpressionKind::slice, token().place);
  ExpressionPointer start;
  if (!is_sign(":")) {
    CAIRN_TRY(start, parse_expression());
    if (!is_sign(":")) return start;
  }
  advance();
  ExpressionPointer stop;
  ExpressionPointer step;
  if (!is_sign(":") && !is_sign("]") && !is_sign(",")) {
    CAIRN_TRY(stop, parse_expression());
  }
  if (skip_sign(":") && !is_sign("]") && !is_sign(",")) {
    CAIRN_TRY(step, parse_expression());
  }
  slice->parts.push_back(std::move(start));
  slice->parts.push_back(std::move(stop));
  slice->parts.push_back(std::move(step));
  return finish(std::move(slice));
}

Result<ExpressionPointer> ExpressionParser::parse_call(ExpressionPointer node) {
  ExpressionPointer call = make(ExpressionKind::call, token().place);
  CAIRN_TRY(call->arguments, parse_arguments());
  call->parts.push_back(std::move(node));
  return finish(std::move(call));
}

Status ExpressionParser::parse_argument(CallArguments& arguments) {
  const Place place = token().place;
  const auto misplaced = [&] {
    return syntax_error(place, "a call: expected positional, named, *, ** arguments in this order");
  };
  if (skip_sign("*")) {
    if (arguments.star != nullptr || arguments.double_star != nullptr) return misplaced();
    CAIRN_TRY(arguments.star, parse_expression());
    return Ok{};
  }
  if (skip_sign("**")) {
    if (arguments.double_star != nullptr) return misplaced();
    CAIRN_TRY(arguments.double_star, parse_expression());
    return Ok{};
  }
  const LexerToken& after = token_after();
  if (token().kind == TokenKind::name && after.kind == TokenKind::sign && after.text == "=") {
    if (arguments.double_star != nullptr) return misplaced();
    std::string name = token().text;
    for (const auto& [earlier, value] : arguments.named) {
      if (earlier == name)
        return syntax_error(place, "a call: expected '{}' once, found twice", name);
    }
    advance();
    advance();
    CAIRN_TRY(ExpressionPointer value, parse_expression());
    arguments.named.emplace_back(std::move(name), std::move(value));
    return Ok{};
  }
  if (arguments.star != nullptr || arguments.double_star != nullptr || !arguments.named.empty()) {
    return misplaced();
  }
  CAIRN_TRY(ExpressionPointer value, parse_expression());
  arguments.positional.push_back(std::move(value));
  return Ok{};
}

Result<std::unique_ptr<CallArguments>> ExpressionParser::parse_arguments() {
  CAIRN_TRY(expect_sign("("));
  auto arguments = std::make_unique<CallArguments>();
  bool needs_comma = false;
  while (!is_sign(")")) {
    if (needs_comma) {
      CAIRN_TRY(expect_sign(","));
      if (is_sign(")")) break;
    }
    CAIRN_TRY(parse_argument(*arguments));
    needs_comma = true;
  }
  advance();
  return arguments;
}

Result<std::string> ExpressionParser::parse_dotted_name() {
  CAIRN_TRY(std::string name, expect_name());
  while (skip_sign(".")) {
    CAIRN_TRY(const std::string part, expect_name());
    name += "." + part;
  }
  return name;
}

Result<ExpressionPointer> ExpressionParser::parse_filters(ExpressionPointer operand,
                                                          bool first_is_bare) {
  while (first_is_bare || skip_sign("|")) {
    first_is_bare = false;
    ExpressionPointer node = make(ExpressionKind::filter, token().place);
    CAIRN_TRY(const std::string name, parse_dotted_name());
    node->constant = plain_string(name, true);
    if (is_sign("(")) {
      CAIRN_TRY(node->arguments, parse_arguments());
    }
    node->parts.push_back(std::move(operand));
    if (const auto index = find_filter(name)) {
      node->table_index = *index;
    } else {
      node->table_index = kUnknownFunction;
      unknown_.push_back(node.get());
    }
    CAIRN_TRY(operand, finish(std::move(node)));
  }
  return operand;
}

Result<ExpressionPointer> ExpressionParser::parse_test(ExpressionPointer operand) {
  advance();
  const Place place = token().place;
  const bool is_negated = skip_word("not");
  ExpressionPointer node = make(ExpressionKind::test, token().place);
  CAIRN_TRY(const std::string name, parse_dotted_name());
  node->constant = plain_string(name, true);
  const TokenKind kind = token().kind;
  if (is_sign("(")) {
    CAIRN_TRY(node->arguments, parse_arguments());
  } else if ((kind == TokenKind::name && !is_word("else") && !is_word("or") && !is_word("and")) ||
             kind == TokenKind::string || kind == TokenKind::integer || kind == TokenKind::real ||
             is_sign("[") || is_sign("{")) {
    if (is_word("is")) return unexpected("no second 'is' after a test");
    CAIRN_TRY(ExpressionPointer argument, parse_primary());
    CAIRN_TRY(argument, parse_postfix(std::move(argument)));
    node->arguments = std::make_unique<CallArguments>();
    node->arguments->positional.push_back(std::move(argument));
  }
  node->parts.push_back(std::move(operand));
  if (const auto index = find_test(name)) {
    node->table_index = *index;
  } else {
    node->table_index = kUnknownFunction;
    unknown_.push_back(node.get());
  }
  CAIRN_TRY(node, finish(std::move(node)));
  if (!is_negated) return node;
  ExpressionPointer negation = make(ExpressionKind::logical_not, place);
  negation->parts.push_back(std::move(node));
  return finish(std::move(negation));
}

Status ExpressionParser::parse_target_part(Target& target, bool with_namespace) {
  target.place = token().place;
  if (skip_sign("(")) {
    CAIRN_TRY(enter());
    CAIRN_TRY(target, parse_target(with_namespace, {}));
    leave();
    return expect_sign(")");
  }
  CAIRN_TRY(const std::string name, expect_name());
  for (const std::string_view word : {"true", "True", "false", "False", "none", "None"}) {
    if (name == word) {
      return syntax_error(target.place, "expected a name to assign to, found '{}'", name);
    }
  }
  target.name = intern(name);
  if (!with_namespace || !skip_sign(".")) return Ok{};
  target.kind = TargetKind::attribute;
  CAIRN_TRY(target.attribute, expect_name());
  return Ok{};
}

Result<Target> ExpressionParser::parse_target(bool with_namespace, std::string_view end_word) {
  Target tuple;
  tuple.kind = TargetKind::tuple;
  tuple.place = token().place;
  bool is_tuple = false;
  while (!is_sign(")") && token().kind != TokenKind::block_end &&
         (end_word.empty() || !is_word(end_word))) {
    Target part;
    CAIRN_TRY(parse_target_part(part, with_namespace));
    tuple.parts.push_back(std::move(part));
    if (!skip_sign(",")) break;
    is_tuple = true;
  }
  if (tuple.parts.empty()) return unexpected("a name to assign to");
  if (is_tuple) return tuple;
  // Moved out first: the part lies inside the tuple that it replaces.
  Target only = std::move(tuple.parts.front());
  return only;
}

}  // namespace cairn::jinja
