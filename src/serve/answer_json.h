// Parts of replies that several APIs have. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// JSON has no infinity; nobody asks how impossible.
double finite(float log_probability);

// Begins one more member of the object that a text ends with; its value and "}" are to follow.
void begin_member(std::string_view key, std::string& object_text);

// The items of a list as text: what would take long to write when an answer has ended is written
// as it comes.
class TextList {
 public:
  // `item`: JSON text.
  void add(std::string_view item);
  // Leaves only the first ones.
  void cut(size_t count);
  size_t size() const { return ends_.size(); }
  // With commas between them.
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::vector<size_t> ends_;  // Of each item.
};

// What is told of how likely tokens are.
struct ProbabilityStyle {
  int32_t top_count = 0;
  bool as_shares = false;  // Not their logarithms.
};

// [{"id", "token", "bytes", "logprob", "top_logprobs"}]; of shares: "prob" and "top_probs".
class ProbabilityTexts {
 public:
  // `tokenizer` must outlive it.
  ProbabilityTexts(ProbabilityStyle style, const tokenize::Tokenizer* tokenizer)
      : style_(style), tokenizer_(tokenizer) {}

  void add(std::span<const sample::LogProbabilities> more);
  // Exactly these, of which some may have been added before.
  void complete(std::span<const sample::LogProbabilities> all);
  bool is_empty() const { return list_.size() == 0; }
  size_t bytes() const { return list_.text().size(); }
  // What there is, which is forgotten.
  void take(std::string& out);

 private:
  ProbabilityStyle style_;
  const tokenize::Tokenizer* tokenizer_;
  TextList list_;
};

}  // namespace cairn::serve
