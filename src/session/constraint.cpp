// Compiling a choice, and following the tokens of an answer.
#include "session/constraint.h"

#include <utility>

#include "base/sha256.h"
#include "chat/call_grammar.h"
#include "chat/loose_match.h"

namespace cairn::session {

namespace {

Result<grammar::Grammar> compile(const ConstraintChoice& choice) {
  if (choice.json_schema) return grammar::compile_schema(*choice.json_schema);
  if (choice.grammar) return grammar::compile_gbnf(*choice.grammar);
  return choice.regex ? grammar::compile_regex(*choice.regex)
                      : grammar::compile_choices(choice.choices);
}

void add_text(Sha256& digest, std::string_view text) {
  digest.add(uint64_t(text.size())).add(text);
}

// What a grammar is compiled from, each kind in a way of its own.
Sha256Digest digest_of(const ConstraintChoice& choice) {
  Sha256 digest;
  for (const auto* text : {&choice.json_schema, &choice.grammar, &choice.regex}) {
    digest.add(uint64_t(text->has_value()));
    if (*text) add_text(digest, **text);
  }
  digest.add(uint64_t(choice.choices.size()));
  for (const std::string& text : choice.choices) add_text(digest, text);
  return digest.finish();
}

Sha256Digest digest_of(std::span<const chat::Tool> tools, const chat::CallDemand& demand) {
  Sha256 digest;
  add_text(digest, "calls");
  digest.add(uint64_t(demand.choice)).add(uint64_t(demand.call_count_max));
  add_text(digest, demand.name);
  add_text(digest, demand.prompt_end);
  for (const chat::Tool& tool : tools) {
    add_text(digest, tool.name);
    add_text(digest, tool.parameters);
  }
  return digest.finish();
}

}  // namespace

Result<std::unique_ptr<grammar::Matcher>> make_matcher(const ConstraintChoice& choice,
                                                       const ModelText& text,
                                                       const TenantGrammars& compiled) {
  if (choice.count() == 0) return std::unique_ptr<grammar::Matcher>();
  if (choice.count() > 1) {
    return fail(ErrorCode::invalid_argument,
                "answer: expected one of a JSON schema, a grammar, a regular expression and a list "
                "of choices, found {} of them",
                choice.count());
  }
  const auto compile_it = [&] { return compile(choice); };
  CAIRN_TRY(grammar::Grammar made, compiled.get(digest_of(choice), compile_it));
  return grammar::Matcher::build(std::move(made), text.token_trie());
}

// Who is made to call a tool once would have to call it for ever: behind results a model may speak.
Result<CallMatchers> make_call_matchers(const Engine& engine, const chat::ChatFormat& format,
                                        std::span<const chat::Tool> tools, const CallRules& rules,
                                        const TenantGrammars& compiled) {
  CallMatchers matchers;
  const std::string_view choice = rules.choice;
  if (choice.empty()) return matchers;
  chat::CallDemand demand{.prompt_end = rules.prompt_end};
  if (rules.is_single) demand.call_count_max = 1;
  if (choice == "none") {
    demand.choice = chat::ToolChoice::none;
  } else if (choice == "required") {
    demand.choice = chat::ToolChoice::required;
  } else if (choice != "auto") {
    demand.choice = chat::ToolChoice::named;
    demand.name = choice;
  }
  const auto compile_it = [&] {
    return chat::call_grammar(format, tools, demand, engine.tokenizer());
  };
  const auto make = [&]() -> Result<std::unique_ptr<grammar::Matcher>> {
    CAIRN_TRY(grammar::Grammar made, compiled.get(digest_of(tools, demand), compile_it));
    return grammar::Matcher::build(std::move(made), engine.token_trie());
  };
  CAIRN_TRY(matchers.to_people, make());
  if (demand.choice == chat::ToolChoice::automatic || demand.choice == chat::ToolChoice::none) {
    return matchers;
  }
  demand.choice = chat::ToolChoice::automatic;
  CAIRN_TRY(matchers.to_results, make());
  return matchers;
}

ConstraintState::ConstraintState(grammar::Matcher* matcher, bool describes_headers,
                                 const chat::OutputParser* parser)
    : matcher_(matcher), parser_(parser), describes_headers_(describes_headers) {
  if (matcher != nullptr) state_ = matcher->start();
}

grammar::Matcher::Forced ConstraintState::forced(size_t bytes_max,
                                                 grammar::Matcher::Layout layout) const {
  if (matcher_ == nullptr || is_open()) return {};
  return matcher_->forced(state_, bytes_max, layout);
}

Result<Token> ConstraintState::sample(TokenSource& source, sample::Sampler& sampler,
                                      std::span<const float> given) {
  if (matcher_ == nullptr || is_free_) return source.sample(sampler, nullptr, given);
  CAIRN_TRY(const grammar::TokenMask mask, matcher_->mask(state_));
  return source.sample(sampler, &mask, given);
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
