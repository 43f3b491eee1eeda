// Lines of "data: {…}".
#include "terminal_chat/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::terminal_chat {

namespace {

constexpr int64_t kCountMax = 1 << 24;

int64_t integer_at(const json::Value* object, std::string_view key) {
  const json::Value* const found = object == nullptr ? nullptr : object->find(key);
  return found == nullptr ? 0 : found->as_integer().value_or(0);
}

// A number of tokens, whatever the server says.
int32_t count_at(const json::Value* object, std::string_view key) {
  return int32_t(std::clamp<int64_t>(integer_at(object, key), 0, kCountMax));
}

double seconds_at(const json::Value* object, std::string_view key) {
  const json::Value* const found = object == nullptr ? nullptr : object->find(key);
  return found == nullptr ? 0 : found->as_real().value_or(0) / 1e3;
}

session::FinishReason reason_of(std::string_view text) {
  if (text == "tool_calls") return session::FinishReason::tool_calls;
  if (text == "length") return session::FinishReason::length;
  return session::FinishReason::stop;
}

}  // namespace

std::string server_error(int status, std::string_view body) {
  Result<json::Value> json = json::read_value("reply", body, {.bytes = 1 << 20});
  if (json) {
    const json::Value* const error = json->find("error");
    const auto message = error == nullptr ? std::nullopt : error->text_at("message");
    if (message) return fmt::format("{} ({})", *message, status);
  }
  return fmt::format("the server answers with status {}", status);
}

void EventReader::add(std::string_view bytes) {
  waiting_ += bytes;
  size_t begin = 0;
  for (size_t end; (end = waiting_.find('\n', begin)) != waiting_.npos; begin = end + 1) {
    const std::string_view line = std::string_view(waiting_).substr(begin, end - begin);
    if (line.starts_with("data: ")) take_event(line.substr(6));
  }
  waiting_.erase(0, begin);
}

void EventReader::take_event(std::string_view data) {
  if (data == "[DONE]") {
    has_ended_ = true;
    return;
  }
  Result<json::Value> event = json::read_value("event", data, {});
  if (!event) return;
  if (event->find_set("error") != nullptr) {
    error_ = server_error(500, data);
    return;
  }
  if (const json::Value* const usage = event->find_set("usage")) {
    answer_.tokens.resize(size_t(count_at(usage, "completion_tokens")));
    answer_.prompt.prompt_tokens = count_at(usage, "prompt_tokens");
    answer_.reasoning_tokens =
        count_at(usage->find("completion_tokens_details"), "reasoning_tokens");
  }
  const json::Value* const choices = event->find("choices");
  if (choices == nullptr || choices->items().empty()) return;
  const json::Value& choice = choices->items().front();
  if (const json::Value* const delta = choice.find("delta")) take_delta(*delta);
  if (const auto reason = choice.text_at("finish_reason")) {
    answer_.finish = reason_of(*reason);
    take_end(*event);
  }
}

void EventReader::take_delta(const json::Value& delta) {
  const auto text = delta.text_at("content"), reasoning = delta.text_at("reasoning_content");
  if (text && !text->empty()) {
    has_text_ = true;
    answer_.text += *text;
    if (hooks_.on_text) hooks_.on_text(*text);
  }
  if (reasoning && !reasoning->empty()) {
    has_text_ = true;
    if (hooks_.on_other) {
      hooks_.on_other(
          {.kind = chat::OutputEvent::Kind::reasoning, .text = std::string(*reasoning)});
    }
  }
}

void EventReader::take_end(const json::Value& event) {
  const json::Value *const memory = event.find("memory"), *const timings = event.find("timings");
  answer_.prompt.reused_tokens = count_at(memory, "reused");
  answer_.prompt.computed_tokens = count_at(memory, "recomputed");
  answer_.prompt.plan.recurrence_steps = count_at(memory, "replayed");
  answer_.prompt.from_store = memory != nullptr && memory->text_at("source") == "disk";
  answer_.left_out_tokens = count_at(memory, "left_out");
  answer_.prompt_seconds = seconds_at(timings, "prompt_ms");
  answer_.first_token_seconds = answer_.prompt_seconds;
  answer_.generation_seconds = seconds_at(timings, "predicted_ms");
  answer_.cut_by = event.text_at("cut_by").value_or("");
  if (const json::Value* const receipt = event.find_set("receipt")) receipt_ = *receipt;
}

Result<session::Answer> EventReader::finish() && {
  if (!error_.empty()) return fail(ErrorCode::io, "{}", error_);
  if (!has_ended_) return fail(ErrorCode::io, "the server's reply broke off");
  return std::move(answer_);
}

}  // namespace cairn::terminal_chat
