// Messages out of JSON.
#include "serve/openai/chat_request.h"

#include <algorithm>
#include <utility>

#include "chat/chat_template.h"

namespace cairn::serve::openai {

namespace {

constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};

// A string, a list of parts that are text, or nothing where that may be.
Checked<std::string> read_content(const json::Value& message, const std::string& where,
                                  bool may_lack) {
  const std::string field = where + ".content";
  const json::Value* const content = message.find_set("content");
  if (content == nullptr) {
    if (may_lack) return std::string();
    return refuse_field(field, "expected a string or a list of parts, found none");
  }
  if (const auto text = content->as_text()) return std::string(*text);
  if (!content->is_array()) {
    return refuse_field(field, "expected a string or a list of parts, found {}",
                        content->describe());
  }
  std::string all;
  for (size_t index = 0; index < content->items().size(); ++index) {
    const json::Value& part = content->items()[index];
    const std::string place = fmt::format("{}[{}]", field, index);
    const std::optional<std::string_view> type = part.text_at("type");
    if (!type) return refuse_field(place, "expected a part with a type, found {}", part.describe());
    if (type != "text" && type != "refusal") {
      Refusal refusal = refuse_field(place, "expected a part of type text, found {}",
                                     part.find("type")->describe());
      refusal.code = "unsupported_content";
      return refusal;
    }
    const std::optional<std::string_view> text = part.text_at(*type);
    if (!text) return refuse_field(place, "expected a text, found none");
    all += *text;
  }
  return all;
}

Checked<std::string> read_text(const json::Value& object, std::string_view name,
                               const std::string& where) {
  const json::Value* const found = object.find_set(name);
  if (found == nullptr) return std::string();
  const auto text = found->as_text();
  if (text) return std::string(*text);
  return refuse_field(fmt::format("{}.{}", where, name), "expected a string, found {}",
                      found->describe());
}

Checked<Ok> read_calls(const json::Value& json, const std::string& where, chat::Message& message) {
  const json::Value* const calls = json.find_set("tool_calls");
  if (calls == nullptr) return Ok{};
  if (!calls->is_array()) {
    return refuse_field(where + ".tool_calls", "expected a list, found {}", calls->describe());
  }
  for (const json::Value& entry : calls->items()) {
    const std::string place = fmt::format("{}.tool_calls[{}]", where, message.calls.size());
    const json::Value* const function = entry.find("function");
    if (function == nullptr || !function->is_object()) {
      return refuse_field(place, "expected an object with a function, found {}", entry.describe());
    }
    chat::ToolCall call;
    CAIRN_TRY(call.id, read_text(entry, "id", place));
    CAIRN_TRY(call.name, read_text(*function, "name", place + ".function"));
    CAIRN_TRY(call.arguments, read_text(*function, "arguments", place + ".function"));
    message.calls.push_back(std::move(call));
  }
  return Ok{};
}

Checked<chat::Message> read_message(const json::Value& json, size_t index, bool knows_developer) {
  const std::string where = fmt::format("messages[{}]", index);
  if (!json.is_object()) {
    return refuse_field(where, "expected an object, found {}", json.describe());
  }
  const std::optional<std::string_view> role = json.text_at("role");
  if (!role || std::find(std::begin(kRoles), std::end(kRoles), *role) == std::end(kRoles)) {
    const json::Value* const found = json.find("role");
    return refuse_field(where + ".role",
                        "expected system, developer, user, assistant or tool, found {}",
                        found == nullptr ? "none" : found->describe());
  }
  chat::Message message{.role = std::string(*role)};
  if (message.role == "developer" && !knows_developer) message.role = "system";
  if (message.role == "function") message.role = "tool";
  const bool is_answer = message.role == "assistant";
  if (is_answer) {
    CAIRN_TRY(read_calls(json, where, message));
    CAIRN_TRY(message.reasoning, read_text(json, "reasoning_content", where));
  }
  CAIRN_TRY(message.content, read_content(json, where, is_answer));
  CAIRN_TRY(message.call_id, read_text(json, "tool_call_id", where));
  CAIRN_TRY(message.name, read_text(json, "name", where));
  return message;
}

bool is_strict(const json::Value& tools) {
  return std::any_of(tools.items().begin(), tools.items().end(), [](const json::Value& tool) {
    const json::Value* const function = tool.find("function");
    return tool.is_true_at("strict") || (function != nullptr && function->is_true_at("strict"));
  });
}

Checked<std::string> read_tool_choice(const Body& body, const json::Value& tools) {
  const json::Value* const choice = body.find("tool_choice");
  // Calls of strict tools fit their schemas, and only a grammar ends an answer behind one call.
  const bool is_free = !is_strict(tools) && body.is_true("parallel_tool_calls", true);
  const std::string automatic = is_free ? "" : "auto";
  if (choice == nullptr || choice->as_text() == "auto") return automatic;
  if (choice->as_text() == "none" || choice->as_text() == "required") {
    return std::string(*choice->as_text());
  }
  const json::Value* const function = choice->find("function");
  const auto name = function == nullptr ? std::nullopt : function->text_at("name");
  if (name && !name->empty()) return std::string(*name);
  return refuse_field("tool_choice",
                      "expected none, auto, required or an object with function.name, found {}",
                      choice->describe());
}

Checked<Ok> read_tools(const Body& body, ChatRequest& request) {
  const json::Value* const tools = body.find("tools");
  if (tools == nullptr || tools->items().empty()) {
    const json::Value* const choice = body.find("tool_choice");
    if (choice == nullptr || choice->as_text() == "none" || choice->as_text() == "auto") {
      return Ok{};
    }
    return refuse_field("tool_choice", "expected tools beside it, found none");
  }
  request.calls_once = !body.is_true("parallel_tool_calls", true);
  request.tools = json::to_text(*tools);
  CAIRN_TRY(request.tool_choice, read_tool_choice(body, *tools));
  return Ok{};
}

void read_reasoning(const Body& body, ChatRequest& request) {
  const auto effort = body.text("reasoning_effort");
  if (!effort) return;
  request.reasons = *effort != "none";
  if (request.reasons) {
    request.variables.emplace_back("reasoning_effort", json::to_text(json::Value(*effort)));
  }
}

Checked<Ok> check_variable(const std::string& name) {
  const std::pair<std::string, jinja::Value> variable(name, jinja::Value::none());
  const Status status = chat::check_variables({&variable, 1});
  if (!status) return refusal_of(status.error(), "chat_template_kwargs");
  return Ok{};
}

// An answer that is continued stands behind the place where the model would begin it.
Checked<Ok> read_answer_begin(const Body& body, ChatRequest& request) {
  const bool continues = body.is_true("continue_final_message");
  if (body.is_true("add_generation_prompt", !continues) == continues) {
    return refuse_field("add_generation_prompt", "expected {} {} continue_final_message, found {}",
                        !continues, continues ? "with" : "without", continues);
  }
  if (!continues) return Ok{};
  const chat::Message& last = request.messages.back();
  if (last.role != "assistant" || last.content.empty() || !last.reasoning.empty() ||
      !last.calls.empty() || request.messages.size() == 1) {
    return refuse_field("continue_final_message",
                        "expected an assistant's message of plain text behind others");
  }
  request.answer_begin = last.content;
  request.messages.pop_back();
  return Ok{};
}

}  // namespace

Checked<std::vector<chat::Message>> read_messages(const Body& body, bool knows_developer) {
  std::vector<chat::Message> messages;
  const json::Value* const list = body.find("messages");
  if (list == nullptr) return messages;
  for (size_t index = 0; index < list->items().size(); ++index) {
    CAIRN_TRY(chat::Message message, read_message(list->items()[index], index, knows_developer));
    messages.push_back(std::move(message));
  }
  return messages;
}

Checked<ChatRequest> read_chat_request(const Body& body, bool knows_developer) {
  ChatRequest request;
  CAIRN_TRY(request.messages, read_messages(body, knows_developer));
  CAIRN_TRY(read_answer_begin(body, request));
  CAIRN_TRY(read_chat_form(body, request));
  return request;
}

Checked<Ok> read_chat_form(const Body& body, ChatRequest& request) {
  CAIRN_TRY(read_tools(body, request));
  read_reasoning(body, request);
  if (const json::Value* const variables = body.find("chat_template_kwargs")) {
    for (const json::Value::Member& member : variables->members()) {
      CAIRN_TRY(check_variable(member.key));
      request.variables.emplace_back(member.key, json::to_text(member.value));
    }
  }
  request.reasoning_tokens_max = int32_t(body.integer("reasoning_tokens").value_or(-1));
  return Ok{};
}

}  // namespace cairn::serve::openai
