// Writing and reading transcripts as JSON.
#include "session/transcript.h"

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace cairn::session {

namespace {

constexpr size_t kTranscriptBytesMax = size_t(256) << 20;

std::string_view type_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? "none" : found->type_name();
}

// An optional member; its kind is checked.
Status read_text(const nlohmann::json& json, const char* key, const std::string& where,
                 std::string& text) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return Ok{};
  if (!found->is_string()) {
    return fail(ErrorCode::invalid_data, "{}.{}: expected a string, found {}", where, key,
                found->type_name());
  }
  text = found->get<std::string>();
  return Ok{};
}

Status read_calls(const nlohmann::json& json, const std::string& where, Message& message) {
  const auto calls = json.find("tool_calls");
  if (calls == json.end() || calls->is_null()) return Ok{};
  if (!calls->is_array()) {
    return fail(ErrorCode::invalid_data, "{}.tool_calls: expected a list, found {}", where,
                calls->type_name());
  }
  for (const nlohmann::json& entry : *calls) {
    const std::string place = fmt::format("{}.tool_calls[{}]", where, message.calls.size());
    if (!entry.is_object() || !entry.contains("function") || !entry["function"].is_object()) {
      return fail(ErrorCode::invalid_data, "{}: expected an object with a function, found {}",
                  place, entry.type_name());
    }
    chat::ToolCall call;
    CAIRN_TRY(read_text(entry, "id", place, call.id));
    CAIRN_TRY(read_text(entry["function"], "name", place, call.name));
    CAIRN_TRY(read_text(entry["function"], "arguments", place, call.arguments));
    message.calls.push_back(std::move(call));
  }
  return Ok{};
}

Result<Message> read_message(const nlohmann::json& json, const std::string& path, size_t index) {
  const std::string where = fmt::format("{}: messages[{}]", path, index);
  if (!json.is_object()) {
    return fail(ErrorCode::invalid_data, "{}: expected an object, found {}", where,
                json.type_name());
  }
  Message message;
  CAIRN_TRY(read_calls(json, where, message));
  for (const char* key : {"role", "content"}) {
    const auto found = json.find(key);
    const bool may_lack = !message.calls.empty() && std::string_view(key) == "content";
    if ((found == json.end() || !found->is_string()) && !may_lack) {
      return fail(ErrorCode::invalid_data, "{}.{}: expected a string, found {}", where, key,
                  type_of(json, key));
    }
  }
  CAIRN_TRY(read_text(json, "role", where, message.role));
  CAIRN_TRY(read_text(json, "content", where, message.content));
  CAIRN_TRY(read_text(json, "reasoning_content", where, message.reasoning));
  CAIRN_TRY(read_text(json, "tool_call_id", where, message.call_id));
  CAIRN_TRY(read_text(json, "name", where, message.name));
  return message;
}

nlohmann::ordered_json message_json(const Message& message) {
  nlohmann::ordered_json json = {{"role", message.role}, {"content", message.content}};
  if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
  for (const chat::ToolCall& call : message.calls) {
    json["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  if (!message.call_id.empty()) json["tool_call_id"] = message.call_id;
  if (!message.name.empty()) json["name"] = message.name;
  return json;
}

// What may follow: a question, then answers, with results behind the calls.
bool may_follow(const std::vector<Message>& before, const Message& message) {
  if (message.role == "system") return before.empty();
  const bool has_none = before.empty() || before.back().role == "system";
  if (message.role == "user") return has_none || before.back().role == "assistant";
  if (has_none) return false;
  if (message.role == "tool") {
    return before.back().role == "tool" || !before.back().calls.empty();
  }
  return message.role == "assistant" && before.back().role != "assistant";
}

std::string_view expected_role(const std::vector<Message>& before) {
  const bool asks =
      !before.empty() && before.back().role != "system" && before.back().role != "assistant";
  return asks ? "assistant" : "user";
}

}  // namespace

Status write_transcript(const std::string& path, std::span<const Message> messages) {
  nlohmann::ordered_json json;
  json["messages"] = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    json["messages"].push_back(message_json(message));
  }
  const std::string text =
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return write_file_aside(path, std::as_bytes(std::span(text)));
}

Result<std::vector<Message>> read_transcript(const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kTranscriptBytesMax));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const bool has_messages = json.is_object() && json.contains("messages");
  if (!has_messages || !json["messages"].is_array()) {
    return fail(ErrorCode::invalid_data,
                "{}: expected an object with a list \"messages\", found {}", path,
                json.is_discarded() ? "no JSON" : json.type_name());
  }
  std::vector<Message> messages;
  for (const nlohmann::json& entry : json["messages"]) {
    CAIRN_TRY(Message message, read_message(entry, path, messages.size()));
    if (!may_follow(messages, message)) {
      return fail(ErrorCode::invalid_data, "{}: messages[{}].role: expected \"{}\", found \"{}\"",
                  path, messages.size(), expected_role(messages), message.role);
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace cairn::session
