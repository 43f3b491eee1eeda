// Answers as Ollama writes them: one object, or a line of JSON for each piece. Thread rule: one
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "chat/format.h"
#include "json/value.h"
#include "serve/answer_json.h"
#include "serve/generation.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve::ollama {

// "2026-01-31T12:00:00.000Z"
std::string time_text(std::chrono::system_clock::time_point time);

struct AnswerStyle {
  bool is_chat = true;  // Else of /api/generate.
  bool is_stream = true;
  bool tells_probabilities = false;
  int32_t top_count = 0;
  std::string model;
  std::chrono::nanoseconds load_time{0};  // That the request waited for the model.
  size_t message_count = 0;               // Of the request; calls are named by it.
  std::vector<Token> context = {};  // Of /api/generate: the prompt, which the reply hands back.
};

class AnswerLines final : public AnswerWriter {
 public:
  // `tokenizer` and `format` must outlive the writer.
  AnswerLines(AnswerStyle style, const tokenize::Tokenizer* tokenizer,
              const chat::ChatFormat* format);

  bool is_stream() const override { return style_.is_stream; }
  void begin(const PromptReport&, std::string&) override {}
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void gather(size_t choice, const session::AnswerPiece& piece) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;
  // A line that says nothing would be taken for a piece.
  std::string_view idle_text() const override { return {}; }
  std::string_view stream_type() const override { return "application/x-ndjson"; }
  ErrorForm error_form() const override { return ErrorForm::ollama; }

 private:
  using Clock = std::chrono::steady_clock;
  json::Value line(std::string_view text, std::string_view reasoning, json::Value calls) const;
  void add_line(const json::Value& json, std::string& out);
  void add_probabilities(std::string& out);
  json::Value call_json(const chat::ToolCall& call, size_t index) const;
  void finish(const session::Answer& answer, json::Value& json);

  AnswerStyle style_;
  const chat::ChatFormat* format_;
  Clock::time_point begin_time_;
  std::vector<chat::ToolCall> calls_;  // That have begun.
  // Of a stream, those of tokens whose text has not been sent yet.
  ProbabilityTexts probabilities_;
};

}  // namespace cairn::serve::ollama
