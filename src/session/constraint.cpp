// A schema is told from a file's name by how it begins: no file is called "{".
#include "session/constraint.h"

#include "base/file.h"

namespace cairn::session {

namespace {

constexpr size_t kSourceBytesMax = 1 << 20;

Result<grammar::Grammar> compile(const ConstraintChoice& choice) {
  if (choice.json_schema) {
    const std::string& said = *choice.json_schema;
    const size_t begin = said.find_first_not_of(" \t\r\n");
    if (begin != std::string::npos && said[begin] == '{') return grammar::compile_schema(said);
    CAIRN_TRY(const std::string schema, read_file(said, kSourceBytesMax));
    return grammar::compile_schema(schema);
  }
  if (choice.grammar) {
    CAIRN_TRY(const std::string source, read_file(*choice.grammar, kSourceBytesMax));
    return grammar::compile_gbnf(source);
  }
  return choice.regex ? grammar::compile_regex(*choice.regex)
                      : grammar::compile_choices(choice.choices);
}

}  // namespace

Result<std::unique_ptr<grammar::Matcher>> make_matcher(const ConstraintChoice& choice,
                                                       const tokenize::Tokenizer& tokenizer) {
  const int count = int(choice.json_schema.has_value()) + int(choice.grammar.has_value()) +
                    int(choice.regex.has_value()) + int(!choice.choices.empty());
  if (count == 0) return std::unique_ptr<grammar::Matcher>();
  if (count > 1) {
    return fail(ErrorCode::invalid_argument,
                "expected one of --json-schema, --grammar, --regex and --choice, found {}", count);
  }
  CAIRN_TRY(grammar::Grammar compiled, compile(choice));
  return grammar::Matcher::build(std::move(compiled), grammar::TokenTrie::build(tokenizer));
}

Constraint::Constraint(grammar::Matcher* matcher) : matcher_(matcher) {
  if (matcher != nullptr) state_ = matcher->start();
}

Result<Token> Constraint::sample(Generator& generator, sample::Sampler& sampler) {
  if (matcher_ == nullptr) return generator.sample(sampler);
  CAIRN_TRY(const grammar::TokenMask mask, matcher_->mask(state_));
  return generator.sample(sampler, &mask);
}

Status Constraint::accept(Token token) {
  if (matcher_ == nullptr) return Ok{};
  CAIRN_TRY(state_, matcher_->advance(state_, token));
  return Ok{};
}

Status Constraint::accept(std::string_view text) {
  if (matcher_ == nullptr || text.empty()) return Ok{};
  CAIRN_TRY(state_, matcher_->advance(state_, text));
  return Ok{};
}

}  // namespace cairn::session
