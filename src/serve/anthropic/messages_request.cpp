// Block by block.
#include "serve/anthropic/messages_request.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cairn::serve::anthropic {

namespace {

Refusal unknown_block(const std::string& where, std::string_view expected,
                      const json::Value& block) {
  const json::Value* const type = block.find("type");
  Refusal refusal = refuse_field(where, "expected a block of type {}, found {}", expected,
                                 type == nullptr ? block.describe() : type->describe());
  refusal.code = "unsupported_content";
  return refusal;
}

// A string, or blocks of type text; nothing is as good as an empty one.
Checked<std::string> read_texts(const json::Value* content, const std::string& where) {
  std::string all;
  if (content == nullptr || content->is_null()) return all;
  if (const auto text = content->as_text()) return std::string(*text);
  if (!content->is_array()) {
    return refuse_field(where, "expected a string or a list of blocks, found {}",
                        content->describe());
  }
  for (size_t index = 0; index < content->items().size(); ++index) {
    const json::Value& block = content->items()[index];
    const auto text = block.text_at("text");
    if (block.text_at("type") != "text" || !text) {
      return unknown_block(fmt::format("{}[{}]", where, index), "text", block);
    }
    if (!all.empty() && !text->empty()) all += '\n';
    all += *text;
  }
  return all;
}

// Results come first in a message of a user; what else it says is a message behind them.
Checked<Ok> read_user_blocks(const json::Value& content, const std::string& where,
                             std::vector<chat::Message>& messages) {
  std::string said;
  bool has_text = false;
  for (size_t index = 0; index < content.items().size(); ++index) {
    const json::Value& block = content.items()[index];
    const std::string place = fmt::format("{}[{}]", where, index);
    const auto type = block.text_at("type");
    if (type == "tool_result") {
      chat::Message result{.role = "tool"};
      const auto id = block.text_at("tool_use_id");
      if (!id) return refuse_field(place + ".tool_use_id", "expected a string, found none");
      result.call_id = *id;
      CAIRN_TRY(result.content, read_texts(block.find("content"), place + ".content"));
      messages.push_back(std::move(result));
    } else if (const auto text = block.text_at("text"); type == "text" && text) {
      if (has_text) said += '\n';
      said += *text;
      has_text = true;
    } else {
      return unknown_block(place, "text or tool_result", block);
    }
  }
  if (has_text) messages.push_back({.role = "user", .content = std::move(said)});
  return Ok{};
}

Checked<chat::Message> read_assistant_blocks(const json::Value& content, const std::string& where) {
  chat::Message message{.role = "assistant"};
  for (size_t index = 0; index < content.items().size(); ++index) {
    const json::Value& block = content.items()[index];
    const std::string place = fmt::format("{}[{}]", where, index);
    const auto type = block.text_at("type");
    const auto text = block.text_at("text"), thinking = block.text_at("thinking");
    const auto name = block.text_at("name");
    if (type == "text" && text) {
      message.content += *text;
    } else if (type == "thinking" && thinking) {
      message.reasoning += *thinking;
    } else if (type == "tool_use" && name) {
      const json::Value* const input = block.find_set("input");
      message.calls.push_back({.id = std::string(block.text_at("id").value_or("")),
                               .name = std::string(*name),
                               .arguments = input == nullptr ? "{}" : json::to_text(*input)});
    } else if (type != "redacted_thinking") {
      return unknown_block(place, "text, thinking or tool_use", block);
    }
  }
  return message;
}

Checked<Ok> read_message(const json::Value& json, size_t index,
                         std::vector<chat::Message>& messages) {
  const std::string where = fmt::format("messages[{}]", index);
  const auto role = json.text_at("role");
  if (role != "user" && role != "assistant" && role != "system") {
    return refuse_field(where, "expected a role (user, assistant), found {}", json.describe());
  }
  const std::string place = where + ".content";
  const json::Value* const content = json.find_set("content");
  if (content == nullptr) {
    return refuse_field(place, "expected a string or a list of blocks, found none");
  }
  if (!content->is_array() || role == "system") {
    CAIRN_TRY(std::string text, read_texts(content, place));
    messages.push_back({.role = std::string(*role), .content = std::move(text)});
  } else if (role == "user") {
    CAIRN_TRY(read_user_blocks(*content, place, messages));
  } else {
    CAIRN_TRY(chat::Message message, read_assistant_blocks(*content, place));
    messages.push_back(std::move(message));
  }
  return Ok{};
}

constexpr size_t kBreakpointsMax = 4;

// Of a list of blocks, behind the messages that were read so far.
Checked<Ok> read_breakpoints(const json::Value* blocks, const std::string& where,
                             ChatRequest& request) {
  if (blocks == nullptr || !blocks->is_array()) return Ok{};
  for (size_t index = 0; index < blocks->items().size(); ++index) {
    const json::Value* const control = blocks->items()[index].find_set("cache_control");
    if (control == nullptr) continue;
    const std::string place = fmt::format("{}[{}].cache_control", where, index);
    const std::string_view time = control->text_at("ttl").value_or("5m");
    if (control->text_at("type") != "ephemeral" || (time != "5m" && time != "1h")) {
      return refuse_field(place, "expected type ephemeral, and ttl 5m or 1h, found others");
    }
    if (request.breakpoints.size() == kBreakpointsMax) {
      return refuse_field(place, "expected at most {} in a request, found more", kBreakpointsMax);
    }
    const auto users = std::ranges::count(request.messages, "user", &chat::Message::role);
    request.breakpoints.push_back(
        {size_t(users), time == "1h" ? std::chrono::hours(1) : std::chrono::minutes(5)});
  }
  return Ok{};
}

Checked<std::string> read_tools(const json::Value& tools) {
  json::Value list = json::Value::array();
  for (size_t index = 0; index < tools.items().size(); ++index) {
    const json::Value& tool = tools.items()[index];
    const auto name = tool.text_at("name");
    const json::Value* const schema = tool.find_set("input_schema");
    if (!name || schema == nullptr || !schema->is_object()) {
      return refuse_field(fmt::format("tools[{}]", index),
                          "expected an object with name and input_schema, found {}",
                          tool.describe());
    }
    json::Value function = {{"name", *name}};
    if (const auto text = tool.text_at("description")) function["description"] = *text;
    function["parameters"] = *schema;
    list.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return json::to_text(list);
}

Checked<Ok> read_tool_choice(const Body& body, ChatRequest& request) {
  const json::Value* const tools = body.find("tools");
  const bool has_tools = tools != nullptr && !tools->items().empty();
  if (has_tools) {
    CAIRN_TRY(request.tools, read_tools(*tools));
    const auto is_strict = [](const json::Value& tool) { return tool.is_true_at("strict"); };
    if (std::any_of(tools->items().begin(), tools->items().end(), is_strict)) {
      request.tool_choice = "auto";
    }
  }
  const json::Value* const choice = body.find("tool_choice");
  if (choice == nullptr) return Ok{};
  const auto type = choice->text_at("type"), name = choice->text_at("name");
  request.calls_once = has_tools && choice->is_true_at("disable_parallel_tool_use");
  if (request.calls_once) request.tool_choice = "auto";  // Only a grammar ends it behind one call.
  if (type == "auto") return Ok{};
  if (type == "none") {
    request.tool_choice = "none";
  } else if (!has_tools) {
    return refuse_field("tool_choice", "expected tools beside it, found none");
  } else if (type == "any") {
    request.tool_choice = "required";
  } else if (type == "tool" && name && !name->empty()) {
    request.tool_choice = *name;
  } else {
    return refuse_field("tool_choice", "expected auto, any, none or tool with a name, found {}",
                        choice->describe());
  }
  return Ok{};
}

// Who does not ask for thinking does not expect any.
Checked<Ok> read_thinking(const Body& body, ChatRequest& request) {
  request.reasons = false;
  const json::Value* const thinking = body.find("thinking");
  if (thinking == nullptr) return Ok{};
  const auto type = thinking->text_at("type");
  if (type == "disabled") return Ok{};
  if (type != "enabled" && type != "adaptive") {
    return refuse_field("thinking.type", "expected enabled, adaptive or disabled, found {}",
                        thinking->describe());
  }
  request.reasons = true;
  const json::Value* const budget = thinking->find_set("budget_tokens");
  if (budget == nullptr) return Ok{};
  const auto tokens = budget->is_number() ? budget->as_integer() : std::nullopt;
  if (!tokens || *tokens < 0 || *tokens > INT32_MAX) {
    return refuse_field("thinking.budget_tokens", "expected a whole number, found {}",
                        budget->describe());
  }
  request.reasoning_tokens_max = int32_t(*tokens);
  return Ok{};
}

// How much is to be thought: as `reasoning_effort` of chat completions, it is told to the template.
// Where nothing is to be thought it is not: templates take it as the wish for some.
Checked<Ok> read_effort(const Body& body, ChatRequest& request) {
  constexpr std::string_view kEfforts[] = {"low", "medium", "high", "xhigh", "max"};
  const json::Value* const config = body.find("output_config");
  const json::Value* const effort = config == nullptr ? nullptr : config->find_set("effort");
  if (effort == nullptr) return Ok{};
  const auto word = effort->as_text();
  if (!word || std::ranges::find(kEfforts, *word) == std::end(kEfforts)) {
    return refuse_field("output_config.effort",
                        "expected low, medium, high, xhigh or max, found {}", effort->describe());
  }
  if (request.reasons) {
    request.variables.emplace_back("reasoning_effort", json::to_text(json::Value(*word)));
  }
  return Ok{};
}

// An assistant's message at the end is the beginning of the answer.
void take_answer_begin(ChatRequest& request) {
  if (request.messages.empty()) return;
  chat::Message& last = request.messages.back();
  if (last.role != "assistant" || !last.calls.empty()) return;
  request.answer_begin = std::move(last.content);
  request.reasons = false;
  request.messages.pop_back();
}

}  // namespace

Checked<ChatRequest> read_messages_request(const Body& body) {
  ChatRequest request;
  CAIRN_TRY(std::string system, read_texts(body.find("system"), "system"));
  CAIRN_TRY(read_breakpoints(body.find("tools"), "tools", request));
  CAIRN_TRY(read_breakpoints(body.find("system"), "system", request));
  if (!system.empty()) request.messages.push_back({.role = "system", .content = std::move(system)});
  const std::vector<json::Value>& messages = body.find("messages")->items();
  for (size_t index = 0; index < messages.size(); ++index) {
    CAIRN_TRY(read_message(messages[index], index, request.messages));
    CAIRN_TRY(read_breakpoints(messages[index].find_set("content"),
                               fmt::format("messages[{}].content", index), request));
  }
  CAIRN_TRY(read_tool_choice(body, request));
  CAIRN_TRY(read_thinking(body, request));
  take_answer_begin(request);
  CAIRN_TRY(read_effort(body, request));
  if (request.messages.empty()) {
    return refuse_field("messages", "expected a message with content to answer, found none");
  }
  return request;
}

Checked<session::ConstraintChoice> read_output_form(const Body& body) {
  session::ConstraintChoice choice;
  const json::Value* const config = body.find("output_config");
  const json::Value* const format = config == nullptr ? nullptr : config->find_set("format");
  if (format == nullptr) return choice;
  const json::Value* const schema = format->find_set("schema");
  if (format->text_at("type") != "json_schema" || schema == nullptr) {
    return refuse_field("output_config.format", "expected json_schema with a schema, found {}",
                        format->describe());
  }
  choice.json_schema = json::to_text(*schema);
  return choice;
}

}  // namespace cairn::serve::anthropic
