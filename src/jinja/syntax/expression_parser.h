// Expressions from tokens, by recursive descent in Jinja's order of precedence; and the stream of
// tokens that the statement parser shares. Bounded: nesting by kParseDepthMax, the height of a tree
// (chains such as a + b + c grow it without nesting) by kTreeHeightMax. One thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jinja/syntax/lexer.h"

namespace cairn::jinja {

constexpr int kParseDepthMax = 128;
constexpr int kTreeHeightMax = 400;

class ExpressionParser {
 public:
  ExpressionParser(std::vector<LexerToken> tokens, Tree& tree)
      : tokens_(std::move(tokens)), tree_(tree) {}

  const LexerToken& token() const { return tokens_[at_]; }
  const LexerToken& token_after() const;
  void advance() { at_ += at_ + 1 < tokens_.size(); }
  bool is_sign(std::string_view sign) const;
  bool is_word(std::string_view word) const;
  bool skip_sign(std::string_view sign);
  bool skip_word(std::string_view word);
  Status expect_sign(std::string_view sign);
  Status expect_word(std::string_view word);
  Result<std::string> expect_name();
  Error unexpected(std::string_view expected) const;

  Name intern(std::string_view name);

  Result<ExpressionPointer> parse_expression();
  // Without `a if b`, which would swallow the filter of a loop.
  Result<ExpressionPointer> parse_without_condition();

  struct TupleOptions {
    bool with_condition = true;
    std::string_view end_word = {};  // A word that ends the tuple.
    bool in_parentheses = false;     // Then it may be empty.
  };
  Result<ExpressionPointer> parse_tuple(TupleOptions options);
  // `|f(…)|g`; the operand may be null (what a block holds). With first_is_bare: `f(…)|g`.
  Result<ExpressionPointer> parse_filters(ExpressionPointer operand, bool first_is_bare);
  Result<Target> parse_target(bool with_namespace, std::string_view end_word);

  // Filters and tests that no table has, in the order of the source: an error, unless they stand
  // in a branch that may never run, as in Jinja.
  size_t unknown_count() const { return unknown_.size(); }
  void soften_unknown(size_t from);
  Status refuse_unknown(size_t from);

  // The macro bodies and the loops around the present place.
  std::vector<MacroShape*>& macros() { return macros_; }
  std::vector<Statement*>& loops() { return loops_; }

  // Counts a level of nesting while it lives.
  Status enter();
  void leave() { --depth_; }

 private:
  using Parse = Result<ExpressionPointer> (ExpressionParser::*)();

  ExpressionPointer make(ExpressionKind kind, Place place) const;
  Result<ExpressionPointer> finish(ExpressionPointer node);
  Result<ExpressionPointer> join(ExpressionKind kind, Place place, ExpressionPointer left,
                                 ExpressionPointer right);

  Result<ExpressionPointer> parse_conditional();
  Result<ExpressionPointer> parse_or();
  Result<ExpressionPointer> parse_and();
  Result<ExpressionPointer> parse_not();
  Result<ExpressionPointer> parse_comparison();
  Result<ExpressionPointer> parse_sum();
  Result<ExpressionPointer> parse_concatenation();
  Result<ExpressionPointer> parse_product();
  Result<ExpressionPointer> parse_power();
  Result<ExpressionPointer> parse_unary() { return parse_signed(true); }
  Result<ExpressionPointer> parse_signed(bool with_filters);
  Result<ExpressionPointer> parse_primary();
  Result<ExpressionPointer> parse_name();
  Result<ExpressionPointer> parse_list();
  Result<ExpressionPointer> parse_dict();
  Result<ExpressionPointer> parse_postfix(ExpressionPointer node);
  Result<ExpressionPointer> parse_postfix_filters(ExpressionPointer node);
  Result<ExpressionPointer> parse_subscript(ExpressionPointer node);
  Result<ExpressionPointer> parse_subscribed();
  Result<ExpressionPointer> parse_call(ExpressionPointer node);
  Result<ExpressionPointer> parse_test(ExpressionPointer node);
  Result<std::unique_ptr<CallArguments>> parse_arguments();
  Status parse_argument(CallArguments& arguments);
  Result<std::string> parse_dotted_name();
  Result<ExpressionPointer> parse_binary(Parse operand, std::string_view signs);
  bool comparison_here(Operation& operation);
  Status parse_target_part(Target& target, bool with_namespace);

  std::vector<LexerToken> tokens_;
  Tree& tree_;
  size_t at_ = 0;
  int depth_ = 0;
  std::unordered_map<std::string, Name> names_;
  std::vector<Expression*> unknown_;
  std::vector<MacroShape*> macros_;
  std::vector<Statement*> loops_;
};

}  // namespace cairn::jinja
