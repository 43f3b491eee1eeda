// Lines; a call is told when it is whole.
#include "serve/ollama/answer_writer.h"

#include <fmt/chrono.h>

#include <cmath>
#include <utility>

#include "chat/conversation.h"

namespace cairn::serve::ollama {

using chat::OutputEvent;

namespace {

constexpr json::Limits kArgumentLimits{};

int64_t nanoseconds(double seconds) {
  return int64_t(std::llround(seconds * 1e9));
}

std::string_view done_reason(const session::Answer& answer) {
  using session::FinishReason;
  const bool is_cut = answer.finish == FinishReason::length ||
                      answer.finish == FinishReason::context ||
                      answer.finish == FinishReason::memory;
  return is_cut ? "length" : "stop";
}

}  // namespace

std::string time_text(std::chrono::system_clock::time_point time) {
  using std::chrono::milliseconds;
  const auto since = std::chrono::floor<milliseconds>(time).time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::time_t(seconds.count())),
                     (since - seconds).count());
}

AnswerLines::AnswerLines(AnswerStyle style, const tokenize::Tokenizer* tokenizer,
                         const chat::ChatFormat* format)
    : style_(std::move(style)),
      format_(format),
      begin_time_(Clock::now()),
      probabilities_({.top_count = style_.top_count}, tokenizer) {}

json::Value AnswerLines::line(std::string_view text, std::string_view reasoning,
                              json::Value calls) const {
  json::Value json = {{"model", style_.model},
                      {"created_at", time_text(std::chrono::system_clock::now())}};
  if (style_.is_chat) {
    json::Value message = {{"role", "assistant"}, {"content", chat::as_utf8(text)}};
    if (!reasoning.empty()) message["thinking"] = chat::as_utf8(reasoning);
    if (!calls.items().empty()) message["tool_calls"] = std::move(calls);
    json["message"] = std::move(message);
  } else {
    json["response"] = chat::as_utf8(text);
    if (!reasoning.empty()) json["thinking"] = chat::as_utf8(reasoning);
  }
  json["done"] = false;
  return json;
}

void AnswerLines::gather(size_t, const session::AnswerPiece& piece) {
  if (style_.tells_probabilities) probabilities_.add(piece.probabilities);
}

void AnswerLines::add_probabilities(std::string& out) {
  begin_member("logprobs", out);
  probabilities_.take(out);
  out += '}';
}

void AnswerLines::add_line(const json::Value& json, std::string& out) {
  out += json::to_text(json);
  if (!probabilities_.is_empty()) add_probabilities(out);
  out += '\n';
}

// Arguments are an object here; what is none (a call that was cut off) is told as text.
json::Value AnswerLines::call_json(const chat::ToolCall& call, size_t index) const {
  Result<json::Value> arguments = json::read_value("arguments", call.arguments, kArgumentLimits);
  json::Value function = {{"index", index}, {"name", call.name}};
  if (arguments && arguments->is_object()) {
    function["arguments"] = std::move(arguments).value();
  } else {
    function["arguments"] = {{"text", call.arguments}};
  }
  return {{"id", call.id.empty() ? chat::make_call_id(format_->call, style_.message_count, index)
                                 : call.id},
          {"function", std::move(function)}};
}

void AnswerLines::add(size_t choice, const session::AnswerPiece& piece, std::string& out) {
  gather(choice, piece);
  for (const OutputEvent& event : piece.events) {
    switch (event.kind) {
      case OutputEvent::Kind::text:
        add_line(line(event.text, {}, {}), out);
        break;
      case OutputEvent::Kind::reasoning:
        add_line(line({}, event.text, {}), out);
        break;
      case OutputEvent::Kind::call_start:
        calls_.push_back({.id = event.id, .name = event.text, .arguments = {}});
        break;
      case OutputEvent::Kind::call_arguments:
        calls_.back().arguments += event.text;
        break;
      case OutputEvent::Kind::call_end:
        if (!event.id.empty()) calls_.back().id = event.id;
        json::Value list = json::Value::array();
        list.push_back(call_json(calls_.back(), calls_.size() - 1));
        add_line(line({}, {}, std::move(list)), out);
        break;
    }
  }
}

void AnswerLines::finish(const session::Answer& answer, json::Value& json) {
  json["done"] = true;
  json["done_reason"] = done_reason(answer);
  if (!style_.is_chat && !style_.context.empty()) {
    json::Value context = json::Value::array();
    for (const Token token : style_.context) context.push_back(index_of(token));
    for (const Token token : answer.tokens) context.push_back(index_of(token));
    json["context"] = std::move(context);
  }
  const std::chrono::nanoseconds taken = Clock::now() - begin_time_ + style_.load_time;
  json["total_duration"] = taken.count();
  json["load_duration"] = style_.load_time.count();
  json["prompt_eval_count"] = answer.prompt.prompt_tokens;
  json["prompt_eval_duration"] = nanoseconds(answer.prompt_seconds);
  json["eval_count"] = answer.tokens.size();
  json["eval_duration"] = nanoseconds(answer.generation_seconds);
  json["memory"] = memory_json(answer);
  if (!answer.cut_by.empty()) json["cut_by"] = answer.cut_by;
}

void AnswerLines::end_choice(size_t, const session::Answer& answer, std::string& out) {
  json::Value last = line({}, {}, {});
  finish(answer, last);
  add_line(last, out);
}

void AnswerLines::end(std::span<const session::Answer> answers, std::string& out) {
  if (style_.is_stream) return;
  const session::Answer& answer = answers.front();
  const chat::Message& said = answer.message;
  json::Value calls = json::Value::array();
  for (size_t call = 0; call < said.calls.size(); ++call) {
    calls.push_back(call_json(said.calls[call], call));
  }
  json::Value whole = line(said.content, said.reasoning, std::move(calls));
  finish(answer, whole);
  out += json::to_text(whole);
  if (!style_.tells_probabilities) return;
  probabilities_.complete(answer.probabilities);
  add_probabilities(out);
}

void AnswerLines::fail(const Refusal& refusal, std::string& out) {
  out += refusal_json(refusal, ErrorForm::ollama) + "\n";
}

}  // namespace cairn::serve::ollama
