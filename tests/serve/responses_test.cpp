// OpenAI's responses: objects, events, items, answers that follow others, the table that keeps
// them; and LM Studio's list. Covers openai/responses_*.cpp, routes/responses.cpp and
// response_table.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/response_table.h"
#include "tests/scratch_folder.h"
#include "tests/serve/events.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::responses_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/v1/responses";

// The data of the events, whose numbers ascend.
std::vector<json> stream(Serving& serving, json body) {
  body["stream"] = true;
  const BareReply reply = serving.post(kPath, body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  std::vector<json> events = typed_objects_of(reply.body);
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i]["sequence_number"], i);
  return events;
}

std::string text_of(const json& response) {
  std::string text;
  for (const json& item : response["output"]) {
    for (const json& part : item.value("content", json::array())) {
      if (part["type"] == "output_text") text += part["text"].get<std::string>();
    }
  }
  return text;
}

TEST(Responses, Answers) {
  Serving serving;
  const json reply = serving.post_json(
      kPath, {{"input", kFrance}, {"metadata", {{"a", "b"}}}, {"temperature", 0}});
  EXPECT_TRUE(reply["id"].get<std::string>().starts_with("resp_"));
  EXPECT_EQ(reply["object"], "response");
  EXPECT_EQ(reply["status"], "completed");
  EXPECT_EQ(text_of(reply), kParis);
  EXPECT_EQ(reply["output"][0]["type"], "message");
  EXPECT_EQ(reply["output"][0]["status"], "completed");
  EXPECT_EQ(reply["metadata"], (json{{"a", "b"}}));
  EXPECT_EQ(reply["tools"], json::array());
  EXPECT_EQ(reply["tool_choice"], "auto");
  EXPECT_EQ(reply["usage"]["total_tokens"].get<int>(),
            reply["usage"]["input_tokens"].get<int>() + reply["usage"]["output_tokens"].get<int>());
  const json cut = serving.post_json(kPath, {{"input", kFrance}, {"max_output_tokens", 2}});
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
}

TEST(Responses, StreamsWhatItAnswersWhole) {
  Serving serving;
  const std::vector<json> events = stream(serving, {{"input", kFrance}});
  std::vector<std::string> types;
  std::string text;
  for (const json& event : events) {
    const std::string type = event["type"];
    if (types.empty() || types.back() != type) types.push_back(type);
    if (event.contains("response")) {
      EXPECT_EQ(event["response"]["id"], events[0]["response"]["id"]);
    }
    if (type != "response.output_text.delta") continue;
    text += event["delta"].get<std::string>();
    EXPECT_EQ(event["output_index"], 0);
    EXPECT_EQ(event["content_index"], 0);
  }
  EXPECT_EQ(types, (std::vector<std::string>{
                       "response.created", "response.in_progress", "response.output_item.added",
                       "response.content_part.added", "response.output_text.delta",
                       "response.output_text.done", "response.content_part.done",
                       "response.output_item.done", "response.completed"}));
  EXPECT_EQ(text, kParis);
  EXPECT_EQ(text_of(events.back()["response"]), kParis);
  EXPECT_EQ(stream(serving, {{"input", kFrance}, {"max_output_tokens", 2}}).back()["type"],
            "response.incomplete");
}

TEST(Responses, FollowEachOther) {
  AppOptions options;
  for (const char* key : {"a-key-of-one-user-12", "a-key-of-another-user"}) {
    ASSERT_TRUE(options.keys.add(key, Role::user));
  }
  Serving serving(std::move(options));
  const auto post = [&](const json& body, const std::string& key) {
    return serving.post(kPath, body.dump(), "Authorization: Bearer " + key + "\r\n");
  };
  const std::string mine = "a-key-of-one-user-12";
  const json first = json::parse(
      post({{"input", "Remember: blue is 17."}, {"instructions", "Be brief."}}, mine).body);
  json next = {{"input", "What is blue?"}, {"previous_response_id", first["id"]}};
  const json second = json::parse(post(next, mine).body);
  EXPECT_EQ(second["previous_response_id"], first["id"]);
  next["instructions"] = "Be brief.";
  const json again = json::parse(post(next, mine).body);
  EXPECT_GE(again["usage"]["input_tokens_details"]["cached_tokens"].get<int>(),
            first["usage"]["total_tokens"].get<int>() - 1)
      << "nothing of the first is computed again";
  // All of it, sent.
  json items = json::array();
  items.push_back({{"role", "user"}, {"content", "Remember: blue is 17."}});
  for (const json& item : first["output"]) items.push_back(item);
  items.push_back({{"role", "user"}, {"content", "What is blue?"}});
  const json sent = json::parse(post({{"input", items}}, mine).body);
  EXPECT_EQ(text_of(sent), text_of(second));
  EXPECT_EQ(sent["usage"]["input_tokens"], second["usage"]["input_tokens"]);

  const BareReply stranger = post(next, "a-key-of-another-user");
  EXPECT_EQ(stranger.status, 404);
  next["previous_response_id"] = "resp_unknown";
  EXPECT_EQ(stranger.body, post(next, "a-key-of-another-user").body)
      << "another's is as if it were not there";
  json unkept = {{"input", "x"}, {"store", false}, {"max_output_tokens", 1}};
  next["previous_response_id"] = json::parse(post(unkept, mine).body)["id"];
  EXPECT_EQ(post(next, mine).status, 404);
}

TEST(Responses, CallsTools) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const json tool = {{"type", "function"},
                     {"name", "weather"},
                     {"parameters",
                      {{"type", "object"},
                       {"properties", {{"city", {{"type", "string"}, {"maxLength", 8}}}}},
                       {"required", {"city"}},
                       {"additionalProperties", false}}}};
  const json body = {{"input", kFrance}, {"tools", {tool}}, {"tool_choice", "required"}};
  const json reply = serving.post_json(kPath, body);
  ASSERT_EQ(reply["output"].size(), 1u) << reply;
  const json& call = reply["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "weather");
  EXPECT_EQ(json::parse(call["arguments"].get<std::string>()).size(), 1u);
  const std::vector<json> events = stream(serving, body);
  const json& done = events.at(events.size() - 3);
  EXPECT_EQ(done["type"], "response.function_call_arguments.done");
  EXPECT_EQ(done["arguments"], call["arguments"]);
  EXPECT_EQ(events.back()["response"]["output"][0]["call_id"], call["call_id"]);

  const json output = {
      {"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "rain"}};
  const json later = serving.post_json(kPath, {{"input", {output}},
                                               {"previous_response_id", reply["id"]},
                                               {"tools", {tool}},
                                               {"max_output_tokens", 5}});
  EXPECT_GT(later["usage"]["input_tokens_details"]["cached_tokens"].get<int>(), 0);
  const json sent =
      serving.post_json(kPath, {{"input", {{{"role", "user"}, {"content", kFrance}}, call, output}},
                                {"tools", {tool}},
                                {"max_output_tokens", 5}});
  EXPECT_EQ(text_of(sent), text_of(later));
}

TEST(Responses, HaveForms) {
  Serving serving;
  const json schema = {{"type", "object"},
                       {"properties", {{"city", {{"type", "string"}, {"maxLength", 8}}}}},
                       {"required", {"city"}},
                       {"additionalProperties", false}};
  const json reply = serving.post_json(
      kPath,
      {{"input", kFrance},
       {"max_output_tokens", 60},
       {"text", {{"format", {{"type", "json_schema"}, {"name", "city"}, {"schema", schema}}}}}});
  EXPECT_TRUE(json::parse(text_of(reply))["city"].is_string());
}

TEST(Responses, RefusalsNameTheField) {
  Serving serving;
  const std::pair<const char*, json> wrong[] = {
      {"input", json::object()},
      {"input", {{"input", 5}}},
      {"input", {{"input", json::array()}}},
      {"input[0]", {{"input", {5}}}},
      {"input[0]", {{"input", {{{"type", "computer_call"}}}}}},
      {"input[0]", {{"input", {{{"type", "function_call"}}}}}},
      {"input[0].role", {{"input", {{{"role", "nobody"}, {"content", "x"}}}}}},
      {"input[0].content", {{"input", {{{"role", "user"}, {"content", 5}}}}}},
      {"input[0].content[0]",
       {{"input", {{{"role", "user"}, {"content", {{{"type", "input_image"}}}}}}}}},
      {"input[0].call_id", {{"input", {{{"type", "function_call_output"}, {"output", "x"}}}}}},
      {"tools[0]", {{"input", "x"}, {"tools", {{{"type", "web_search"}}}}}},
      {"tool_choice", {{"input", "x"}, {"tool_choice", "required"}}},
      {"truncation", {{"input", "x"}, {"truncation", "auto"}}},
      {"text.format", {{"input", "x"}, {"text", {{"format", {{"type", "yaml"}}}}}}}};
  for (const auto& [field, body] : wrong) {
    EXPECT_EQ(serving.refused(kPath, body), (std::pair<int, std::string>(400, field))) << body;
  }
}

TEST(ResponseTable, ForgetsWhatWasUsedLongestAgo) {
  const auto said = [](size_t bytes) {
    return std::vector<chat::Message>{{.role = "user", .content = std::string(bytes, 'x')}};
  };
  ResponseTable table(5000);
  table.add("a", "", said(1000));
  table.add("b", "", said(1000));
  table.add("c", "", said(1000));
  ASSERT_NE(table.find("a", ""), nullptr);
  EXPECT_EQ(table.find("a", "other"), nullptr);
  table.add("d", "", said(2000));
  EXPECT_EQ(table.find("b", ""), nullptr);
  ASSERT_NE(table.find("a", ""), nullptr);
  EXPECT_EQ(table.find("a", "")->front().content.size(), 1000u);
  EXPECT_NE(table.find("d", ""), nullptr);
  table.add("e", "", said(5000));
  EXPECT_EQ(table.find("e", ""), nullptr) << "larger than the table";
  EXPECT_NE(table.find("d", ""), nullptr);
}

TEST(Responses, ModelsAsLmStudioTellsThem) {
  Serving serving;
  const json list = json::parse(serving.get("/api/v0/models").body);
  const json& model = list["data"][0];
  EXPECT_EQ(model["id"], "test-model");
  EXPECT_EQ(model["type"], "llm");
  EXPECT_EQ(model["state"], "loaded");
  EXPECT_EQ(model["quantization"], "Q8_0");
  EXPECT_GT(model["max_context_length"].get<int>(), 0);
  EXPECT_EQ(model["capabilities"], json::array());
}

TEST(Responses, PromptsAreCounted) {
  Serving serving;
  const json input = {{"input", kFrance}, {"instructions", "Be brief."}};
  EXPECT_EQ(serving.post_json("/v1/responses/input_tokens", input)["input_tokens"],
            serving.post_json(kPath, input)["usage"]["input_tokens"]);
  const json counted = serving.post_json("/v1/chat/completions/input_tokens", question(kFrance));
  EXPECT_EQ(counted["object"], "response.input_tokens");
  EXPECT_EQ(counted["input_tokens"],
            serving.post_json("/v1/chat/completions", question(kFrance))["usage"]["prompt_tokens"]);
}

}  // namespace
}  // namespace cairn::serve::responses_test
