// Parts of replies that several APIs have. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "json/value.h"
#include "session/answer.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve {

// What all objects of one reply have.
struct ObjectHead {
  std::string id;
  int64_t created = 0;  // Seconds since 1970.
  std::string model;
};
ObjectHead make_object_head(std::string_view prefix, std::string_view model);
// An object of this kind with the head's members.
json::Value object_json(const ObjectHead& head, std::string_view kind);

// In OpenAI's words.
std::string_view finish_reason(const session::Answer& answer);

// Likewise. `answers`: all choices; of the choices to one prompt, `per_prompt`, the prompt counts
// once.
json::Value usage_json(std::span<const session::Answer> answers, size_t per_prompt);
// In the words of llama.cpp's server: tokens and milliseconds.
json::Value timings_json(std::span<const session::Answer> answers, size_t per_prompt);
// What of the prompt was in memory, what was computed, and why not less.
json::Value memory_json(const session::Answer& answer);

// [{"id", "token", "bytes", "logprob", "top_logprobs"}]; `as_shares`: "prob" and "top_probs", not
// their logarithms.
json::Value probabilities_json(std::span<const sample::LogProbabilities> all, int32_t top_count,
                               const tokenize::Tokenizer& tokenizer, bool as_shares = false);
// JSON has no infinity; nobody asks how impossible.
double finite(float log_probability);

}  // namespace cairn::serve
