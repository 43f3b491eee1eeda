// Options and messages.
#include "serve/ollama/chat_request.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace cairn::serve::ollama {

namespace {

constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};

Checked<std::string> read_text(const json::Value& object, std::string_view name,
                               const std::string& where) {
  const json::Value* const found = object.find_set(name);
  if (found == nullptr) return std::string();
  if (const auto text = found->as_text()) return std::string(*text);
  return refuse_field(fmt::format("{}.{}", where, name), "expected a string, found {}",
                      found->describe());
}

Checked<Ok> refuse_images(const json::Value* images, const std::string& field) {
  if (images == nullptr || (images->is_array() && images->items().empty())) return Ok{};
  Refusal refusal = refuse_field(field, "expected none: the model reads text only");
  refusal.code = "unsupported_content";
  return refusal;
}

// {"function": {"name", "arguments": an object}}
Checked<Ok> read_calls(const json::Value& json, const std::string& where, chat::Message& message) {
  const json::Value* const calls = json.find_set("tool_calls");
  if (calls == nullptr) return Ok{};
  const std::string field = where + ".tool_calls";
  for (const json::Value& entry : calls->items()) {
    const json::Value* const function = entry.find("function");
    const auto name = function == nullptr ? std::nullopt : function->text_at("name");
    if (!name) {
      return refuse_field(field, "expected objects with function.name, found {}", entry.describe());
    }
    chat::ToolCall call{.id = std::string(entry.text_at("id").value_or("")),
                        .name = std::string(*name)};
    const json::Value* const arguments = function->find_set("arguments");
    if (arguments != nullptr) {
      const auto text = arguments->as_text();
      call.arguments = text ? std::string(*text) : json::to_text(*arguments);
    }
    message.calls.push_back(std::move(call));
  }
  return Ok{};
}

Checked<chat::Message> read_message(const json::Value& json, size_t index) {
  const std::string where = fmt::format("messages[{}]", index);
  const auto role = json.text_at("role");
  if (!role || std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
    return refuse_field(where, "expected a role (system, user, assistant, tool), found {}",
                        json.describe());
  }
  chat::Message message{.role = std::string(*role)};
  CAIRN_TRY(message.content, read_text(json, "content", where));
  CAIRN_TRY(message.reasoning, read_text(json, "thinking", where));
  CAIRN_TRY(message.name, read_text(json, "tool_name", where));
  CAIRN_TRY(message.call_id, read_text(json, "tool_call_id", where));
  CAIRN_TRY(read_calls(json, where, message));
  CAIRN_TRY(refuse_images(json.find_set("images"), where + ".images"));
  return message;
}

// Templates may want ids, which these messages need not have: results follow their calls in order.
void name_calls(const chat::ChatFormat& format, std::vector<chat::Message>& messages) {
  std::deque<std::string> open;
  for (size_t index = 0; index < messages.size(); ++index) {
    chat::Message& message = messages[index];
    if (message.role == "assistant") open.clear();
    for (size_t call = 0; call < message.calls.size(); ++call) {
      std::string& id = message.calls[call].id;
      if (id.empty()) id = chat::make_call_id(format.call, index, call);
      open.push_back(id);
    }
    if (message.role != "tool" || open.empty()) continue;
    if (message.call_id.empty()) message.call_id = open.front();
    std::erase(open, message.call_id);
  }
}

Checked<Ok> read_thinking(const Body& body, ChatRequest& request) {
  const json::Value* const think = body.find("think");
  if (think == nullptr) return Ok{};
  if (const auto flag = think->as_boolean()) {
    request.reasons = *flag;
  } else if (const auto effort = think->as_text()) {
    request.reasons = *effort != "none";
    request.variables.emplace_back("reasoning_effort", json::to_text(json::Value(*effort)));
  } else {
    return refuse_field("think", "expected true, false or a string, found {}", think->describe());
  }
  return Ok{};
}

Checked<Ok> read_format(const Body& body, session::ConstraintChoice& choice) {
  const json::Value* const format = body.find("format");
  if (format == nullptr || format->as_text() == "") return Ok{};
  if (format->as_text() == "json") {
    choice.json_schema = R"({"type": "object"})";
  } else if (format->is_object()) {
    choice.json_schema = json::to_text(*format);
  } else {
    return refuse_field("format", "expected json or a schema, found {}", format->describe());
  }
  return Ok{};
}

}  // namespace

Checked<AnswerSettings> read_settings(const Body& body, const ServedModel& model) {
  CAIRN_TRY(const Body options, body.part("options", kOllamaOptions));
  CAIRN_TRY(AnswerSettings settings, read_answer_settings(options, model));
  // The context is the server's; less would only make it forget.
  const int32_t context = model.engine().options().context_tokens;
  if (const auto wanted = options.integer("num_ctx"); wanted && *wanted > context) {
    return refuse_field("options.num_ctx", "expected at most {}, the server's context, found {}",
                        context, *wanted);
  }
  CAIRN_TRY(read_probabilities(body, settings));
  CAIRN_TRY(read_format(body, settings.constraint));
  settings.is_stream = body.is_true("stream", true);
  return settings;
}

Checked<ChatRequest> read_chat_request(const Body& body, const chat::ChatFormat& format) {
  ChatRequest request;
  if (const json::Value* const messages = body.find("messages")) {
    for (size_t index = 0; index < messages->items().size(); ++index) {
      CAIRN_TRY(chat::Message message, read_message(messages->items()[index], index));
      request.messages.push_back(std::move(message));
    }
  }
  name_calls(format, request.messages);
  if (const json::Value* const tools = body.find("tools"); tools && !tools->items().empty()) {
    request.tools = json::to_text(*tools);
  }
  CAIRN_TRY(read_thinking(body, request));
  return request;
}

Checked<ChatRequest> read_generate_request(const Body& body) {
  ChatRequest request{.field = "prompt"};
  CAIRN_TRY(refuse_images(body.find("images"), "images"));
  const std::string_view system = body.text("system").value_or("");
  if (!system.empty()) {
    request.messages.push_back({.role = "system", .content = std::string(system)});
  }
  request.messages.push_back(
      {.role = "user", .content = std::string(body.text("prompt").value_or(""))});
  CAIRN_TRY(read_thinking(body, request));
  return request;
}

}  // namespace cairn::serve::ollama
