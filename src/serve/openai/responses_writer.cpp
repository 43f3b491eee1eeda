// Items follow each other; each is opened, goes on, and is told whole at its end.
#include "serve/openai/responses_writer.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "chat/conversation.h"
#include "json/reader.h"
#include "serve/kept_table.h"

namespace cairn::serve::openai {

using chat::OutputEvent;

namespace {

bool is_cut(const session::Answer& answer) {
  using session::FinishReason;
  return answer.finish == FinishReason::length || answer.finish == FinishReason::context ||
         answer.finish == FinishReason::memory;
}

std::string_view status_of(const session::Answer& answer) {
  return is_cut(answer) ? "incomplete" : "completed";
}

json::Value tokens_json(const session::Answer& answer) {
  const int64_t made = int64_t(answer.tokens.size());
  return {{"input_tokens", answer.prompt.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", answer.prompt.reused_tokens}}},
          {"output_tokens", made},
          {"output_tokens_details", {{"reasoning_tokens", answer.reasoning_tokens}}},
          {"total_tokens", answer.prompt.prompt_tokens + made}};
}

}  // namespace

ResponsesWriter::ResponsesWriter(ResponsesStyle style, const chat::ChatFormat* format, Keep keep)
    : style_(std::move(style)), format_(format), keep_(std::move(keep)) {}

std::vector<http::Header> ResponsesWriter::headers() const {
  if (!keep_) return {};
  return {kept_header(style_.head.id)};
}

json::Value ResponsesWriter::object_json(std::string_view status) const {
  json::Value object = {
      {"id", style_.head.id},       {"object", "response"},   {"created_at", style_.head.created},
      {"status", status},           {"error", json::Value()}, {"incomplete_details", json::Value()},
      {"model", style_.head.model}, {"output", output_},      {"usage", json::Value()}};
  for (const json::Value::Member& member : style_.told.members()) {
    object[member.key] = member.value;
  }
  return object;
}

json::Value ResponsesWriter::ended_json(const session::Answer& answer) const {
  json::Value object = object_json(status_of(answer));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  object["completed_at"] = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  if (is_cut(answer)) object["incomplete_details"] = {{"reason", "max_output_tokens"}};
  object["usage"] = tokens_json(answer);
  object["timings"] = timings_json(std::span(&answer, 1), 1);
  object["memory"] = memory_json(answer);
  if (!answer.cut_by.empty()) object["cut_by"] = answer.cut_by;
  return object;
}

void ResponsesWriter::event(std::string_view type, json::Value data, std::string& out) {
  if (!style_.is_stream) return;
  json::Value whole = {{"type", type}, {"sequence_number", sequence_++}};
  for (const json::Value::Member& member : data.members()) whole[member.key] = member.value;
  out += fmt::format("event: {}\ndata: {}\n\n", type, json::to_text(whole));
}

void ResponsesWriter::item_event(std::string_view type, json::Value data, std::string& out) {
  json::Value whole = {{"item_id", item_id_}, {"output_index", output_.items().size()}};
  for (const json::Value::Member& member : data.members()) whole[member.key] = member.value;
  event(type, std::move(whole), out);
}

// The only event that comes for each token.
void ResponsesWriter::delta(std::string_view type, std::string_view extra, std::string_view text,
                            std::string& out) {
  const std::string piece = chat::as_utf8(text);
  text_ += piece;
  if (!style_.is_stream) return;
  out += fmt::format(
      "event: {0}\n"
      R"(data: {{"type":"{0}","sequence_number":{1},"item_id":"{2}","output_index":{3})"
      R"({4},"delta":"{5}"}})"
      "\n\n",
      type, sequence_++, item_id_, output_.items().size(), extra, json::escaped(piece));
}

json::Value ResponsesWriter::part_json() const {
  if (open_ == Item::reasoning) return {{"type", "reasoning_text"}, {"text", text_}};
  return {{"type", "output_text"},
          {"text", text_},
          {"annotations", json::Value::array()},
          {"logprobs", json::Value::array()}};
}

json::Value ResponsesWriter::item_json(std::string_view status) const {
  json::Value item = {{"id", item_id_}, {"status", status}};
  json::Value content = json::Value::array();
  if (!text_.empty() && open_ != Item::call) content.push_back(part_json());
  switch (open_) {
    case Item::reasoning:
      item["type"] = "reasoning";
      item["summary"] = json::Value::array();
      item["content"] = std::move(content);
      break;
    case Item::message:
      item["type"] = "message";
      item["role"] = "assistant";
      item["content"] = std::move(content);
      break;
    case Item::call:
      item["type"] = "function_call";
      item["call_id"] = call_id_;
      item["name"] = name_;
      item["arguments"] = text_;
      break;
    case Item::none:
      break;
  }
  return item;
}

void ResponsesWriter::open(Item kind, std::string_view call_id, std::string_view name,
                           std::string& out) {
  close("completed", out);
  open_ = kind;
  const std::string_view prefix = kind == Item::call ? "fc" : kind == Item::message ? "msg" : "rs";
  item_id_ = fmt::format("{}_{}_{}", prefix, style_.head.id, output_.items().size());
  call_id_ = call_id;
  name_ = chat::as_utf8(name);
  event("response.output_item.added",
        {{"output_index", output_.items().size()}, {"item", item_json("in_progress")}}, out);
  if (kind == Item::call) return;
  item_event("response.content_part.added", {{"content_index", 0}, {"part", part_json()}}, out);
}

// What its kind has to be told before its end.
void ResponsesWriter::close_parts(std::string& out) {
  if (open_ == Item::call) {
    item_event("response.function_call_arguments.done", {{"arguments", text_}, {"name", name_}},
               out);
    return;
  }
  if (open_ == Item::message) {
    item_event("response.output_text.done",
               {{"content_index", 0}, {"text", text_}, {"logprobs", json::Value::array()}}, out);
  } else {
    item_event("response.reasoning_text.done", {{"content_index", 0}, {"text", text_}}, out);
  }
  item_event("response.content_part.done", {{"content_index", 0}, {"part", part_json()}}, out);
}

void ResponsesWriter::close(std::string_view status, std::string& out) {
  if (open_ == Item::none) return;
  if (style_.is_stream) close_parts(out);
  json::Value item = item_json(status);
  event("response.output_item.done", {{"output_index", output_.items().size()}, {"item", item}},
        out);
  output_.push_back(std::move(item));
  open_ = Item::none;
  text_.clear();
}

void ResponsesWriter::begin(const PromptReport&, std::string& out) {
  event("response.created", {{"response", object_json("in_progress")}}, out);
  event("response.in_progress", {{"response", object_json("in_progress")}}, out);
}

void ResponsesWriter::add(size_t, const session::AnswerPiece& piece, std::string& out) {
  for (const OutputEvent& one : piece.events) {
    switch (one.kind) {
      case OutputEvent::Kind::text:
        if (open_ != Item::message) open(Item::message, {}, {}, out);
        delta("response.output_text.delta", R"(,"content_index":0,"logprobs":[])", one.text, out);
        break;
      case OutputEvent::Kind::reasoning:
        if (open_ != Item::reasoning) open(Item::reasoning, {}, {}, out);
        delta("response.reasoning_text.delta", R"(,"content_index":0)", one.text, out);
        break;
      case OutputEvent::Kind::call_start:
        open(Item::call,
             one.id.empty()
                 ? chat::make_call_id(format_->call, style_.message_count, size_t(one.call))
                 : one.id,
             one.text, out);
        break;
      case OutputEvent::Kind::call_arguments:
        delta("response.function_call_arguments.delta", "", one.text, out);
        break;
      case OutputEvent::Kind::call_end:
        if (!one.id.empty()) call_id_ = one.id;
        close(one.is_whole ? "completed" : "incomplete", out);
        break;
    }
  }
}

void ResponsesWriter::end_choice(size_t, const session::Answer& answer, std::string& out) {
  close(status_of(answer), out);
  if (!style_.is_stream) return;
  json::Value object = ended_json(answer);
  if (keep_) keep_(answer, object);
  event(is_cut(answer) ? "response.incomplete" : "response.completed",
        {{"response", std::move(object)}}, out);
}

void ResponsesWriter::end(std::span<const session::Answer> answers, std::string& out) {
  if (style_.is_stream) return;
  const session::Answer& answer = answers.front();
  const chat::Message& said = answer.message;
  const auto add_item = [&](Item kind, const std::string& text) {
    open(kind, {}, {}, out);
    text_ = chat::as_utf8(text);
    close(status_of(answer), out);
  };
  if (!said.reasoning.empty()) add_item(Item::reasoning, said.reasoning);
  if (!answer.text.empty()) add_item(Item::message, answer.text);
  for (size_t call = 0; call < said.calls.size(); ++call) {
    const chat::ToolCall& one = said.calls[call];
    open(Item::call,
         one.id.empty() ? chat::make_call_id(format_->call, style_.message_count, call) : one.id,
         one.name, out);
    text_ = one.arguments;
    close("completed", out);
  }
  const json::Value object = ended_json(answer);
  if (keep_) keep_(answer, object);
  out += json::to_text(object);
}

void ResponsesWriter::fail(const Refusal& refusal, std::string& out) {
  json::Value object = object_json("failed");
  object["error"] = {{"code", refusal.code.empty() ? "server_error" : refusal.code},
                     {"message", refusal.message}};
  event("response.failed", {{"response", std::move(object)}}, out);
}

}  // namespace cairn::serve::openai
