// Anthropic's messages: answers, streams of events, conversations with blocks, tools, counting,
// errors. Covers anthropic/ and routes/anthropic.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/events.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::anthropic_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/v1/messages", kCount[] = "/v1/messages/count_tokens";
const json kTool = {
    {"name", "weather"},
    {"description", "The weather."},
    {"input_schema",
     {{"type", "object"},
      {"properties",
       {{"city", {{"type", "string"}, {"maxLength", 8}}}, {"unit", {{"enum", {"C", "F"}}}}}},
      {"required", {"city", "unit"}},
      {"additionalProperties", false}}}};

json asked(const std::string& text = kFrance) {
  json body = question(text);
  body["max_tokens"] = 100;
  return body;
}

// Each with its name, which its data tells too.
std::vector<json> stream(Serving& serving, json body) {
  body["stream"] = true;
  const BareReply reply = serving.post(kPath, body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.has("content-type: text/event-stream\r\n"));
  std::vector<json> events = typed_objects_of(reply.body);
  std::erase_if(events, [](const json& event) { return event["type"] == "ping"; });
  return events;
}

// What a client puts together from the events; checks their order.
json assembled(const std::vector<json>& events) {
  EXPECT_EQ(events.at(0)["type"], "message_start");
  json message = events.at(0)["message"];
  bool is_open = false;
  for (size_t index = 1; index < events.size(); ++index) {
    const json& event = events[index];
    const std::string type = event["type"];
    if (type == "content_block_start") {
      EXPECT_FALSE(is_open);
      EXPECT_EQ(event["index"], message["content"].size());
      message["content"].push_back(event["content_block"]);
    } else if (type == "content_block_delta") {
      EXPECT_TRUE(is_open);
      EXPECT_EQ(event["index"].get<size_t>() + 1, message["content"].size());
      json& block = message["content"].back();
      const json& delta = event["delta"];
      if (delta["type"] == "text_delta") {
        block["text"] = block["text"].get<std::string>() + delta["text"].get<std::string>();
      } else if (delta["type"] == "input_json_delta") {
        block["partial"] = block.value("partial", "") + delta["partial_json"].get<std::string>();
      }
    } else if (type == "message_delta") {
      message.update(event["delta"]);
      message["usage"].update(event["usage"]);
    }
    if (type == "content_block_start") is_open = true;
    if (type == "content_block_stop") is_open = false;
  }
  EXPECT_FALSE(is_open);
  EXPECT_EQ(events.back()["type"], "message_stop");
  for (json& block : message["content"]) {
    if (block["type"] != "tool_use") continue;
    block["input"] = json::parse(block.value("partial", "{}"));
    block.erase("partial");
  }
  return message;
}

TEST(Anthropic, AnswersWholeAndInEvents) {
  Serving serving;
  const json reply = serving.post_json(kPath, asked());
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("msg_"));
  EXPECT_EQ(reply["type"], "message");
  EXPECT_EQ(reply["role"], "assistant");
  EXPECT_EQ(reply["model"], "test-model");
  EXPECT_EQ(reply["content"], json::array({{{"type", "text"}, {"text", kParis}}}));
  EXPECT_EQ(reply["stop_reason"], "end_turn");
  EXPECT_TRUE(reply["stop_sequence"].is_null());
  EXPECT_EQ(reply["usage"]["cache_read_input_tokens"], 0);
  const json counted = serving.post_json(kCount, question(kFrance));
  EXPECT_EQ(reply["usage"]["input_tokens"], counted["input_tokens"]);

  const json streamed = assembled(stream(serving, asked()));
  EXPECT_EQ(streamed["content"], reply["content"]);
  EXPECT_EQ(streamed["stop_reason"], "end_turn");
  EXPECT_EQ(streamed["usage"]["output_tokens"], reply["usage"]["output_tokens"]);
  EXPECT_EQ(streamed["usage"]["cache_read_input_tokens"].get<int>() +
                streamed["usage"]["input_tokens"].get<int>(),
            counted["input_tokens"].get<int>());
  EXPECT_GT(streamed["usage"]["cache_read_input_tokens"].get<int>(), 0);
}

TEST(Anthropic, SaysWhyItStopped) {
  Serving serving;
  json body = asked();
  body["stop_sequences"] = {"Nothing", "France"};
  const json stopped = serving.post_json(kPath, body);
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "France");
  EXPECT_EQ(stopped["content"][0]["text"], "The capital of ");
  EXPECT_EQ(assembled(stream(serving, body))["stop_sequence"], "France");
  body = asked();
  body["max_tokens"] = 2;
  EXPECT_EQ(serving.post_json(kPath, body)["stop_reason"], "max_tokens");
}

// Blocks, a system of blocks, and what a cache is told: the prompt is that of plain texts.
TEST(Anthropic, BlocksArePlainTexts) {
  Serving serving;
  json plain = question(kFrance);
  plain["system"] = "Be brief.";
  const json cached = {{"type", "ephemeral"}};
  json blocks = {
      {"system", {{{"type", "text"}, {"text", "Be brief."}, {"cache_control", cached}}}},
      {"messages",
       {{{"role", "user"},
         {"content", {{{"type", "text"}, {"text", kFrance}, {"cache_control", cached}}}}}}}};
  EXPECT_EQ(serving.post_json(kCount, blocks), serving.post_json(kCount, plain));
  plain["max_tokens"] = blocks["max_tokens"] = 20;
  EXPECT_EQ(serving.post_json(kPath, blocks)["content"],
            serving.post_json(kPath, plain)["content"]);
}

// As the effort of chat completions: the template is told, but not where nothing is to be thought.
TEST(Anthropic, EffortIsToldToTheTemplate) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("effort.gguf");
  write_nano_with({.chat_template = "{{ messages[0].content }}{{ reasoning_effort }}"}, path);
  Serving serving({}, path);
  const auto count = [&](const json& thinking, const json& config) {
    json body = question("Hello");
    if (!thinking.is_null()) body["thinking"] = {{"type", thinking}};
    if (!config.is_null()) body["output_config"] = config;
    return serving.post_json(kCount, body)["input_tokens"].get<int>();
  };
  const int plain = count(nullptr, nullptr);
  EXPECT_EQ(count("adaptive", nullptr), plain);
  for (const char* effort : {"low", "medium", "high", "xhigh", "max"}) {
    const json config = {{"effort", effort}};
    json chat = question("Hello");
    chat["reasoning_effort"] = effort;
    const json told = serving.post_json("/v1/chat/completions/input_tokens", chat);
    EXPECT_EQ(count("adaptive", config), told["input_tokens"]) << effort;
    EXPECT_GT(count("adaptive", config), plain) << effort;
    EXPECT_EQ(count("disabled", config), plain) << effort;
    EXPECT_EQ(count(nullptr, config), plain) << effort;
  }
  for (const json& effort : {json("none"), json("hard"), json(3), json(json::object())}) {
    json body = asked("Hello");
    body["output_config"] = {{"effort", effort}};
    for (const char* url : {kPath, kCount}) {
      const BareReply reply = serving.post(url, body.dump());
      EXPECT_EQ(reply.status, 400) << effort;
      const json error = json::parse(reply.body)["error"];
      EXPECT_EQ(error["type"], "invalid_request_error");
      EXPECT_TRUE(error["message"].get<std::string>().starts_with(
          "output_config.effort: expected low, medium, high, xhigh or max, found "))
          << reply.body;
    }
  }
}

// A conversation that begins otherwise each time, of about 150 tokens.
json other_question(int number) {
  std::string said;
  for (int word = 0; word < 40; ++word) said += std::to_string(number * 1000 + word) + " ";
  json body = asked(said);
  body["max_tokens"] = 1;
  return body;
}

// What a request names stays while others fill the memory, and nothing else does.
TEST(Anthropic, WhatIsToBeCachedStays) {
  std::string rules = "Remember: ";
  for (int word = 0; word < 60; ++word) rules += "the code is " + std::to_string(word) + ". ";
  for (const bool is_named : {false, true}) {
    Serving serving({}, "", {.memory_budget = size_t(4) << 20});
    json body = asked();
    body["system"] = {{{"type", "text"}, {"text", rules}}};
    if (is_named) body["system"][0]["cache_control"] = {{"type", "ephemeral"}, {"ttl", "1h"}};
    const json first = serving.post_json(kPath, body);
    EXPECT_EQ(first["usage"]["cache_read_input_tokens"], 0);
    const int pinned = first["memory"].value("pinned", 0);
    EXPECT_EQ(pinned > 60, is_named) << first["memory"];
    for (int number = 1; number <= 40; ++number) {
      serving.post_json(kPath, other_question(number));
    }
    body["messages"][0]["content"] = "What is the capital of Norway?";
    const json later = serving.post_json(kPath, body);
    if (is_named) {
      EXPECT_GE(later["usage"]["cache_read_input_tokens"].get<int>(), pinned);
    } else {
      EXPECT_EQ(later["usage"]["cache_read_input_tokens"], 0);
    }
    Serving fresh;
    EXPECT_EQ(fresh.post_json(kPath, body)["content"], later["content"]);
    const std::string memory = serving.get("/v1/memory").body;
    EXPECT_EQ(memory.find("\"pinned\"") != std::string::npos, is_named);
  }
}

TEST(Anthropic, BreakpointsMayStandAnywhere) {
  Serving serving;
  const json cached = {{"type", "ephemeral"}};
  const auto block = [&](const std::string& text, bool is_named) {
    json one = {{"type", "text"}, {"text", text}};
    if (is_named) one["cache_control"] = cached;
    return json::array({one});
  };
  json body = asked();
  body["messages"] = {{{"role", "user"}, {"content", block("My name is Ada.", true)}},
                      {{"role", "assistant"}, {"content", block("Nice to meet you, Ada.", false)}},
                      {{"role", "user"}, {"content", block("What is my name?", false)}}};
  const json inner = serving.post_json(kPath, body);
  const int count = serving.post_json(kCount, {{"messages", body["messages"]}})["input_tokens"];
  EXPECT_GT(inner["memory"].value("pinned", 0), 0);
  EXPECT_LT(inner["memory"].value("pinned", 0), count);
  body["messages"][2]["content"][0]["cache_control"] = cached;
  const json whole = serving.post_json(kPath, body);
  EXPECT_EQ(whole["memory"].value("pinned", 0), count);
  EXPECT_EQ(whole["content"], inner["content"]);
  const auto refused = [&](const json& control) {
    body["system"] = {{{"type", "text"}, {"text", "x"}, {"cache_control", control}}};
    const BareReply reply = serving.post(kPath, body.dump());
    EXPECT_NE(reply.body.find("system[0].cache_control: "), std::string::npos) << reply.body;
    return reply.status;
  };
  EXPECT_EQ(refused({{"type", "lasting"}}), 400);
  EXPECT_EQ(refused({{"type", "ephemeral"}, {"ttl", "1d"}}), 400);
  json many = asked();
  many["system"] = json::array();
  for (int each = 0; each < 5; ++each) many["system"].push_back(block("x", true)[0]);
  EXPECT_EQ(serving.post(kPath, many.dump()).status, 400);
}

TEST(Anthropic, GoesOnWithABegunAnswer) {
  Serving serving;
  json body = asked();
  body["messages"].push_back({{"role", "assistant"}, {"content", "The capital of"}});
  const json reply = serving.post_json(kPath, body);
  EXPECT_EQ(reply["content"][0]["text"], " France is Paris.");
  EXPECT_EQ(assembled(stream(serving, body))["content"], reply["content"]);
}

// Of a template that writes a conversation without messages too.
TEST(Anthropic, NothingButABegunAnswerIsRefused) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const json begun = {{"role", "assistant"}, {"content", "x"}};
  const json nothing = {{"role", "user"}, {"content", json::array()}};
  json body = asked();
  for (const bool has_tools : {false, true}) {
    if (has_tools) body["tools"] = {{{"name", "f"}, {"input_schema", {{"type", "object"}}}}};
    for (const json& messages :
         {json{begun}, json{begun, nothing}, json{nothing, begun}, json{nothing}}) {
      body["messages"] = messages;
      for (const char* path : {kPath, kCount}) {
        const BareReply reply = serving.post(path, body.dump());
        EXPECT_EQ(reply.status, 400) << body << reply.body;
        EXPECT_NE(reply.body.find("\"messages: "), std::string::npos) << reply.body;
      }
    }
  }
  EXPECT_EQ(serving.post_json(kPath, asked())["role"], "assistant");
}

TEST(Anthropic, AnswersHaveForms) {
  Serving serving;
  json body = asked();
  body["output_config"] = {{"effort", "high"},
                           {"format",
                            {{"type", "json_schema"},
                             {"schema",
                              {{"type", "object"},
                               {"properties", {{"city", {{"type", "string"}, {"maxLength", 8}}}}},
                               {"required", {"city"}},
                               {"additionalProperties", false}}}}}};
  const json reply = serving.post_json(kPath, body);
  const json made = json::parse(reply["content"][0]["text"].get<std::string>(), nullptr, false);
  EXPECT_TRUE(made.is_object() && made["city"].is_string()) << reply;
  EXPECT_EQ(assembled(stream(serving, body))["content"], reply["content"]);
  body["output_config"].erase("format");
  EXPECT_EQ(serving.post_json(kPath, body)["content"][0]["text"], kParis);
  for (const json& format : {json{{"type", "yaml"}}, json{{"type", "json_schema"}}, json(5)}) {
    body["output_config"]["format"] = format;
    const BareReply refused = serving.post(kPath, body.dump());
    EXPECT_EQ(refused.status, 400) << format;
    EXPECT_NE(refused.body.find("\"output_config.format: "), std::string::npos) << refused.body;
  }
}

TEST(Anthropic, CallsTools) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  json body = asked();
  body["tools"] = json::array({kTool});
  for (json choice : {json{{"type", "any"}}, json{{"type", "tool"}, {"name", "weather"}}}) {
    choice["disable_parallel_tool_use"] = true;
    body["tool_choice"] = choice;
    const json reply = serving.post_json(kPath, body);
    EXPECT_EQ(reply["stop_reason"], "tool_use") << reply;
    const json& call = reply["content"].back();
    EXPECT_EQ(call["type"], "tool_use");
    EXPECT_EQ(call["name"], "weather");
    EXPECT_EQ(call["input"].size(), 2u);
    EXPECT_FALSE(call["id"].get<std::string>().empty());
    EXPECT_EQ(assembled(stream(serving, body))["content"], reply["content"]);

    json later = body;
    later.erase("tool_choice");
    later["max_tokens"] = 5;
    later["messages"].push_back({{"role", "assistant"}, {"content", reply["content"]}});
    const json result = {{"type", "tool_result"}, {"tool_use_id", call["id"]}, {"content", "rain"}};
    later["messages"].push_back(
        {{"role", "user"}, {"content", {result, {{"type", "text"}, {"text", "So?"}}}}});
    const json answer = serving.post_json(kPath, later);
    EXPECT_EQ(answer["role"], "assistant");
    EXPECT_GT(answer["usage"]["cache_read_input_tokens"].get<int>(), 0);
  }
  body["tool_choice"] = {{"type", "none"}};
  EXPECT_NE(serving.post_json(kPath, body)["stop_reason"], "tool_use");
}

// Without an end of its own an answer calls until it has as many tokens as it may.
TEST(Anthropic, OneCallIsEnough) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const int32_t end = serving.post_json("/tokenize", {{"content", "<|end|>"}})["tokens"][0];
  const auto is_call = [](const json& block) { return block["type"] == "tool_use"; };
  json body = asked();
  body["tools"] = json::array({kTool});
  body["max_tokens"] = 200;
  body["logit_bias"] = json::array({json::array({end, false})});
  for (const json& choice : {json{{"type", "any"}}, json{{"type", "tool"}, {"name", "weather"}},
                             json{{"type", "auto"}}}) {
    body["tool_choice"] = choice;
    body["tool_choice"]["disable_parallel_tool_use"] = false;
    const json many = serving.post_json(kPath, body);
    body["tool_choice"]["disable_parallel_tool_use"] = true;
    const json one = serving.post_json(kPath, body);
    EXPECT_EQ(assembled(stream(serving, body))["content"], one["content"]);
    if (choice["type"] == "auto") {
      EXPECT_LE(std::ranges::count_if(one["content"], is_call), 1) << one;
      continue;
    }
    ASSERT_EQ(std::ranges::count_if(one["content"], is_call), 1) << one;
    EXPECT_EQ(one["stop_reason"], "tool_use");
    EXPECT_EQ(one["content"].back()["input"], many["content"][0]["input"]);
    if (choice["type"] == "tool") continue;  // Which is called once in any case.
    EXPECT_GT(std::ranges::count_if(many["content"], is_call), 1) << many;
    EXPECT_EQ(many["stop_reason"], "max_tokens");
    EXPECT_LT(one["usage"]["output_tokens"], many["usage"]["output_tokens"]);
  }
  body["tool_choice"] = {{"type", "none"}, {"disable_parallel_tool_use", true}};
  EXPECT_EQ(std::ranges::count_if(serving.post_json(kPath, body)["content"], is_call), 0);
}

TEST(Anthropic, ErrorsAreInItsForm) {
  AppOptions options;
  ASSERT_TRUE(options.keys.add("a-key-of-a-user-1234", Role::user));
  Serving serving(std::move(options));
  const auto error_of = [&](const char* path, const json& body, const char* key) {
    const BareReply reply =
        serving.post(path, body.dump(), std::string("X-Api-Key: ") + key + "\r\n");
    const json error = json::parse(reply.body, nullptr, false);
    EXPECT_EQ(error.value("type", ""), "error") << reply.body;
    return std::pair(reply.status, error.value("error", json::object()));
  };
  const char* const kKey = "a-key-of-a-user-1234";
  const auto [denied, why] = error_of(kPath, asked(), "a-key-of-nobody-1234");
  EXPECT_EQ(denied, 401);
  EXPECT_EQ(why["type"], "authentication_error");
  const std::pair<const char*, json> wrong[] = {
      {"max_tokens: ", question("x")},
      {"messages: ", {{"max_tokens", 5}}},
      {"messages: ", {{"max_tokens", 5}, {"messages", json::array()}}},
      {"messages[0]: ", {{"max_tokens", 5}, {"messages", {5}}}},
      {"messages[0]: ", {{"max_tokens", 5}, {"messages", {{{"role", "tool"}}}}}},
      {"messages[0].content: ", {{"max_tokens", 5}, {"messages", {{{"role", "user"}}}}}},
      {"messages[0].content[0]: ",
       {{"max_tokens", 5}, {"messages", {{{"role", "user"}, {"content", {{{"type", "image"}}}}}}}}},
      {"messages[0].content[0].tool_use_id: ",
       {{"max_tokens", 5},
        {"messages", {{{"role", "user"}, {"content", {{{"type", "tool_result"}}}}}}}}},
      {"system: ",
       [] {
         json body = asked();
         body["system"] = 5;
         return body;
       }()},
      {"tools[0]: ",
       [] {
         json body = asked();
         body["tools"] = {{{"type", "web_search_20250305"}, {"name", "web_search"}}};
         return body;
       }()},
      {"tool_choice: ",
       [] {
         json body = asked();
         body["tool_choice"] = {{"type", "any"}};
         return body;
       }()},
      {"thinking.type: ",
       [] {
         json body = asked();
         body["thinking"] = {{"type", "much"}};
         return body;
       }()},
      {"temperature: ", [] {
         json body = asked();
         body["temperature"] = -1;
         return body;
       }()}};
  for (const auto& [begin, body] : wrong) {
    const auto [status, error] = error_of(kPath, body, kKey);
    EXPECT_EQ(status, 400) << body;
    EXPECT_EQ(error["type"], "invalid_request_error");
    EXPECT_TRUE(error.value("message", "").starts_with(begin)) << error << body;
  }
  json thinking = asked();
  thinking["thinking"] = {{"type", "enabled"}, {"budget_tokens", 16}};
  EXPECT_EQ(serving.post(kPath, thinking.dump(), std::string("X-Api-Key: ") + kKey + "\r\n").status,
            200);
}

}  // namespace
}  // namespace cairn::serve::anthropic_test
