// Compiling a choice, and following the tokens of an answer.
#include "session/constraint.h"

#include "chat/loose_match.h"

namespace cairn::session {

namespace {

Result<grammar::Grammar> compile(const ConstraintChoice& choice) {
  if (choice.json_schema) return grammar::compile_schema(*choice.json_schema);
  if (choice.grammar) return grammar::compile_gbnf(*choice.grammar);
  return choice.regex ? grammar::compile_regex(*choice.regex)
                      : grammar::compile_choices(choice.choices);
}

}  // namespace

Result<std::unique_ptr<grammar::Matcher>> make_matcher(const ConstraintChoice& choice,
                                                       const Engine& engine) {
  if (choice.count() == 0) return std::unique_ptr<grammar::Matcher>();
  if (choice.count() > 1) {
    return fail(ErrorCode::invalid_argument,
                "answer: expected one of a JSON schema, a grammar, a regular expression and a list "
                "of choices, found {} of them",
                choice.count());
  }
  CAIRN_TRY(grammar::Grammar compiled, compile(choice));
  return grammar::Matcher::build(std::move(compiled), engine.token_trie());
}

ConstraintState::ConstraintState(grammar::Matcher* matcher, bool describes_headers,
                                 const chat::OutputParser* parser)
    : matcher_(matcher), parser_(parser), describes_headers_(describes_headers) {
  if (matcher != nullptr) state_ = matcher->start();
}

void ConstraintState::prepare() {
  is_free_ = parser_->is_reasoning() || (!describes_headers_ && parser_->is_in_header());
}

Result<Token> ConstraintState::sample(Lane& lane, sample::Sampler& sampler) {
  if (matcher_ == nullptr || is_free_) return lane.sample(sampler);
  CAIRN_TRY(const grammar::TokenMask mask, matcher_->mask(state_));
  return lane.sample(sampler, &mask);
}

bool ConstraintState::is_complete() const {
  return matcher_ == nullptr || (!parser_->has_stopped() && matcher_->is_complete(state_));
}

Status ConstraintState::accept(Token token) {
  if (matcher_ == nullptr) return Ok{};
  if (!is_free_) {
    CAIRN_TRY(state_, matcher_->advance(state_, token));
    return Ok{};
  }
  // The token that ends the reasoning may hold the beginning of what follows.
  const std::string_view behind = chat::trimmed_left(parser_->behind_reasoning());
  if (behind.empty()) return Ok{};
  CAIRN_TRY(state_, matcher_->advance(state_, behind));
  return Ok{};
}

}  // namespace cairn::session
