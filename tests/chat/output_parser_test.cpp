// Calls that templates write come back as they went in, however their text is cut; and what models
// write that no template does.
#include "chat/output_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "chat/detect.h"
#include "tests/chat/template_fixtures.h"
#include "text/json_value.h"

namespace cairn::chat {
namespace {

using Json = nlohmann::json;
using Kind = OutputEvent::Kind;

struct Call {
  std::string name, id, arguments;
  bool is_whole = false;
};

struct Reading {
  std::string text, reasoning;
  std::vector<Call> calls;
  std::vector<OutputEvent> events;  // Neighbours of one kind joined.
};

void append(std::vector<OutputEvent>& all, const std::vector<OutputEvent>& more) {
  for (const OutputEvent& event : more) {
    const bool is_piece = event.kind != Kind::call_start && event.kind != Kind::call_end;
    if (is_piece && !all.empty() && all.back().kind == event.kind &&
        all.back().call == event.call) {
      all.back().text += event.text;
    } else {
      all.push_back(event);
    }
  }
}

Reading sorted(std::vector<OutputEvent> events) {
  Reading reading;
  for (const OutputEvent& event : events) {
    if (event.kind == Kind::text) reading.text += event.text;
    if (event.kind == Kind::reasoning) reading.reasoning += event.text;
    if (event.kind == Kind::call_start) reading.calls.push_back({event.text, event.id, "", false});
    if (event.kind == Kind::call_arguments) reading.calls.back().arguments += event.text;
    if (event.kind == Kind::call_end) {
      reading.calls.back().is_whole = event.is_whole;
      reading.calls.back().id = event.id;
    }
  }
  reading.events = std::move(events);
  return reading;
}

// `cuts`: pieces of random sizes, or, without it, the whole at once.
Reading read(const ChatFormat& format, const ParserOptions& options, std::string_view output,
             std::mt19937* cuts = nullptr, bool is_cut = false) {
  OutputParser parser(format, options);
  std::vector<OutputEvent> events;
  while (!output.empty()) {
    size_t bytes = output.size();
    if (cuts != nullptr) bytes = std::min<size_t>(output.size(), 1 + (*cuts)() % 7);
    append(events, parser.push(output.substr(0, bytes)));
    output.remove_prefix(bytes);
  }
  append(events, parser.finish(is_cut));
  return sorted(std::move(events));
}

constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"get_weather","description":"Tells the weather.",)"
    R"("parameters":{"type":"object","properties":{"city":{"type":"string","description":"c"},)"
    R"("days":{"type":"integer","description":"d"},"note":{"type":"string","description":"n"},)"
    R"("list":{"type":"array","description":"l","items":{"type":"string"}}},)"
    R"("required":["city"]}}},)"
    R"({"type":"function","function":{"name":"look_up","description":"Looks up.",)"
    R"("parameters":{"type":"object","properties":{"word":{"type":"string","description":"w"},)"
    R"("is_exact":{"type":"boolean","description":"e"},"ratio":{"type":"number",)"
    R"("description":"r"}},"required":["word"]}}}])";

const char* const kArguments[2] = {
    R"({"city": "São Paulo", "days": 3, "note": "12", "list": ["x", "y z"]})",
    R"({"word": "a \"b\" <c> {d}\nnext e", "is_exact": true, "ratio": -2.5})"};

text::Value value_of(std::string_view json) {
  auto value = text::parse_json(json);
  CHECK(value);
  return std::move(value).value();
}

std::vector<Tool> tools_of(std::string_view json) {
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

std::optional<std::string> render(const text::ChatTemplate& chat_template, const Render& what,
                                  bool is_prompt) {
  Json message = {{"role", "assistant"}};
  message["content"] = what.is_null ? Json() : Json(what.content);
  if (!what.reasoning.empty()) {
    for (const char* key : {"reasoning", "reasoning_content"}) message[key] = what.reasoning;
  }
  for (int call = 0; call < what.call_count; ++call) {
    const Json arguments = what.is_text ? Json(kArguments[call]) : Json::parse(kArguments[call]);
    message["tool_calls"].push_back(
        {{"id", call == 0 ? "abcdef012" : "abcdef013"},
         {"type", "function"},
         {"function",
          {{"name", call == 0 ? "get_weather" : "look_up"}, {"arguments", arguments}}}});
  }
  Json messages = {{{"role", "user"}, {"content", "What is up?"}}};
  if (!is_prompt) messages.push_back(message);
  text::ChatInput input;
  input.messages = value_of(messages.dump());
  if (what.has_tools) input.tools = value_of(kTools);
  input.add_generation_prompt = is_prompt;
  input.clock = text::CivilTime{};
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

std::optional<Turn> model_turn(const text::ChatTemplate& chat_template, const Render& what) {
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

std::optional<Case> find_case(const text::ChatTemplate& chat_template, Render what) {
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

void check_calls(const Reading& reading, int call_count, const std::string& where) {
  ASSERT_EQ(int(reading.calls.size()), call_count) << where;
  for (int call = 0; call < call_count; ++call) {
    const Call& found = reading.calls[size_t(call)];
    EXPECT_EQ(found.name, call == 0 ? "get_weather" : "look_up") << where;
    EXPECT_TRUE(found.is_whole) << where;
    EXPECT_EQ(Json::parse(found.arguments, nullptr, false), Json::parse(kArguments[call]))
        << where << "\n"
        << found.arguments;
  }
}

TEST(OutputParser, EveryTemplatesCallsComeBack) {
  const auto templates = shared_templates();
  if (templates.empty()) GTEST_SKIP() << "no shared fixtures here";
  int with_calls = 0, with_two = 0, with_text = 0;
  const std::vector<Tool> tools = tools_of(kTools);
  for (const auto& [name, chat_template] : templates) {
    const ChatFormat format = detect(chat_template);
    for (const int call_count : {1, 2}) {
      for (const char* content : {"", "Let me look."}) {
        const auto found = find_case(chat_template, {.content = content, .call_count = call_count});
        if (!found) continue;
        (*content != 0 ? with_text : call_count == 1 ? with_calls : with_two) += 1;
        const std::string where = name + ": " + found->turn.output;
        const Reading reading =
            read(format, {.tools = tools, .prompt = found->turn.prompt}, found->turn.output);
        check_calls(reading, call_count, where);
        // This one writes its instructions behind the question, so they are in the way.
        if (name.find("command-r-plus") != std::string::npos) continue;
        if (*content != 0 && found->turn.output.find(content) != std::string::npos) {
          EXPECT_EQ(reading.text + reading.reasoning, content) << where;
        } else {
          EXPECT_EQ(reading.text + reading.reasoning, "") << where;
        }
      }
    }
  }
  std::printf("templates with calls: %d, with two: %d, with text: %d\n", with_calls, with_two,
              with_text);
  EXPECT_EQ(with_calls, 60);
  EXPECT_EQ(with_two, 54);
}

// Outputs of every template, whole and in pieces of all sizes.
TEST(OutputParser, CutsDoNotMatter) {
  const auto templates = shared_templates();
  if (templates.empty()) GTEST_SKIP() << "no shared fixtures here";
  const std::vector<Tool> tools = tools_of(kTools);
  std::mt19937 random(20261121);
  int checked = 0;
  for (const auto& [name, chat_template] : templates) {
    const ChatFormat format = detect(chat_template);
    const auto found = find_case(chat_template, {.content = "Æther: é, 日本.\n\n",
                                                 .reasoning = "Hm.\nLet <me> [think] {…}.",
                                                 .call_count = 1});
    std::string output = "Æther: é, 日本 <b>[x]</b> {\"a\": 1}\n\n";
    if (found) output = found->turn.output + " Then ~ text.\n";
    const std::string prompt = found ? found->turn.prompt : "";
    for (int variant = 0; variant < 40; ++variant) {
      // Damaged too: some bytes left out or repeated.
      std::string damaged = output;
      for (int change = 0; change < variant / 10; ++change) {
        const size_t at = random() % damaged.size();
        const size_t bytes = std::min<size_t>(1 + random() % 12, damaged.size() - at);
        if (random() % 2 == 0) {
          damaged.erase(at, bytes);
        } else {
          damaged.insert(at, damaged.substr(at, bytes));
        }
        if (damaged.empty()) damaged = "x";
      }
      const ParserOptions options{.tools = tools, .stop = {"~ te"}, .prompt = prompt};
      const Reading whole = read(format, options, damaged);
      const Reading pieces = read(format, options, damaged, &random);
      ASSERT_EQ(whole.events.size(), pieces.events.size()) << name << ": " << damaged;
      for (size_t event = 0; event < whole.events.size(); ++event) {
        ASSERT_TRUE(whole.events[event] == pieces.events[event])
            << name << ": " << damaged << "\nwhole: " << whole.events[event].text
            << "\npieces: " << pieces.events[event].text;
      }
      ++checked;
    }
  }
  std::printf("outputs read whole and in pieces: %d\n", checked);
}

ChatFormat hermes() {
  ChatFormat format;
  format.call.shape = CallShape::object;
  format.call.header = {{"<tool_call>", CallField::name}};
  format.call.close = "</tool_call>";
  format.call.name_key = "name";
  format.call.arguments_key = "arguments";
  format.reasoning_open = "<think>";
  format.reasoning_close = "</think>";
  return format;
}

ChatFormat coder() {
  ChatFormat format = hermes();
  format.call.shape = CallShape::parameters;
  format.call.header = {{"<tool_call>\n<function=", CallField::name}};
  format.call.arguments_open = ">";
  format.call.other_open = "<function=";
  format.call.key_open = "<parameter=";
  format.call.key_end = ">";
  format.call.value_close = "</parameter>";
  format.call.has_margin = true;
  format.call.close = "</function>\n</tool_call>";
  return format;
}

ChatFormat llama() {
  ChatFormat format = hermes();
  format.call.header = {{"", CallField::name}};
  format.call.close.clear();
  format.call.other_open = "<|python_tag|>";
  return format;
}

ChatFormat harmony() {
  ChatFormat format;
  format.call.shape = CallShape::arguments;
  format.call.header = {{"", CallField::name}};
  format.channels = {"<|message|>", {"<|end|>", "<|call|>", "<|return|>"}};
  return format;
}

// What is told after each piece, as one line.
std::string told(OutputParser& parser, std::string_view piece) {
  std::string line;
  for (const OutputEvent& event : parser.push(piece)) {
    constexpr const char* kNames[] = {"text ", "reasoning ", "call ", "arguments ", "end "};
    line += kNames[size_t(event.kind)] + event.text + (event.is_whole ? ";" : "cut;");
  }
  return line;
}

TEST(OutputParser, NothingThatMayBecomeAMarkerIsTold) {
  OutputParser parser(hermes(), {});
  EXPECT_EQ(told(parser, "Hi <"), "text Hi;");
  EXPECT_EQ(told(parser, "b> <tool_"), "text  <b>;");
  EXPECT_EQ(told(parser, "c"), "");
  EXPECT_EQ(told(parser, "all>{\"name\""), "");
  EXPECT_EQ(told(parser, ": \"f\", \"arguments\": {\"a\""), "call f;arguments {\"a\";");
  EXPECT_EQ(told(parser, ": 1}"), "arguments : 1};");
  EXPECT_EQ(told(parser, "}"), "end ;");
  EXPECT_EQ(told(parser, "</tool_call>\n"), "");
  EXPECT_EQ(told(parser, "Done."), "text Done.;");
}

TEST(OutputParser, ACallThatIsCutIsNoText) {
  for (const std::string_view output :
       {"<tool_call>", "<tool_call>{\"name\": \"f", "<tool_call>{\"arguments\": {\"a\": 1}"}) {
    EXPECT_TRUE(read(hermes(), {}, output, nullptr, true).events.empty()) << output;
  }
  const Reading reading =
      read(hermes(), {}, "A <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", nullptr, true);
  ASSERT_EQ(reading.calls.size(), 1u);
  EXPECT_FALSE(reading.calls[0].is_whole);
  EXPECT_EQ(reading.text, "A");
}

TEST(OutputParser, HalfAMarkerAtTheEndIsTextOnlyIfTheModelEndedThere) {
  EXPECT_EQ(read(hermes(), {}, "1 < 2 <tool").text, "1 < 2 <tool");
  EXPECT_EQ(read(hermes(), {}, "1 < 2 <tool", nullptr, true).text, "1 < 2 ");
}

TEST(OutputParser, WhatOnlyLooksLikeACallIsText) {
  const std::string prose = "The marker <tool_call> opens a call.";
  EXPECT_EQ(read(hermes(), {}, prose).text, prose);
  const std::string json = R"({"name": "unknown", "parameters": {}})";
  const ParserOptions options{.tools = tools_of(kTools)};
  EXPECT_EQ(read(llama(), options, json).text, json);
  EXPECT_EQ(read(llama(), options, R"({"a": [1, 2]})").text, R"({"a": [1, 2]})");
  EXPECT_EQ(read(llama(), options, R"({"a)").text, R"({"a)");
  EXPECT_EQ(read(hermes(), {.reads_calls = false}, "<tool_call>x").text, "<tool_call>x");
}

TEST(OutputParser, LlamaWritesBareObjects) {
  const ParserOptions options{.tools = tools_of(kTools)};
  for (const char* output :
       {R"({"name": "look_up", "parameters": {"word": "x"}})",
        R"(<|python_tag|>{"type": "function", "name": "look_up", "parameters": {"word": "x"}})",
        R"({"parameters": {"word": "x"}, "name": "look_up"})",
        R"({"type": "function", "function": {"name": "look_up", "arguments": {"word": "x"}}})"}) {
    const Reading reading = read(llama(), options, output);
    ASSERT_EQ(reading.calls.size(), 1u) << output;
    EXPECT_EQ(reading.calls[0].name, "look_up");
    EXPECT_EQ(reading.calls[0].arguments, R"({"word": "x"})");
    EXPECT_TRUE(reading.calls[0].is_whole);
    EXPECT_EQ(reading.text, "");
  }
}

TEST(OutputParser, ArgumentsMayBeAStringThatHoldsJson) {
  const Reading reading = read(
      hermes(), {},
      R"(<tool_call>{"name": "f", "arguments": "{\"a\": \"\\n\u00e9\ud83d\ude00\"}"}</tool_call>)");
  ASSERT_EQ(reading.calls.size(), 1u);
  EXPECT_EQ(reading.calls[0].arguments, "{\"a\": \"\\né😀\"}");
}

TEST(OutputParser, ParametersTakeTheirTypesFromTheTool) {
  const Reading reading =
      read(coder(), {.tools = tools_of(kTools)},
           "<function=get_weather>\n<parameter=city>\n12\n</parameter>\n"
           "<parameter=days>\n12\n</parameter>\n<parameter=note>\n\n a\n</b>\n\n"
           "</parameter>\n<parameter=other>\nTrue\n</parameter>\n</function>");
  ASSERT_EQ(reading.calls.size(), 1u);
  EXPECT_TRUE(reading.calls[0].is_whole);
  EXPECT_EQ(reading.calls[0].arguments,
            R"({"city": "12", "days": 12, "note": "\n a\n</b>\n", "other": true})");
  const Reading empty = read(coder(), {}, "<tool_call><function=f></function></tool_call>");
  ASSERT_EQ(empty.calls.size(), 1u);
  EXPECT_EQ(empty.calls[0].arguments, "{}");
}

TEST(OutputParser, HarmonyMessagesAreToldApart) {
  const Reading reading = read(
      harmony(), {.prompt = "<|start|>assistant"},
      "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>"
      "I look.<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json"
      "<|message|>{\"a\": 1}<|call|>");
  EXPECT_EQ(reading.reasoning, "Hm.");
  EXPECT_EQ(reading.text, "I look.");
  ASSERT_EQ(reading.calls.size(), 1u);
  EXPECT_EQ(reading.calls[0].name, "f");
  EXPECT_EQ(reading.calls[0].arguments, "{\"a\": 1}");
  const Reading final = read(harmony(), {}, "<|channel|>final<|message|>Yes <|x|>.<|return|>");
  EXPECT_EQ(final.text, "Yes <|x|>.");
}

TEST(OutputParser, ReasoningBeginsInThePromptOrBeforeText) {
  EXPECT_EQ(read(hermes(), {.prompt = "a<think>\n"}, "Hm.\n</think>\n\nYes.").reasoning, "Hm.");
  const Reading own = read(hermes(), {}, "<think>\nHm.\n</think>\n\nYes. <think>");
  EXPECT_EQ(own.reasoning, "Hm.");
  EXPECT_EQ(own.text, "Yes. <think>");
  EXPECT_EQ(read(hermes(), {.prompt = "<think>\n\n</think>\n\n"}, "Yes.").text, "Yes.");
  EXPECT_EQ(read(hermes(), {.reads_reasoning = false}, "<think>x</think>y").text,
            "<think>x</think>y");
  OutputParser parser(hermes(), {.prompt = "<think>"});
  EXPECT_TRUE(parser.is_reasoning());
  parser.push("a</think>b");
  EXPECT_FALSE(parser.is_reasoning());
}

TEST(OutputParser, StopTextsEndTheAnswerAlone) {
  OutputParser parser(hermes(), {.stop = {"STOP", "\nQ:"}, .prompt = "<think>"});
  EXPECT_EQ(told(parser, "STOP it</think>Yes S"), "reasoning STOP it;text Yes;");
  EXPECT_EQ(told(parser, "TO"), "");
  EXPECT_EQ(told(parser, "NE."), "text  STONE.;");
  EXPECT_EQ(told(parser, "\nQ:\nmore"), "");
  EXPECT_TRUE(parser.has_stopped());
  EXPECT_EQ(parser.stop_text(), "\nQ:");
  EXPECT_EQ(told(parser, "more"), "");
  EXPECT_TRUE(parser.finish().empty());
}

TEST(OutputParser, NoEventEndsWithinACharacter) {
  OutputParser parser(ChatFormat{}, {});
  EXPECT_EQ(told(parser, "a\xc3"), "text a;");
  EXPECT_EQ(told(parser, "\xa9"), "text é;");
  EXPECT_EQ(told(parser, "  \xe6\x97"), "text   ;");
  EXPECT_EQ(parser.finish().at(0).text, "\xe6\x97");
}

TEST(OutputParser, TokensOfTheFormatAreReadByName) {
  const OutputParser parser(hermes(), {});
  EXPECT_TRUE(parser.reads_marker("<tool_call>"));
  EXPECT_TRUE(parser.reads_marker("</think>"));
  EXPECT_FALSE(parser.reads_marker("<|im_start|>"));
  EXPECT_FALSE(parser.reads_marker(""));
}

}  // namespace
}  // namespace cairn::chat
