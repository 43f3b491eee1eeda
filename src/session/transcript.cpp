// Writing and reading transcripts as JSON.
#include "session/transcript.h"

#include <charconv>

#include "base/file.h"
#include "base/output_file.h"
#include "json/value.h"
#include "sample/state_text.h"

namespace cairn::session {

namespace {

constexpr json::Limits kTranscriptLimits{.bytes = size_t(64) << 20, .values = size_t(1) << 22};

std::string_view type_of(const json::Value& json, std::string_view key) {
  const json::Value* found = json.find(key);
  return found == nullptr ? "none" : found->type_name();
}

// An optional member; its kind is checked.
Status read_text(const json::Value& json, std::string_view key, const std::string& where,
                 std::string& text) {
  const json::Value* found = json.find_set(key);
  if (found == nullptr) return Ok{};
  if (!found->as_text()) {
    return fail(ErrorCode::invalid_data, "{}.{}: expected a string, found {}", where, key,
                found->type_name());
  }
  text = *found->as_text();
  return Ok{};
}

Status read_calls(const json::Value& json, const std::string& where, Message& message) {
  const json::Value* calls = json.find_set("tool_calls");
  if (calls == nullptr) return Ok{};
  if (!calls->is_array()) {
    return fail(ErrorCode::invalid_data, "{}.tool_calls: expected a list, found {}", where,
                calls->type_name());
  }
  for (const json::Value& entry : calls->items()) {
    const std::string place = fmt::format("{}.tool_calls[{}]", where, message.calls.size());
    const json::Value* function = entry.find("function");
    if (function == nullptr || !function->is_object()) {
      return fail(ErrorCode::invalid_data, "{}: expected an object with a function, found {}",
                  place, entry.type_name());
    }
    chat::ToolCall call;
    CAIRN_TRY(read_text(entry, "id", place, call.id));
    CAIRN_TRY(read_text(*function, "name", place, call.name));
    CAIRN_TRY(read_text(*function, "arguments", place, call.arguments));
    message.calls.push_back(std::move(call));
  }
  return Ok{};
}

}  // namespace

Result<std::vector<Token>> read_token_ids(const json::Value& json, const std::string& where) {
  std::vector<Token> tokens;
  std::string text;
  CAIRN_TRY(read_text(json, "token_ids", where, text));
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int32_t id = 0;
    const auto read = std::from_chars(at, end, id);
    if (read.ec != std::errc() || id < 0 || (read.ptr < end && *read.ptr != ' ')) {
      return fail(ErrorCode::invalid_data,
                  "{}.token_ids: expected numbers with blanks between them, found \"{}\"", where,
                  std::string_view(at, size_t(std::min<std::ptrdiff_t>(end - at, 20))));
    }
    tokens.push_back(Token(id));
    at = read.ptr < end ? read.ptr + 1 : end;
  }
  return tokens;
}

Result<std::optional<uint64_t>> read_vocabulary(const json::Value& json, const std::string& path) {
  const json::Value* found = json.find_set("vocabulary");
  if (found == nullptr) return std::optional<uint64_t>();
  const std::string_view text = found->as_text().value_or("");
  uint64_t digest = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), digest, 16);
  if (text.size() != 16 || read.ec != std::errc() || read.ptr != text.data() + text.size()) {
    return fail(ErrorCode::invalid_data, "{}: vocabulary: expected 16 hexadecimal digits, found {}",
                path, found->describe());
  }
  return std::optional<uint64_t>(digest);
}

namespace {

// The seed is text: numbers of JSON are not exact in all programs.
Status read_sampling(const json::Value& json, const std::string& path, Transcript& transcript) {
  const json::Value* found = json.find_set("sampling");
  if (found == nullptr) return Ok{};
  std::string seed, state;
  CAIRN_TRY(read_text(*found, "seed", path + ": sampling", seed));
  CAIRN_TRY(read_text(*found, "state", path + ": sampling", state));
  uint64_t number = 0;
  const auto read = std::from_chars(seed.data(), seed.data() + seed.size(), number);
  if (read.ec != std::errc() || read.ptr != seed.data() + seed.size()) {
    return fail(ErrorCode::invalid_data, "{}: sampling.seed: expected a number, found \"{}\"", path,
                seed.substr(0, 20));
  }
  transcript.seed = number;
  CAIRN_TRY(transcript.sampler, sample::read_sampler_state(state));
  return Ok{};
}

}  // namespace

Result<Message> read_message(const json::Value& json, const std::string& path, size_t index) {
  const std::string where = fmt::format("{}: messages[{}]", path, index);
  if (!json.is_object()) {
    return fail(ErrorCode::invalid_data, "{}: expected an object, found {}", where,
                json.type_name());
  }
  Message message;
  CAIRN_TRY(read_calls(json, where, message));
  for (const std::string_view key : {"role", "content"}) {
    const bool may_lack = !message.calls.empty() && key == "content";
    if (!json.text_at(key) && !may_lack) {
      return fail(ErrorCode::invalid_data, "{}.{}: expected a string, found {}", where, key,
                  type_of(json, key));
    }
  }
  CAIRN_TRY(read_text(json, "role", where, message.role));
  CAIRN_TRY(read_text(json, "content", where, message.content));
  CAIRN_TRY(read_text(json, "reasoning_content", where, message.reasoning));
  CAIRN_TRY(read_text(json, "tool_call_id", where, message.call_id));
  CAIRN_TRY(read_text(json, "name", where, message.name));
  if (message.role == "assistant") {
    CAIRN_TRY(message.tokens, read_token_ids(json, where));
  }
  return message;
}

namespace {

// "12 345 67".
std::string ids_text(std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) {
    if (!text.empty()) text += ' ';
    text += std::to_string(index_of(token));
  }
  return text;
}

}  // namespace

json::Value message_json(const Message& message) {
  json::Value json = {{"role", message.role}, {"content", message.content}};
  if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
  for (const chat::ToolCall& call : message.calls) {
    json["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  if (!message.call_id.empty()) json["tool_call_id"] = message.call_id;
  if (!message.name.empty()) json["name"] = message.name;
  if (!message.tokens.empty()) json["token_ids"] = ids_text(message.tokens);
  return json;
}

namespace {

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

std::string vocabulary_text(uint64_t digest) {
  return fmt::format("{:016x}", digest);
}

json::Value transcript_json(const Transcript& transcript) {
  json::Value json;
  json["messages"] = json::Value::array();
  bool has_ids = false;
  for (const Message& message : transcript.messages) {
    json["messages"].push_back(message_json(message));
    has_ids = has_ids || !message.tokens.empty();
  }
  if (has_ids && transcript.vocabulary) {
    json["vocabulary"] = vocabulary_text(*transcript.vocabulary);
  }
  if (transcript.seed) {
    json["sampling"] = {{"seed", std::to_string(*transcript.seed)}};
    const std::string state = sample::to_text(transcript.sampler);
    if (has_ids && !state.empty()) json["sampling"]["state"] = state;
  }
  return json;
}

Status write_transcript(const std::string& path, const Transcript& transcript) {
  const std::string text = json::to_text(transcript_json(transcript), {.indent = 2}) + "\n";
  return write_file(path, std::as_bytes(std::span(text)), {.is_private = true});
}

Result<Transcript> read_transcript(const std::string& path) {
  CAIRN_TRY(const std::string text, read_file(path, kTranscriptLimits.bytes));
  CAIRN_TRY(const json::Value json, json::read_value(path, text, kTranscriptLimits));
  return read_transcript(path, json);
}

Result<Transcript> read_transcript(const std::string& path, const json::Value& json) {
  const json::Value* list = json.find("messages");
  if (list == nullptr || !list->is_array()) {
    return fail(ErrorCode::invalid_data,
                "{}: expected an object with a list \"messages\", found {}", path,
                json.type_name());
  }
  Transcript transcript;
  CAIRN_TRY(transcript.vocabulary, read_vocabulary(json, path));
  CAIRN_TRY(read_sampling(json, path, transcript));
  std::vector<Message>& messages = transcript.messages;
  for (const json::Value& entry : list->items()) {
    CAIRN_TRY(Message message, read_message(entry, path, messages.size()));
    if (!may_follow(messages, message)) {
      return fail(ErrorCode::invalid_data, "{}: messages[{}].role: expected \"{}\", found \"{}\"",
                  path, messages.size(), expected_role(messages), message.role);
    }
    messages.push_back(std::move(message));
  }
  return transcript;
}

Status take_tokens(std::span<Message> messages, std::optional<uint64_t> vocabulary,
                   const tokenize::Tokenizer& tokenizer, const std::string& path) {
  const bool knows_ids = vocabulary == tokenizer.digest();
  for (size_t index = 0; index < messages.size(); ++index) {
    if (!knows_ids) messages[index].tokens.clear();
    for (const Token token : messages[index].tokens) {
      if (tokenizer.holds(token)) continue;
      return fail(ErrorCode::invalid_data,
                  "{}: messages[{}].token_ids: expected ids below {}, found {}", path, index,
                  tokenizer.token_count(), index_of(token));
    }
  }
  return Ok{};
}

}  // namespace cairn::session
