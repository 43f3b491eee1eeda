// Answers as text completions, the older form: one object, or a stream of chunks. Thread rule: one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "serve/answer_json.h"
#include "serve/generation.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve::openai {

struct CompletionStyle {
  bool is_stream = false;
  bool tells_usage = false;
  bool tells_probabilities = false;
  int32_t top_count = 0;
  size_t per_prompt = 1;               // Choices.
  std::vector<std::string> echo = {};  // The prompts' texts, where they are repeated.
};

class CompletionWriter final : public AnswerWriter {
 public:
  // `tokenizer` must outlive the writer.
  CompletionWriter(ObjectHead head, CompletionStyle style, size_t choice_count,
                   const tokenize::Tokenizer* tokenizer);

  bool is_stream() const override { return style_.is_stream; }
  void begin(const PromptReport&, std::string& out) override;
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;

 private:
  std::string_view echo_of(size_t choice) const;
  json::Value choice_json(size_t choice, std::string_view text,
                          std::span<const sample::LogProbabilities> probabilities);
  void chunk(json::Value choice, json::Value extra, std::string& out) const;

  ObjectHead head_;
  CompletionStyle style_;
  const tokenize::Tokenizer* tokenizer_;
  // Of tokens whose text has not been sent yet, by choice; and the characters of all before them.
  std::vector<std::vector<sample::LogProbabilities>> waiting_;
  std::vector<size_t> offsets_;
};

}  // namespace cairn::serve::openai
