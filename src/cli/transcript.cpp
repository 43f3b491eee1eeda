// Writing and reading transcripts as JSON.
#include "cli/transcript.h"

#include <nlohmann/json.hpp>

#include "base/file.h"

namespace cairn::cli {

namespace {

constexpr size_t kTranscriptBytesMax = size_t(256) << 20;

Result<Message> read_message(const nlohmann::json& json, const std::string& path, size_t index) {
  if (!json.is_object()) {
    return fail(ErrorCode::invalid_data, "{}: messages[{}]: expected an object, found {}", path,
                index, json.type_name());
  }
  Message message;
  for (auto [key, member] : {std::pair{"role", &message.role}, {"content", &message.content}}) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) {
      return fail(ErrorCode::invalid_data, "{}: messages[{}].{}: expected a string, found {}", path,
                  index, key, found == json.end() ? "none" : found->type_name());
    }
    *member = found->get<std::string>();
  }
  return message;
}

}  // namespace

Status write_transcript(const std::string& path, std::span<const Message> messages) {
  nlohmann::ordered_json json;
  json["messages"] = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    json["messages"].push_back({{"role", message.role}, {"content", message.content}});
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
  std::string_view expected = "user";
  for (const nlohmann::json& entry : json["messages"]) {
    CAIRN_TRY(Message message, read_message(entry, path, messages.size()));
    const bool is_system = messages.empty() && message.role == "system";
    if (!is_system && message.role != expected) {
      return fail(ErrorCode::invalid_data, "{}: messages[{}].role: expected \"{}\", found \"{}\"",
                  path, messages.size(), expected, message.role);
    }
    if (!is_system) expected = expected == "user" ? "assistant" : "user";
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace cairn::cli
