// Blocks follow each other; at most one is open.
#include "serve/anthropic/message_writer.h"

#include <fmt/format.h>

#include <utility>

#include "chat/conversation.h"
#include "json/reader.h"
#include "serve/answer_json.h"

namespace cairn::serve::anthropic {

using chat::OutputEvent;

namespace {

constexpr json::Limits kArgumentLimits{};

void event(std::string_view name, const json::Value& data, std::string& out) {
  out += fmt::format("event: {}\ndata: {}\n\n", name, json::to_text(data));
}

std::string_view stop_reason(const session::Answer& answer) {
  using session::FinishReason;
  switch (answer.finish) {
    case FinishReason::tool_calls:
      return "tool_use";
    case FinishReason::length:
    case FinishReason::context:
    case FinishReason::memory:
      return "max_tokens";
    case FinishReason::stop:
    case FinishReason::interrupted:
      break;
  }
  return answer.stop_text.empty() ? "end_turn" : "stop_sequence";
}

json::Value stop_sequence(const session::Answer& answer) {
  return answer.stop_text.empty() ? json::Value() : json::Value(answer.stop_text);
}

// What was in memory is not counted as input.
json::Value usage_json(const PromptReport& prompt, int64_t made) {
  return {{"input_tokens", prompt.computed_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", prompt.reused_tokens},
          {"output_tokens", made}};
}

json::Value input_json(const std::string& arguments) {
  Result<json::Value> read = json::read_value("input", arguments, kArgumentLimits);
  if (read && read->is_object()) return std::move(read).value();
  return {{"text", arguments}};
}

}  // namespace

MessageWriter::MessageWriter(MessageStyle style, const chat::ChatFormat* format)
    : style_(std::move(style)), format_(format) {}

std::string MessageWriter::call_id(const std::string& known, size_t call) const {
  return known.empty() ? chat::make_call_id(format_->call, style_.message_count, call) : known;
}

json::Value MessageWriter::message_json() const {
  return {{"id", style_.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", style_.model},
          {"content", json::Value::array()},
          {"stop_reason", json::Value()},
          {"stop_sequence", json::Value()}};
}

void MessageWriter::begin(const PromptReport& prompt, std::string& out) {
  json::Value message = message_json();
  message["usage"] = usage_json(prompt, 0);
  event("message_start", {{"type", "message_start"}, {"message", std::move(message)}}, out);
}

void MessageWriter::open(Block kind, json::Value start, std::string& out) {
  close(out);
  open_ = kind;
  ++block_;
  event("content_block_start",
        {{"type", "content_block_start"}, {"index", block_}, {"content_block", std::move(start)}},
        out);
}

void MessageWriter::close(std::string& out) {
  if (open_ == Block::none) return;
  if (open_ == Block::thinking) add_delta(R"("type":"signature_delta","signature":"")", out);
  open_ = Block::none;
  event("content_block_stop", {{"type", "content_block_stop"}, {"index", block_}}, out);
}

void MessageWriter::add_delta(std::string_view delta, std::string& out) const {
  out += fmt::format(
      "event: content_block_delta\n"
      R"(data: {{"type":"content_block_delta","index":{},"delta":{{{}}}}})"
      "\n\n",
      block_, delta);
}

void MessageWriter::add(size_t, const session::AnswerPiece& piece, std::string& out) {
  for (const OutputEvent& one : piece.events) {
    const std::string text = json::escaped(chat::as_utf8(one.text));
    switch (one.kind) {
      case OutputEvent::Kind::text:
        if (open_ != Block::text) open(Block::text, {{"type", "text"}, {"text", ""}}, out);
        add_delta(fmt::format(R"("type":"text_delta","text":"{}")", text), out);
        break;
      case OutputEvent::Kind::reasoning:
        if (open_ != Block::thinking) {
          open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}, out);
        }
        add_delta(fmt::format(R"("type":"thinking_delta","thinking":"{}")", text), out);
        break;
      case OutputEvent::Kind::call_start:
        open(Block::call,
             {{"type", "tool_use"},
              {"id", call_id(one.id, size_t(one.call))},
              {"name", chat::as_utf8(one.text)},
              {"input", json::Value::object()}},
             out);
        break;
      case OutputEvent::Kind::call_arguments:
        add_delta(fmt::format(R"("type":"input_json_delta","partial_json":"{}")", text), out);
        break;
      case OutputEvent::Kind::call_end:
        close(out);
        break;
    }
  }
}

void MessageWriter::end_choice(size_t, const session::Answer& answer, std::string& out) {
  close(out);
  json::Value delta = {{"stop_reason", stop_reason(answer)},
                       {"stop_sequence", stop_sequence(answer)}};
  json::Value last = {{"type", "message_delta"},
                      {"delta", std::move(delta)},
                      {"usage", usage_json(answer.prompt, int64_t(answer.tokens.size()))},
                      {"timings", timings_json(std::span(&answer, 1), 1)},
                      {"memory", memory_json(answer)}};
  if (!answer.cut_by.empty()) last["cut_by"] = answer.cut_by;
  event("message_delta", last, out);
  event("message_stop", {{"type", "message_stop"}}, out);
}

void MessageWriter::end(std::span<const session::Answer> answers, std::string& out) {
  if (style_.is_stream) return;
  const session::Answer& answer = answers.front();
  const chat::Message& said = answer.message;
  json::Value content = json::Value::array();
  if (!said.reasoning.empty()) {
    content.push_back(
        {{"type", "thinking"}, {"thinking", chat::as_utf8(said.reasoning)}, {"signature", ""}});
  }
  if (!answer.text.empty()) {
    content.push_back({{"type", "text"}, {"text", chat::as_utf8(answer.text)}});
  }
  for (size_t call = 0; call < said.calls.size(); ++call) {
    content.push_back({{"type", "tool_use"},
                       {"id", call_id(said.calls[call].id, call)},
                       {"name", said.calls[call].name},
                       {"input", input_json(said.calls[call].arguments)}});
  }
  json::Value whole = message_json();
  whole["content"] = std::move(content);
  whole["stop_reason"] = stop_reason(answer);
  whole["stop_sequence"] = stop_sequence(answer);
  whole["usage"] = usage_json(answer.prompt, int64_t(answer.tokens.size()));
  whole["timings"] = timings_json(answers, 1);
  whole["memory"] = memory_json(answer);
  if (!answer.cut_by.empty()) whole["cut_by"] = answer.cut_by;
  out += json::to_text(whole);
}

void MessageWriter::fail(const Refusal& refusal, std::string& out) {
  out += "event: error\ndata: " + refusal_json(refusal, ErrorForm::anthropic) + "\n\n";
}

}  // namespace cairn::serve::anthropic
