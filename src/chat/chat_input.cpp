// Member by member.
#include "chat/chat_input.h"

#include <string>

#include "jinja/values/json_value.h"

namespace cairn::chat {

namespace {

using jinja::Kind;
using jinja::Value;

Status set_member(ChatInput& input, std::string_view name, const Value& value) {
  const auto wrong = [&](std::string_view expected) {
    return fail(ErrorCode::invalid_data, "{}: expected {}, found {}", name, expected,
                jinja::name_of(value.kind()));
  };
  if (name == "messages") {
    input.messages = value;
  } else if (name == "tools") {
    input.tools = value;
  } else if (name == "documents") {
    input.documents = value;
  } else if (name == "add_generation_prompt") {
    if (!value.is(Kind::boolean)) return wrong("true or false");
    input.add_generation_prompt = value.as_boolean();
  } else if (name == "bos_token" || name == "eos_token") {
    if (!value.is(Kind::string)) return wrong("a string");
    (name == "bos_token" ? input.bos_token : input.eos_token) = value.text();
  } else if (name == "now") {
    if (!value.is(Kind::string)) return wrong("a string");
    input.clock = jinja::parse_civil_time(value.text());
    if (!input.clock) return wrong("a time such as 2026-03-14T09:26:53");
  } else {
    input.variables.emplace_back(std::string(name), value);
  }
  return Ok{};
}

}  // namespace

Result<ChatInput> parse_chat_input(std::string_view json, std::string_view bos_token,
                                   std::string_view eos_token) {
  CAIRN_TRY(const Value value, jinja::parse_json(json));
  ChatInput input;
  input.bos_token = bos_token;
  input.eos_token = eos_token;
  input.clock = jinja::local_time_now();
  if (value.is(Kind::list)) {
    input.messages = value;
    return input;
  }
  if (!value.is(Kind::dict)) {
    return fail(ErrorCode::invalid_data, "messages: expected a list or an object, found {}",
                jinja::name_of(value.kind()));
  }
  for (const auto& [key, member] : value.as<jinja::DictObject>().entries) {
    CAIRN_TRY(set_member(input, key.text(), member));
  }
  if (!input.messages.is(Kind::list)) {
    return fail(ErrorCode::invalid_data, "messages: expected a list, found {}",
                jinja::name_of(input.messages.kind()));
  }
  return input;
}

}  // namespace cairn::chat
