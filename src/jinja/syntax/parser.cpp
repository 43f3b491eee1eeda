// Statements: each tag's own function, over the expressions of ExpressionParser.
#include "jinja/syntax/parser.h"

#include <algorithm>
#include <initializer_list>

#include "jinja/syntax/expression_parser.h"

namespace cairn::jinja {
namespace {

using Words = std::initializer_list<std::string_view>;
using StatementPointer = std::unique_ptr<Statement>;

class TemplateParser {
 public:
  TemplateParser(std::vector<LexerToken> tokens, Tree& tree) : in_(std::move(tokens), tree) {}

  Result<Block> run(Tree& tree) {
    tree.loop_name = in_.intern("loop");
    tree.caller_name = in_.intern("caller");
    tree.varargs_name = in_.intern("varargs");
    tree.kwargs_name = in_.intern("kwargs");
    CAIRN_TRY(Block body, parse_until({}));
    CAIRN_TRY(in_.refuse_unknown(0));
    return body;
  }

 private:
  using Parse = Status (TemplateParser::*)(Statement&);

  // Statements up to a tag with one of these words, which is left as the next token; without
  // words up to the end of the template.
  Result<Block> parse_until(Words ends) {
    Block block;
    while (true) {
      const LexerToken& token = in_.token();
      if (token.kind == TokenKind::end) {
        if (ends.size() == 0) return block;
        return syntax_error(token.place, "expected '{}', found the end of the template",
                            *(ends.end() - 1));
      }
      if (token.kind == TokenKind::text) {
        block.push_back(make(StatementKind::text));
        block.back()->text = plain_string(token.text, true);
        in_.advance();
      } else if (token.kind == TokenKind::print_begin) {
        CAIRN_TRY(StatementPointer print, parse_print());
        block.push_back(std::move(print));
      } else {
        in_.advance();
        const LexerToken& tag = in_.token();
        if (tag.kind == TokenKind::name &&
            std::find(ends.begin(), ends.end(), tag.text) != ends.end()) {
          return block;
        }
        CAIRN_TRY(StatementPointer statement, parse_statement());
        block.push_back(std::move(statement));
      }
    }
  }

  StatementPointer make(StatementKind kind) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->place = in_.token().place;
    return statement;
  }

  Status end_tag() {
    if (in_.token().kind != TokenKind::block_end) return in_.unexpected("'%}'");
    in_.advance();
    return Ok{};
  }

  // The rest of an opening tag, the body, and the closing tag.
  Result<Block> parse_body(Words ends) {
    in_.skip_sign(":");
    CAIRN_TRY(end_tag());
    CAIRN_TRY(in_.enter());
    CAIRN_TRY(Block body, parse_until(ends));
    in_.leave();
    return body;
  }

  Result<Block> parse_closed_body(std::string_view end) {
    CAIRN_TRY(Block body, parse_body({end}));
    in_.advance();
    CAIRN_TRY(end_tag());
    return body;
  }

  Result<StatementPointer> parse_print() {
    StatementPointer statement = make(StatementKind::print);
    in_.advance();
    CAIRN_TRY(ExpressionPointer value, in_.parse_tuple({}));
    statement->expressions.push_back(std::move(value));
    if (in_.token().kind != TokenKind::print_end) return in_.unexpected("'}}'");
    in_.advance();
    return statement;
  }

  Result<StatementPointer> parse_statement() {
    static constexpr std::tuple<std::string_view, StatementKind, Parse> kTags[] = {
        {"if", StatementKind::if_, &TemplateParser::parse_if},
        {"for", StatementKind::for_, &TemplateParser::parse_for},
        {"set", StatementKind::set, &TemplateParser::parse_set},
        {"with", StatementKind::with, &TemplateParser::parse_with},
        {"macro", StatementKind::macro, &TemplateParser::parse_macro},
        {"call", StatementKind::call_block, &TemplateParser::parse_call_block},
        {"filter", StatementKind::filter_block, &TemplateParser::parse_filter_block},
        {"generation", StatementKind::generation, &TemplateParser::parse_generation},
        {"print", StatementKind::print, &TemplateParser::parse_print_tag},
        {"break", StatementKind::break_, &TemplateParser::parse_jump},
        {"continue", StatementKind::continue_, &TemplateParser::parse_jump}};
    static constexpr std::string_view kRefused[] = {"include", "import", "from",
                                                    "extends", "block",  "autoescape"};
    const LexerToken& tag = in_.token();
    if (tag.kind != TokenKind::name) return in_.unexpected("the name of a tag");
    for (const auto& [word, kind, parse] : kTags) {
      if (tag.text != word) continue;
      StatementPointer statement = make(kind);
      in_.advance();
      CAIRN_TRY((this->*parse)(*statement));
      return statement;
    }
    for (const std::string_view word : kRefused) {
      if (tag.text == word) {
        return syntax_error(tag.place,
                            "expected a tag of chat templates, found '{}', which they "
                            "may not use",
                            word);
      }
    }
    return in_.unexpected("a known tag");
  }

  Status parse_if(Statement& statement) {
    const size_t first_unknown = in_.unknown_count();
    while (true) {
      Branch& branch = statement.branches.emplace_back();
      CAIRN_TRY(branch.condition, in_.parse_tuple({.with_condition = false}));
      CAIRN_TRY(branch.body, parse_body({"elif", "else", "endif"}));
      if (!in_.skip_word("elif")) break;
    }
    if (in_.skip_word("else")) {
      Branch& branch = statement.branches.emplace_back();
      CAIRN_TRY(branch.body, parse_body({"endif"}));
    }
    in_.advance();
    in_.soften_unknown(first_unknown);
    return end_tag();
  }

  Status parse_for(Statement& statement) {
    CAIRN_TRY(statement.target, in_.parse_target(false, "in"));
    CAIRN_TRY(in_.expect_word("in"));
    CAIRN_TRY(ExpressionPointer values,
              in_.parse_tuple({.with_condition = false, .end_word = "recursive"}));
    statement.expressions.push_back(std::move(values));
    const size_t first_unknown = in_.unknown_count();
    if (in_.skip_word("if")) {
      CAIRN_TRY(statement.condition, in_.parse_expression());
    }
    statement.is_recursive = in_.skip_word("recursive");
    ++loop_depth_;
    in_.loops().push_back(&statement);
    CAIRN_TRY(statement.body, parse_body({"endfor", "else"}));
    in_.loops().pop_back();
    --loop_depth_;
    if (in_.skip_word("else")) {
      CAIRN_TRY(statement.else_body, parse_body({"endfor"}));
    }
    in_.advance();
    CAIRN_TRY(in_.refuse_unknown(first_unknown));
    return end_tag();
  }

  Status parse_set(Statement& statement) {
    CAIRN_TRY(statement.target, in_.parse_target(true, {}));
    if (in_.skip_sign("=")) {
      CAIRN_TRY(ExpressionPointer value, in_.parse_tuple({}));
      statement.expressions.push_back(std::move(value));
      return end_tag();
    }
    statement.kind = StatementKind::set_block;
    const size_t first_unknown = in_.unknown_count();
    CAIRN_TRY(ExpressionPointer filters, in_.parse_filters(nullptr, false));
    statement.expressions.push_back(std::move(filters));
    CAIRN_TRY(statement.body, parse_closed_body("endset"));
    return in_.refuse_unknown(first_unknown);
  }

  Status parse_with(Statement& statement) {
    const size_t first_unknown = in_.unknown_count();
    while (in_.token().kind != TokenKind::block_end) {
      if (!statement.targets.empty()) CAIRN_TRY(in_.expect_sign(","));
      CAIRN_TRY(Target target, in_.parse_target(false, {}));
      CAIRN_TRY(in_.expect_sign("="));
      CAIRN_TRY(ExpressionPointer value, in_.parse_expression());
      statement.targets.push_back(std::move(target));
      statement.expressions.push_back(std::move(value));
    }
    CAIRN_TRY(statement.body, parse_closed_body("endwith"));
    return in_.refuse_unknown(first_unknown);
  }

  Status parse_parameters(MacroShape& macro) {
    CAIRN_TRY(in_.expect_sign("("));
    while (!in_.is_sign(")")) {
      if (!macro.parameters.empty()) CAIRN_TRY(in_.expect_sign(","));
      const Place place = in_.token().place;
      CAIRN_TRY(const std::string name, in_.expect_name());
      const Name parameter = in_.intern(name);
      if (std::find(macro.parameters.begin(), macro.parameters.end(), parameter) !=
          macro.parameters.end()) {
        return syntax_error(place, "macro: expected parameter '{}' once, found it twice", name);
      }
      macro.parameters.push_back(parameter);
      if (in_.skip_sign("=")) {
        CAIRN_TRY(ExpressionPointer value, in_.parse_expression());
        macro.defaults.push_back(std::move(value));
      } else if (!macro.defaults.empty()) {
        return syntax_error(place,
                            "macro: expected a default for '{}', as the parameter before it "
                            "has one, found none",
                            name);
      }
    }
    in_.advance();
    return Ok{};
  }

  // The body of a macro: a world of its own for loops and for what it says about its arguments.
  Status parse_macro_body(MacroShape& macro, std::string_view end) {
    const int loops_outside = std::exchange(loop_depth_, 0);
    in_.macros().push_back(&macro);
    CAIRN_TRY(macro.body, parse_closed_body(end));
    in_.macros().pop_back();
    loop_depth_ = loops_outside;
    return Ok{};
  }

  Status parse_macro(Statement& statement) {
    const size_t first_unknown = in_.unknown_count();
    statement.macro = std::make_unique<MacroShape>();
    MacroShape& macro = *statement.macro;
    macro.place = statement.place;
    CAIRN_TRY(macro.name, in_.expect_name());
    statement.target.name = in_.intern(macro.name);
    CAIRN_TRY(parse_parameters(macro));
    CAIRN_TRY(parse_macro_body(macro, "endmacro"));
    return in_.refuse_unknown(first_unknown);
  }

  Status parse_call_block(Statement& statement) {
    statement.macro = std::make_unique<MacroShape>();
    MacroShape& macro = *statement.macro;
    macro.name = "caller";
    macro.place = statement.place;
    if (in_.is_sign("(")) CAIRN_TRY(parse_parameters(macro));
    CAIRN_TRY(ExpressionPointer call, in_.parse_expression());
    if (call->kind != ExpressionKind::call) {
      return syntax_error(call->place, "a call block: expected a call, found another expression");
    }
    statement.expressions.push_back(std::move(call));
    const size_t first_unknown = in_.unknown_count();
    CAIRN_TRY(parse_macro_body(macro, "endcall"));
    return in_.refuse_unknown(first_unknown);
  }

  Status parse_filter_block(Statement& statement) {
    const size_t first_unknown = in_.unknown_count();
    CAIRN_TRY(ExpressionPointer filters, in_.parse_filters(nullptr, true));
    statement.expressions.push_back(std::move(filters));
    CAIRN_TRY(statement.body, parse_closed_body("endfilter"));
    return in_.refuse_unknown(first_unknown);
  }

  Status parse_generation(Statement& statement) {
    const size_t first_unknown = in_.unknown_count();
    const int loops_outside = std::exchange(loop_depth_, 0);
    CAIRN_TRY(statement.body, parse_closed_body("endgeneration"));
    loop_depth_ = loops_outside;
    return in_.refuse_unknown(first_unknown);
  }

  Status parse_print_tag(Statement& statement) {
    while (in_.token().kind != TokenKind::block_end) {
      if (!statement.expressions.empty()) CAIRN_TRY(in_.expect_sign(","));
      CAIRN_TRY(ExpressionPointer value, in_.parse_expression());
      statement.expressions.push_back(std::move(value));
    }
    return end_tag();
  }

  Status parse_jump(Statement& statement) {
    if (loop_depth_ == 0) {
      return syntax_error(statement.place, "expected a loop around '{}', found none",
                          statement.kind == StatementKind::break_ ? "break" : "continue");
    }
    return end_tag();
  }

  ExpressionParser in_;
  int loop_depth_ = 0;
};

}  // namespace

Result<std::unique_ptr<const Tree>> parse(std::string_view source) {
  CAIRN_TRY(std::vector<LexerToken> tokens, tokenize(source));
  auto tree = std::make_unique<Tree>();
  CAIRN_TRY(tree->body, TemplateParser(std::move(tokens), *tree).run(*tree));
  return std::unique_ptr<const Tree>(std::move(tree));
}

}  // namespace cairn::jinja
