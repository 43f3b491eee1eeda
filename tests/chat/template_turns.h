// What a model would have had to write for a template to have rendered an answer with calls. For
// tests only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "chat/chat_template.h"
#include "chat/tools.h"
#include "jinja/values/json_value.h"

namespace cairn::chat {

using Json = nlohmann::json;

inline constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"get_weather","description":"Tells the weather.",)"
    R"("parameters":{"type":"object","properties":{"city":{"type":"string","description":"c"},)"
    R"("days":{"type":"integer","description":"d"},"note":{"type":"string","description":"n"},)"
    R"("list":{"type":"array","description":"l","items":{"type":"string"}}},)"
    R"("required":["city"]}}},)"
    R"({"type":"function","function":{"name":"look_up","description":"Looks up.",)"
    R"("parameters":{"type":"object","properties":{"word":{"type":"string","description":"w"},)"
    R"("is_exact":{"type":"boolean","description":"e"},"ratio":{"type":"number",)"
    R"("description":"r"}},"required":["word"]}}}])";

inline const char* const kArguments[2] = {
    R"({"city": "São Paulo", "days": 3, "note": "12", "list": ["x", "y z"]})",
    R"({"word": "a \"b\" <c> {d}\nnext e", "is_exact": true, "ratio": -2.5})"};

inline jinja::Value value_of(std::string_view json) {
  auto value = jinja::parse_json(json);
  CHECK(value);
  return std::move(value).value();
}

inline std::vector<Tool> tools_of(std::string_view json) {
  auto tools = read_tools(json);
  CHECK(tools);
  return std::move(tools).value();
}

struct Render {
  std::string content;
  std::string reasoning;
  int call_count = 0;
  bool is_text = false;
  bool is_null = false;
  bool has_tools = true;
};

inline std::optional<std::string> render(const chat::ChatTemplate& chat_template,
                                         const Render& what, bool is_prompt) {
  // Members in the order of the schemas.
  using Ordered = nlohmann::ordered_json;
  Ordered message = {{"role", "assistant"}};
  message["content"] = what.is_null ? Ordered() : Ordered(what.content);
  if (!what.reasoning.empty()) {
    for (const char* key : {"reasoning", "reasoning_content"}) message[key] = what.reasoning;
  }
  for (int call = 0; call < what.call_count; ++call) {
    const Ordered arguments =
        what.is_text ? Ordered(kArguments[call]) : Ordered::parse(kArguments[call]);
    message["tool_calls"].push_back(
        {{"id", call == 0 ? "abcdef012" : "abcdef013"},
         {"type", "function"},
         {"function",
          {{"name", call == 0 ? "get_weather" : "look_up"}, {"arguments", arguments}}}});
  }
  Ordered messages = {{{"role", "user"}, {"content", "What is up?"}}};
  if (!is_prompt) messages.push_back(message);
  chat::ChatInput input;
  input.messages = value_of(messages.dump());
  if (what.has_tools) input.tools = value_of(kTools);
  input.add_generation_prompt = is_prompt;
  input.clock = jinja::CivilTime{};
  auto rendered = chat_template.render(input);
  if (!rendered) return std::nullopt;
  return rendered->text;
}

// Texts of tokens that end generation.
constexpr std::string_view kTurnEnds[] = {"<|im_end|>",
                                          "<|eot_id|>",
                                          "<|eom_id|>",
                                          "<|END_OF_TURN_TOKEN|>",
                                          "<|end_of_text|>",
                                          "<｜end▁of▁sentence｜>",
                                          "<end_of_sentence>",
                                          "[e~[",
                                          "<SPECIAL_12>",
                                          "<|call|>",
                                          "<turn|>",
                                          "<|tool_response>",
                                          "<|eot|>",
                                          "<|role_end|>",
                                          "<｜hy_eos:opensource｜>",
                                          "<seed:eos>",
                                          "<|calls|>",
                                          "<sep>",
                                          "\n<|end|>",
                                          "</assistant>",
                                          "<|end_of_msg|>",
                                          "</s>"};

// What the model would have had to write for the template to have rendered this turn, and behind
// which prompt.
struct Turn {
  std::string prompt, output;
};

inline std::optional<Turn> model_turn(const chat::ChatTemplate& chat_template, const Render& what) {
  const auto whole = render(chat_template, what, false);
  const auto asked = render(chat_template, what, true);
  const auto plain =
      render(chat_template, {.content = "PLAIN", .has_tools = what.has_tools}, false);
  if (!whole || !asked || !plain) return std::nullopt;
  size_t begin = 0;
  while (begin < std::min(whole->size(), asked->size()) && (*whole)[begin] == (*asked)[begin]) {
    ++begin;
  }
  if (begin < asked->size()) {  // Not within a marker.
    const size_t open = whole->rfind('<', begin);
    const size_t close = whole->rfind('>', begin == 0 ? 0 : begin - 1);
    if (open != std::string::npos && (close == std::string::npos || close < open)) begin = open;
  }
  std::string output = whole->substr(begin);
  for (const std::string_view end : kTurnEnds) {
    output.resize(std::min(output.find(end), output.size()));
  }
  constexpr std::string_view kSeparator = "<|message_sep|>\n\n";
  if (output.ends_with(kSeparator)) output.resize(output.size() - kSeparator.size());
  return Turn{whole->substr(0, begin), output};
}

struct Case {
  Render what;
  Turn turn;
};

inline std::optional<Case> find_case(const chat::ChatTemplate& chat_template, Render what) {
  for (const bool is_text : {false, true}) {
    for (const bool is_null : {false, true}) {
      for (const bool has_tools : {true, false}) {
        if (is_null && !what.content.empty()) continue;
        what.is_text = is_text;
        what.is_null = is_null;
        what.has_tools = has_tools;
        const auto turn = model_turn(chat_template, what);
        // Some templates write only the first of two calls.
        const char* last = what.call_count == 1 ? "get_weather" : "look_up";
        if (!turn || turn->output.find(last) == std::string::npos) continue;
        if (turn->output.find("{\\\"") != std::string::npos) continue;  // JSON within a string.
        return Case{what, *turn};
      }
    }
  }
  return std::nullopt;
}

}  // namespace cairn::chat
