// Calls that templates write come back as they went in, however their text is cut; and what models
// write that no template does.
#include "chat/output_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "chat/detect.h"
#include "jinja/values/json_value.h"
#include "tests/chat/reading.h"
#include "tests/chat/template_fixtures.h"
#include "tests/chat/template_turns.h"

namespace cairn::chat::output_parser_test {
namespace {

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
  for (const OutputEvent& event : pushed(parser, piece)) {
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
  pushed(parser, "a</think>b");
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
  EXPECT_TRUE(finished(parser).empty());
}

TEST(OutputParser, NoEventEndsWithinACharacter) {
  OutputParser parser(ChatFormat{}, {});
  EXPECT_EQ(told(parser, "a\xc3"), "text a;");
  EXPECT_EQ(told(parser, "\xa9"), "text é;");
  EXPECT_EQ(told(parser, "  \xe6\x97"), "text   ;");
  EXPECT_EQ(finished(parser).at(0).text, "\xe6\x97");
}

TEST(OutputParser, TokensOfTheFormatAreReadByName) {
  const OutputParser parser(hermes(), {});
  EXPECT_TRUE(parser.reads_marker("<tool_call>"));
  EXPECT_TRUE(parser.reads_marker("</think>"));
  EXPECT_FALSE(parser.reads_marker("<|im_start|>"));
  EXPECT_FALSE(parser.reads_marker(""));
}

}  // namespace
}  // namespace cairn::chat::output_parser_test
