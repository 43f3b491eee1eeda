// Answers as Anthropic's messages: one object, or a stream of events. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "chat/format.h"
#include "json/value.h"
#include "serve/generation.h"

namespace cairn::serve::anthropic {

struct MessageStyle {
  bool is_stream = false;
  std::string id, model;
  size_t message_count = 0;  // Of the request; calls are named by it.
};

class MessageWriter final : public AnswerWriter {
 public:
  // `format` must outlive the writer.
  MessageWriter(MessageStyle style, const chat::ChatFormat* format);

  bool is_stream() const override { return style_.is_stream; }
  void begin(const PromptReport& prompt, std::string& out) override;
  void add(size_t choice, const session::AnswerPiece& piece, std::string& out) override;
  void end_choice(size_t choice, const session::Answer& answer, std::string& out) override;
  void end(std::span<const session::Answer> answers, std::string& out) override;
  void fail(const Refusal& refusal, std::string& out) override;
  std::string_view idle_text() const override {
    return "event: ping\ndata: {\"type\":\"ping\"}\n\n";
  }
  ErrorForm error_form() const override { return ErrorForm::anthropic; }

 private:
  enum class Block : uint8_t { none, thinking, text, call };
  json::Value message_json() const;
  void open(Block kind, json::Value start, std::string& out);
  void close(std::string& out);
  // `delta`: JSON text.
  void add_delta(std::string_view delta, std::string& out) const;
  std::string call_id(const std::string& known, size_t call) const;

  MessageStyle style_;
  const chat::ChatFormat* format_;
  Block open_ = Block::none;
  int64_t block_ = -1;  // The index of the last one that was opened.
};

}  // namespace cairn::serve::anthropic
