// Constraints on answers: makes a matcher from the text of a schema or grammar, and keeps an
// answer's state in it from token to token. Thread rule: matchers are made on any thread; the rest
// is the engine's thread's.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/format.h"
#include "chat/output_parser.h"
#include "chat/tools.h"
#include "engine/engine.h"
#include "engine/model_text.h"
#include "engine/token_source.h"
#include "grammar/matcher.h"
#include "session/grammar_cache.h"

namespace cairn::session {

// At most one of them.
struct ConstraintChoice {
  std::optional<std::string> json_schema;
  std::optional<std::string> grammar;  // GBNF.
  std::optional<std::string> regex;
  std::vector<std::string> choices;  // Texts, of which the answer is one.

  int32_t count() const {
    return int32_t(json_schema.has_value()) + int32_t(grammar.has_value()) +
           int32_t(regex.has_value()) + int32_t(!choices.empty());
  }
};

// Null where nothing is asked for. REQUIRES: the model has a tokenizer. Errors: invalid_argument
// for more than one choice; the grammar's, with line, column and reason. `compiled`, here and
// below: those that were compiled for this engine before.
Result<std::unique_ptr<grammar::Matcher>> make_matcher(const ConstraintChoice& choice,
                                                       const ModelText& text,
                                                       const TenantGrammars& compiled = {});

// What answers look like where a tool choice is said: those to people, and those to results.
struct CallMatchers {
  std::unique_ptr<grammar::Matcher> to_people, to_results;  // Null: anything; as the others.

  grammar::Matcher* matcher(bool is_to_results) const {
    return is_to_results && to_results != nullptr ? to_results.get() : to_people.get();
  }
};

// What a request says of calls, beside the tools.
struct CallRules {
  std::string_view choice;      // auto, none, required or a tool's name; empty: no matchers.
  std::string_view prompt_end;  // See chat::CallDemand.
  bool is_single = false;       // An answer has one call at most.
};

// REQUIRES: with `compiled`, the format is the engine's. Errors: those of chat::call_grammar().
Result<CallMatchers> make_call_matchers(const Engine& engine, const chat::ChatFormat& format,
                                        std::span<const chat::Tool> tools, const CallRules& rules,
                                        const TenantGrammars& compiled = {});

// Where an answer stands in what it must look like. Reasoning is free, and so are headers of the
// model's format that the grammar does not describe. Without a matcher everything is allowed.
class ConstraintState {
 public:
  // `parser` reads the answer, and must outlive this.
  ConstraintState(grammar::Matcher* matcher, bool describes_headers,
                  const chat::OutputParser* parser);

  bool has_matcher() const { return matcher_ != nullptr; }
  // Before each token, whether sampled or given.
  void prepare() { is_free_ = is_open(); }
  // `given`: as TokenSource::sample() has it.
  Result<Token> sample(TokenSource& source, sample::Sampler& sampler,
                       std::span<const float> given = {});
  // What has to follow next, as Matcher::forced() has it; nothing where anything may.
  grammar::Matcher::Forced forced(size_t bytes_max, grammar::Matcher::Layout layout) const;
  // Behind it, when the parser has read it. Errors: invalid_argument where the token does not fit.
  Status accept(Token token);
  // All that the form demands is there, and no stop text has taken any of it.
  bool is_complete() const;
  // Nothing more can follow.
  bool is_finished() const { return matcher_ != nullptr && matcher_->is_finished(state_); }

 private:
  // The form says nothing of what follows.
  bool is_open() const {
    return parser_->is_reasoning() || (!describes_headers_ && parser_->is_in_header());
  }

  grammar::Matcher* matcher_;
  const chat::OutputParser* parser_;
  bool describes_headers_;
  bool is_free_ = false;
  grammar::State state_{};
};

}  // namespace cairn::session
