// Each function parses one level of precedence and calls the next tighter one.
#include "jinja/syntax/expression_parser.h"

#include <algorithm>

namespace cairn::jinja {
namespace {

Operation operation_of(std::string_view sign) {
  if (sign == "+") return Operation::add;
  if (sign == "-") return Operation::subtract;
  if (sign == "*") return Operation::multiply;
  if (sign == "/") return Operation::divide;
  if (sign == "//") return Operation::floor_divide;
  return sign == "%" ? Operation::modulo : Operation::power;
}

uint16_t height_of(const ExpressionPointer& node) {
  return node == nullptr ? 0 : node->height;
}

}  // namespace

const LexerToken& ExpressionParser::token_after() const {
  return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

bool ExpressionParser::is_sign(std::string_view sign) const {
  return token().kind == TokenKind::sign && token().text == sign;
}

bool ExpressionParser::is_word(std::string_view word) const {
  return token().kind == TokenKind::name && token().text == word;
}

bool ExpressionParser::skip_sign(std::string_view sign) {
  if (!is_sign(sign)) return false;
  advance();
  return true;
}

bool ExpressionParser::skip_word(std::string_view word) {
  if (!is_word(word)) return false;
  advance();
  return true;
}

Error ExpressionParser::unexpected(std::string_view expected) const {
  return syntax_error(token().place, "expected {}, found {}", expected, describe(token()));
}

Status ExpressionParser::expect_sign(std::string_view sign) {
  if (skip_sign(sign)) return Ok{};
  return unexpected("'" + std::string(sign) + "'");
}

Status ExpressionParser::expect_word(std::string_view word) {
  if (skip_word(word)) return Ok{};
  return unexpected("'" + std::string(word) + "'");
}

Result<std::string> ExpressionParser::expect_name() {
  if (token().kind != TokenKind::name) return unexpected("a name");
  std::string name = token().text;
  advance();
  return name;
}

Name ExpressionParser::intern(std::string_view name) {
  const auto [at, is_new] = names_.try_emplace(std::string(name), Name(tree_.names.size()));
  if (is_new) {
    tree_.names.emplace_back(name);
    tree_.name_values.push_back(plain_string(name, true));
  }
  return at->second;
}

Status ExpressionParser::enter() {
  if (++depth_ <= kParseDepthMax) return Ok{};
  return fail(ErrorCode::no_room,
              "template line {}, column {}: expected nesting of at most {}, found more",
              token().place.line, token().place.column, kParseDepthMax);
}

void ExpressionParser::soften_unknown(size_t from) {
  for (size_t i = from; i < unknown_.size(); ++i) unknown_[i]->is_soft = true;
  unknown_.resize(std::min(from, unknown_.size()));
}

Status ExpressionParser::refuse_unknown(size_t from) {
  if (from >= unknown_.size()) return Ok{};
  const Expression& node = *unknown_[from];
  return syntax_error(node.place, "expected a known {}, found '{}'",
                      node.kind == ExpressionKind::filter ? "filter" : "test",
                      node.constant.text());
}

ExpressionPointer ExpressionParser::make(ExpressionKind kind, Place place) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->place = place;
  return node;
}

Result<ExpressionPointer> ExpressionParser::finish(ExpressionPointer node) {
  uint16_t height = 0;
  for (const ExpressionPointer& part : node->parts) height = std::max(height, height_of(part));
  if (node->arguments != nullptr) {
    const CallArguments& arguments = *node->arguments;
    for (const ExpressionPointer& part : arguments.positional) {
      height = std::max(height, height_of(part));
    }
    for (const auto& [name, part] : arguments.named) height = std::max(height, height_of(part));
    height = std::max({height, height_of(arguments.star), height_of(arguments.double_star)});
  }
  if (height >= kTreeHeightMax) {
    return fail(ErrorCode::no_room,
                "template line {}, column {}: an expression: expected at most {} steps in a row, "
                "found more",
                node->place.line, node->place.column, kTreeHeightMax);
  }
  node->height = uint16_t(height + 1);
  return node;
}

Result<ExpressionPointer> ExpressionParser::join(ExpressionKind kind, Place place,
                                                 ExpressionPointer left, ExpressionPointer right) {
  ExpressionPointer node = make(kind, place);
  node->parts.push_back(std::move(left));
  node->parts.push_back(std::move(right));
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_expression() {
  CAIRN_TRY(enter());
  auto node = parse_conditional();
  leave();
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_without_condition() {
  CAIRN_TRY(enter());
  auto node = parse_or();
  leave();
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_conditional() {
  const size_t first_unknown = unknown_count();
  CAIRN_TRY(ExpressionPointer value, parse_or());
  while (is_word("if")) {
    ExpressionPointer node = make(ExpressionKind::conditional, token().place);
    advance();
    CAIRN_TRY(ExpressionPointer condition, parse_or());
    ExpressionPointer other;
    if (skip_word("else")) {
      CAIRN_TRY(other, parse_expression());
    }
    node->parts.push_back(std::move(condition));
    node->parts.push_back(std::move(value));
    node->parts.push_back(std::move(other));
    CAIRN_TRY(value, finish(std::move(node)));
    soften_unknown(first_unknown);
  }
  return value;
}

Result<ExpressionPointer> ExpressionParser::parse_or() {
  CAIRN_TRY(ExpressionPointer left, parse_and());
  while (is_word("or")) {
    const Place place = token().place;
    advance();
    CAIRN_TRY(ExpressionPointer right, parse_and());
    CAIRN_TRY(left, join(ExpressionKind::logical_or, place, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPointer> ExpressionParser::parse_and() {
  CAIRN_TRY(ExpressionPointer left, parse_not());
  while (is_word("and")) {
    const Place place = token().place;
    advance();
    CAIRN_TRY(ExpressionPointer right, parse_not());
    CAIRN_TRY(left, join(ExpressionKind::logical_and, place, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPointer> ExpressionParser::parse_not() {
  if (!is_word("not")) return parse_comparison();
  ExpressionPointer node = make(ExpressionKind::logical_not, token().place);
  advance();
  CAIRN_TRY(enter());
  CAIRN_TRY(ExpressionPointer operand, parse_not());
  leave();
  node->parts.push_back(std::move(operand));
  return finish(std::move(node));
}

bool ExpressionParser::comparison_here(Operation& operation) {
  static constexpr std::pair<std::string_view, Operation> kSigns[] = {
      {"==", Operation::equal},  {"!=", Operation::not_equal},
      {"<", Operation::less},    {"<=", Operation::less_equal},
      {">", Operation::greater}, {">=", Operation::greater_equal}};
  for (const auto& [sign, meaning] : kSigns) {
    if (skip_sign(sign)) {
      operation = meaning;
      return true;
    }
  }
  const LexerToken& after = token_after();
  const bool is_not_in = is_word("not") && after.kind == TokenKind::name && after.text == "in";
  if (is_not_in) advance();
  operation = is_not_in ? Operation::not_in : Operation::in;
  return skip_word("in");
}

Result<ExpressionPointer> ExpressionParser::parse_comparison() {
  CAIRN_TRY(ExpressionPointer first, parse_sum());
  ExpressionPointer node = make(ExpressionKind::compare, token().place);
  Operation operation = Operation::equal;
  while (comparison_here(operation)) {
    CAIRN_TRY(ExpressionPointer operand, parse_sum());
    if (node->parts.empty()) node->parts.push_back(std::move(first));
    node->parts.push_back(std::move(operand));
    node->operations.push_back(operation);
  }
  if (node->parts.empty()) return first;
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_binary(Parse operand, std::string_view signs) {
  CAIRN_TRY(ExpressionPointer left, (this->*operand)());
  while (token().kind == TokenKind::sign &&
         (" " + std::string(signs) + " ").find(" " + token().text + " ") != std::string::npos) {
    const Place place = token().place;
    const Operation operation = operation_of(token().text);
    advance();
    CAIRN_TRY(ExpressionPointer right, (this->*operand)());
    CAIRN_TRY(left, join(ExpressionKind::binary, place, std::move(left), std::move(right)));
    left->operation = operation;
  }
  return left;
}

Result<ExpressionPointer> ExpressionParser::parse_sum() {
  return parse_binary(&ExpressionParser::parse_concatenation, "+ -");
}

Result<ExpressionPointer> ExpressionParser::parse_concatenation() {
  CAIRN_TRY(ExpressionPointer first, parse_product());
  if (!is_sign("~")) return first;
  ExpressionPointer node = make(ExpressionKind::concatenate, token().place);
  node->parts.push_back(std::move(first));
  while (skip_sign("~")) {
    CAIRN_TRY(ExpressionPointer part, parse_product());
    node->parts.push_back(std::move(part));
  }
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_product() {
  return parse_binary(&ExpressionParser::parse_power, "* / // %");
}

Result<ExpressionPointer> ExpressionParser::parse_power() {
  return parse_binary(&ExpressionParser::parse_unary, "**");
}

Result<ExpressionPointer> ExpressionParser::parse_signed(bool with_filters) {
  ExpressionPointer node;
  if (is_sign("-") || is_sign("+")) {
    node = make(is_sign("-") ? ExpressionKind::negate : ExpressionKind::plus, token().place);
    advance();
    CAIRN_TRY(enter());
    CAIRN_TRY(ExpressionPointer operand, parse_signed(false));
    leave();
    node->parts.push_back(std::move(operand));
    CAIRN_TRY(node, finish(std::move(node)));
  } else {
    CAIRN_TRY(node, parse_primary());
  }
  CAIRN_TRY(node, parse_postfix(std::move(node)));
  if (!with_filters) return node;
  return parse_postfix_filters(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_name() {
  const std::string word = token().text;
  ExpressionPointer node = make(ExpressionKind::constant, token().place);
  advance();
  if (word == "true" || word == "True" || word == "false" || word == "False") {
    node->constant = Value::boolean(word[0] == 't' || word[0] == 'T');
  } else if (word == "none" || word == "None") {
    node->constant = Value::none();
  } else {
    node->kind = ExpressionKind::name;
    node->name = intern(word);
    for (Statement* loop : loops_) loop->uses_loop = loop->uses_loop || word == "loop";
    for (MacroShape* macro : macros_) {
      macro->uses_varargs = macro->uses_varargs || word == "varargs";
      macro->uses_kwargs = macro->uses_kwargs || word == "kwargs";
      macro->uses_caller = macro->uses_caller || word == "caller";
    }
  }
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_primary() {
  ExpressionPointer node = make(ExpressionKind::constant, token().place);
  switch (token().kind) {
    case TokenKind::name:
      return parse_name();
    case TokenKind::string: {
      std::string text;
      while (token().kind == TokenKind::string) {
        text += token().text;
        advance();
      }
      node->constant = plain_string(text, true);
      return node;
    }
    case TokenKind::integer:
      node->constant = Value::integer(token().integer);
      advance();
      return node;
    case TokenKind::real:
      node->constant = Value::real(token().real);
      advance();
      return node;
    default:
      break;
  }
  if (is_sign("[")) return parse_list();
  if (is_sign("{")) return parse_dict();
  if (!skip_sign("(")) return unexpected("an expression");
  CAIRN_TRY(node, parse_tuple({.in_parentheses = true}));
  CAIRN_TRY(expect_sign(")"));
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_tuple(TupleOptions options) {
  ExpressionPointer node = make(ExpressionKind::tuple, token().place);
  bool is_tuple = false;
  while (true) {
    const TokenKind kind = token().kind;
    if (kind == TokenKind::print_end || kind == TokenKind::block_end || is_sign(")") ||
        (!options.end_word.empty() && is_word(options.end_word))) {
      break;
    }
    CAIRN_TRY(ExpressionPointer part,
              options.with_condition ? parse_expression() : parse_without_condition());
    node->parts.push_back(std::move(part));
    if (!skip_sign(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !node->parts.empty()) return std::move(node->parts.front());
  if (!is_tuple && !options.in_parentheses) return unexpected("an expression");
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_list() {
  ExpressionPointer node = make(ExpressionKind::list, token().place);
  CAIRN_TRY(expect_sign("["));
  while (!is_sign("]")) {
    if (!node->parts.empty()) {
      CAIRN_TRY(expect_sign(","));
      if (is_sign("]")) break;
    }
    CAIRN_TRY(ExpressionPointer part, parse_expression());
    node->parts.push_back(std::move(part));
  }
  CAIRN_TRY(expect_sign("]"));
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_dict() {
  ExpressionPointer node = make(ExpressionKind::dict, token().place);
  CAIRN_TRY(expect_sign("{"));
  while (!is_sign("}")) {
    if (!node->parts.empty()) {
      CAIRN_TRY(expect_sign(","));
      if (is_sign("}")) break;
    }
    CAIRN_TRY(ExpressionPointer key, parse_expression());
    CAIRN_TRY(expect_sign(":"));
    CAIRN_TRY(ExpressionPointer value, parse_expression());
    node->parts.push_back(std::move(key));
    node->parts.push_back(std::move(value));
  }
  CAIRN_TRY(expect_sign("}"));
  return finish(std::move(node));
}

}  // namespace cairn::jinja
