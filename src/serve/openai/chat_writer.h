// Answers as chat completions: one object, or a stream of chunks. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chat/format.h"
#include "serve/answer_json.h"
#include "serve/generation.h"
#include "tokenize/tokenizer.h"

namespace cairn::serve::openai {

struct ChatStyle {
  bool is_stream = false;
  bool tells_usage = false;
  bool tells_probabilities = false;
  int32_t top_count = 0;
  size_t message_count = 0;  // Of the request; calls are named by it.
  std::string session = {};  // That the answer is made in; empty: in none.
  // Called for each answer when it has ended; what it adds is told beside `cut_by`.
  std::function<void(const session::Answer& answer, json::Value& told)> on_end = {};
};

class ChatWriter final : public AnswerWriter {
 public:
  // `tokenizer` and `format` must outlive the writer.
  ChatWriter(ObjectHead head, const ChatStyle& style, size_t choice_count,
             const tokenize::Tokenizer* tokenizer, const chat::ChatFormat* format);

  bool is_stream() const override { return style_.is_stream; }
  void begin(const PromptReport&, std::string& out) override;
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void gather(size_t choice, const session::AnswerPiece& piece) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;
  void give_up() override { style_.on_end = {}; }

 private:
  std::string call_id(const std::string& known, size_t call) const;
  json::Value message_json(const session::Answer& answer) const;
  json::Value memory_of(const session::Answer& answer) const;
  json::Value told_at_end(const session::Answer& answer);
  // A chunk of one choice; `delta` is JSON text.
  void chunk(size_t choice, std::string_view delta, std::string_view finish, std::string& out);
  void add_whole(size_t choice, const session::Answer& answer, std::string& out);

  ObjectHead head_;
  ChatStyle style_;
  const chat::ChatFormat* format_;
  std::string chunk_begin_;  // Of each chunk, up to the choice's index.
  // By choice; of a stream, those of tokens whose text has not been sent yet.
  std::vector<ProbabilityTexts> probabilities_;
};

}  // namespace cairn::serve::openai
