// Item by item. What an assistant said, thought and called in a row is one message.
#include "serve/openai/responses_request.h"

#include <algorithm>
#include <utility>

namespace cairn::serve::openai {

namespace {

// A string, or parts with a text.
Checked<std::string> read_parts(const json::Value* content, const std::string& where) {
  std::string all;
  if (content == nullptr || content->is_null()) return all;
  if (const auto text = content->as_text()) return std::string(*text);
  for (size_t index = 0; index < content->items().size(); ++index) {
    const json::Value& part = content->items()[index];
    const auto type = part.text_at("type");
    const auto text = part.text_at(type == "refusal" ? "refusal" : "text");
    if (!type || !text || type == "input_image" || type == "input_file") {
      Refusal refusal = refuse_field(fmt::format("{}[{}]", where, index),
                                     "expected a part that is text, found {}", part.describe());
      refusal.code = "unsupported_content";
      return refusal;
    }
    all += *text;
  }
  if (content->is_array()) return all;
  return refuse_field(where, "expected a string or a list of parts, found {}", content->describe());
}

class ItemReader {
 public:
  ItemReader(std::vector<chat::Message>* messages, bool knows_developer)
      : messages_(messages), knows_developer_(knows_developer) {}

  Checked<Ok> read(const json::Value& item, const std::string& where) {
    const auto type = item.text_at("type"), role = item.text_at("role");
    if (role && (!type || type == "message")) return read_message(item, std::string(*role), where);
    if (type == "function_call") return read_call(item, where);
    if (type == "function_call_output") return read_output(item, where);
    if (type == "reasoning") {
      CAIRN_TRY(const std::string text, read_parts(item.find("content"), where + ".content"));
      assistant().reasoning += text;
      return Ok{};
    }
    return refuse_field(where,
                        "expected a message, function_call, function_call_output or reasoning, "
                        "found {}",
                        item.describe());
  }

 private:
  // The one that the last items belong to, or a new one.
  chat::Message& assistant() {
    if (!is_open_) messages_->push_back({.role = "assistant", .content = ""});
    is_open_ = true;
    return messages_->back();
  }
  Checked<Ok> read_message(const json::Value& item, std::string role, const std::string& where) {
    CAIRN_TRY(std::string text, read_parts(item.find("content"), where + ".content"));
    if (role == "assistant") {
      assistant().content += text;
      return Ok{};
    }
    if (role == "developer" && !knows_developer_) role = "system";
    if (role != "user" && role != "system" && role != "developer") {
      return refuse_field(where + ".role",
                          "expected user, assistant, system or developer, found {}",
                          json::quoted(role));
    }
    is_open_ = false;
    messages_->push_back({.role = std::move(role), .content = std::move(text)});
    return Ok{};
  }
  Checked<Ok> read_call(const json::Value& item, const std::string& where) {
    const auto name = item.text_at("name"), id = item.text_at("call_id");
    if (!name || !id) {
      return refuse_field(where, "expected a call with name and call_id, found {}",
                          item.describe());
    }
    assistant().calls.push_back({.id = std::string(*id),
                                 .name = std::string(*name),
                                 .arguments = std::string(item.text_at("arguments").value_or(""))});
    return Ok{};
  }
  Checked<Ok> read_output(const json::Value& item, const std::string& where) {
    const auto id = item.text_at("call_id");
    if (!id) return refuse_field(where + ".call_id", "expected a string, found none");
    CAIRN_TRY(std::string output, read_parts(item.find("output"), where + ".output"));
    is_open_ = false;
    messages_->push_back(
        {.role = "tool", .content = std::move(output), .call_id = std::string(*id)});
    return Ok{};
  }

  std::vector<chat::Message>* messages_;
  bool knows_developer_;
  bool is_open_ = false;  // The last message is an assistant's that may go on.
};

Checked<Ok> read_function_tools(const Body& body, ChatRequest& request) {
  const json::Value *const tools = body.find("tools"), *const choice = body.find("tool_choice");
  const bool has_tools = tools != nullptr && !tools->items().empty();
  if (!has_tools) {
    if (choice == nullptr || choice->as_text() == "auto" || choice->as_text() == "none") {
      return Ok{};
    }
    return refuse_field("tool_choice", "expected tools beside it, found none");
  }
  request.calls_once = !body.is_true("parallel_tool_calls", true);
  if (request.calls_once) request.tool_choice = "auto";  // Only a grammar ends it behind one call.
  json::Value list = json::Value::array();
  for (size_t index = 0; index < tools->items().size(); ++index) {
    const json::Value& tool = tools->items()[index];
    const auto name = tool.text_at("name");
    if (tool.text_at("type") != "function" || !name) {
      return refuse_field(fmt::format("tools[{}]", index),
                          "expected a tool of type function with a name, found {}",
                          tool.describe());
    }
    json::Value function = {{"name", *name}};
    for (const std::string_view key : {"description", "parameters"}) {
      if (const json::Value* const found = tool.find_set(key)) function[key] = *found;
    }
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
    if (tool.is_true_at("strict")) request.tool_choice = "auto";
  }
  request.tools = json::to_text(list);
  if (choice == nullptr || choice->as_text() == "auto") return Ok{};
  if (choice->as_text() == "none" || choice->as_text() == "required") {
    request.tool_choice = *choice->as_text();
  } else if (const auto name = choice->text_at("name"); name && !name->empty()) {
    request.tool_choice = *name;
  } else {
    return refuse_field("tool_choice", "expected none, auto, required or a function, found {}",
                        choice->describe());
  }
  return Ok{};
}

}  // namespace

Checked<ChatRequest> read_responses_request(const Body& body,
                                            std::span<const chat::Message> earlier,
                                            bool knows_developer) {
  ChatRequest request{.field = "input"};
  if (body.text("truncation").value_or("disabled") != "disabled") {
    return refuse_field("truncation", "expected disabled: nothing is left out of an input");
  }
  if (const auto told = body.text("instructions"); told && !told->empty()) {
    request.messages.push_back({.role = "system", .content = std::string(*told)});
  }
  request.messages.insert(request.messages.end(), earlier.begin(), earlier.end());
  const json::Value& input = *body.find("input");
  if (const auto text = input.as_text()) {
    request.messages.push_back({.role = "user", .content = std::string(*text)});
  } else if (!input.is_array() || input.items().empty()) {
    return refuse_field("input", "expected a string or a list of items, found {}",
                        input.describe());
  }
  ItemReader items(&request.messages, knows_developer);
  for (size_t index = 0; index < input.items().size(); ++index) {
    CAIRN_TRY(items.read(input.items()[index], fmt::format("input[{}]", index)));
  }
  CAIRN_TRY(read_function_tools(body, request));
  const json::Value* const reasoning = body.find("reasoning");
  const auto effort = reasoning == nullptr ? std::nullopt : reasoning->text_at("effort");
  if (effort) {
    request.reasons = *effort != "none";
    if (request.reasons) {
      request.variables.emplace_back("reasoning_effort", json::to_text(json::Value(*effort)));
    }
  }
  return request;
}

Checked<session::ConstraintChoice> read_text_form(const Body& body) {
  session::ConstraintChoice choice;
  const json::Value* const text = body.find("text");
  const json::Value* const format = text == nullptr ? nullptr : text->find_set("format");
  if (format == nullptr) return choice;
  const auto type = format->text_at("type");
  if (type == "text") return choice;
  const json::Value* const schema = format->find_set("schema");
  if (type == "json_object") {
    choice.json_schema = R"({"type": "object"})";
  } else if (type == "json_schema" && schema != nullptr) {
    choice.json_schema = json::to_text(*schema);
  } else {
    return refuse_field("text.format", "expected text, json_object or json_schema, found {}",
                        format->describe());
  }
  return choice;
}

}  // namespace cairn::serve::openai
