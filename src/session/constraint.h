// What an answer must look like: from the command line's words to a matcher, and the step from one
// token to the next. Knows neither prompts nor terminals. Thread rule: the engine's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/generator.h"
#include "grammar/matcher.h"

namespace cairn::session {

// At most one of them.
struct ConstraintChoice {
  std::optional<std::string> json_schema;  // The schema itself, or a file's name.
  std::optional<std::string> grammar;      // A file of GBNF.
  std::optional<std::string> regex;
  std::vector<std::string> choices;
};

// Null where nothing is asked for. Errors: the grammar's, with line, column and reason; io.
Result<std::unique_ptr<grammar::Matcher>> make_matcher(const ConstraintChoice& choice,
                                                       const tokenize::Tokenizer& tokenizer);

// Where an answer stands. Without a matcher everything is allowed.
class Constraint {
 public:
  explicit Constraint(grammar::Matcher* matcher);

  Result<Token> sample(Generator& generator, sample::Sampler& sampler);
  // Errors: invalid_argument where the token does not fit.
  Status accept(Token token);
  Status accept(std::string_view text);
  // Nothing more can follow.
  bool is_finished() const { return matcher_ != nullptr && matcher_->is_finished(state_); }

 private:
  grammar::Matcher* matcher_;
  grammar::State state_{};
};

}  // namespace cairn::session
