// OpenAI's responses: objects, events, items, answers that follow others, the table that keeps
// them; and LM Studio's list. Covers openai/responses_*.cpp, routes/responses.cpp and
// response_table.cpp.
#include <gtest/gtest.h>

#include <algorithm>
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

// A proxy reads it in the head, of streams too.
TEST(Responses, NameThemselvesInTheHeadWhereTheyAreKept) {
  Serving serving;
  for (const bool is_stream : {false, true}) {
    json body = {{"input", kFrance}, {"stream", is_stream}};
    const BareReply reply = serving.post(kPath, body.dump());
    const size_t at = reply.body.find("resp_");
    const std::string id = reply.body.substr(at, reply.body.find('"', at) - at);
    EXPECT_TRUE(reply.has("x-cairn-kept: " + id + "\r\n")) << reply.head;
    body["store"] = false;
    EXPECT_FALSE(serving.post(kPath, body.dump()).has("x-cairn-kept"));
  }
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

json parsed(const BareReply& reply) {
  return json::parse(reply.body, nullptr, false);
}

TEST(Responses, AreToldAgainAndForgotten) {
  AppOptions options;
  for (const char* key : {"a-key-of-one-user-12", "a-key-of-another-user"}) {
    ASSERT_TRUE(options.keys.add(key, Role::user));
  }
  Serving serving(std::move(options));
  const std::string mine = "Authorization: Bearer a-key-of-one-user-12\r\n";
  const std::string others = "Authorization: Bearer a-key-of-another-user\r\n";
  const json body = {{"input", kFrance}, {"metadata", {{"a", "b"}}}};
  const json made = parsed(serving.post(kPath, body.dump(), mine));
  const std::string path = kPath + ("/" + made["id"].get<std::string>());
  EXPECT_EQ(parsed(serving.get(path, mine)), made);
  EXPECT_EQ(serving.get(path + "?stream=true", mine).status, 400);
  const json input = parsed(serving.get(path + "/input_items", mine));
  ASSERT_EQ(input["data"].size(), 1u) << input;
  EXPECT_EQ(input["data"][0]["content"][0], (json{{"type", "input_text"}, {"text", kFrance}}));
  EXPECT_EQ(input["data"][0]["role"], "user");
  EXPECT_EQ(input["first_id"], input["data"][0]["id"]);
  EXPECT_EQ(input["has_more"], false);
  json streamed = body;
  streamed["stream"] = true;
  const std::string events = serving.post(kPath, streamed.dump(), mine).body;
  const size_t at = events.find("\"id\":\"resp_") + 6;
  const std::string id = events.substr(at, events.find('"', at) - at);
  EXPECT_EQ(text_of(parsed(serving.get(kPath + ("/" + id), mine))), kParis);

  const json next = {
      {"input", "And of Norway?"}, {"previous_response_id", made["id"]}, {"max_output_tokens", 24}};
  const json second = parsed(serving.post(kPath, next.dump(), mine));
  const auto remove = [&](const std::string& of, const std::string& key) {
    return serving.send("DELETE " + of + " HTTP/1.1\r\nHost: localhost\r\n" + key + "\r\n");
  };
  for (const std::string& stranger :
       {serving.get(path, others).body, serving.get(path + "/input_items", others).body,
        remove(path, others).body}) {
    EXPECT_EQ(stranger, serving.get(kPath + std::string("/resp_unknown"), others).body);
  }
  const BareReply gone = remove(path, mine);
  EXPECT_EQ(gone.status, 200);
  EXPECT_EQ(parsed(gone), (json{{"id", made["id"]}, {"object", "response"}, {"deleted", true}}));
  EXPECT_EQ(serving.get(path, mine).status, 404);
  EXPECT_EQ(remove(path, mine).status, 404);
  EXPECT_EQ(serving.post(kPath, next.dump(), mine).status, 404);
  EXPECT_EQ(parsed(serving.get(kPath + ("/" + second["id"].get<std::string>()), mine)), second);
  const json unkept = {{"input", "x"}, {"store", false}, {"max_output_tokens", 1}};
  const std::string never = parsed(serving.post(kPath, unkept.dump(), mine))["id"];
  EXPECT_EQ(serving.get(kPath + ("/" + never), mine).status, 404);
}

// Items as they are told: with ids, types and parts; a page at a time.
TEST(Responses, InputItemsComeInPages) {
  Serving serving;
  json input = json::array();
  input.push_back({{"role", "user"}, {"content", "Hello"}});
  input.push_back({{"role", "assistant"}, {"content", "Yes?"}, {"id", "msg_own"}});
  input.push_back({{"type", "reasoning"}, {"content", json::array()}});
  input.push_back({{"role", "user"}, {"content", {{{"type", "input_text"}, {"text", kFrance}}}}});
  const json made = serving.post_json(kPath, {{"input", input}, {"max_output_tokens", 1}});
  const std::string path = "/v1/responses/" + made["id"].get<std::string>() + "/input_items";
  const json all = parsed(serving.get(path + "?order=asc"))["data"];
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["type"], "message");
  EXPECT_EQ(all[0]["content"][0]["text"], "Hello");
  EXPECT_EQ(all[1]["id"], "msg_own");
  EXPECT_EQ(all[1]["content"][0]["type"], "output_text");
  EXPECT_EQ(all[2]["type"], "reasoning");
  EXPECT_EQ(all[3]["content"], input[3]["content"]);
  json read = json::array();
  std::string query = "?limit=3";
  for (bool has_more = true; has_more;) {
    const json page = parsed(serving.get(path + query));
    ASSERT_FALSE(page["data"].empty());
    for (const json& item : page["data"]) read.push_back(item);
    EXPECT_EQ(page["last_id"], page["data"].back()["id"]);
    has_more = page["has_more"];
    query = "?limit=3&after=" + page["last_id"].get<std::string>();
  }
  EXPECT_EQ(read, json(std::vector<json>(all.rbegin(), all.rend())));
  EXPECT_TRUE(parsed(serving.get(path + "?after=" + all[0]["id"].get<std::string>()))["first_id"]
                  .is_null());
  for (const char* wrong : {"?limit=0", "?limit=101", "?limit=x", "?order=up", "?after=nobody"}) {
    const json refused = parsed(serving.get(path + wrong));
    EXPECT_TRUE(std::string(wrong).find(refused["error"]["param"].get<std::string>()) == 1u)
        << refused;
  }
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
  const json body = {{"input", kFrance},
                     {"tools", {tool}},
                     {"tool_choice", "required"},
                     {"parallel_tool_calls", false}};
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

  // Without an end of its own, an answer calls until it has as many tokens as it may.
  const int32_t end = serving.post_json("/tokenize", {{"content", "<|end|>"}})["tokens"][0];
  json endless = body;
  endless["parallel_tool_calls"] = true;
  endless["logit_bias"] = json::array({json::array({end, false})});
  endless["max_output_tokens"] = 120;
  EXPECT_GT(serving.post_json(kPath, endless)["output"].size(), 1u);
  for (const char* choice : {"required", "auto"}) {
    endless["parallel_tool_calls"] = false;
    endless["tool_choice"] = choice;
    const json single = serving.post_json(kPath, endless);
    EXPECT_EQ(single["parallel_tool_calls"], false);
    const auto is_call = [](const json& item) { return item["type"] == "function_call"; };
    EXPECT_LE(std::ranges::count_if(single["output"], is_call), 1) << single;
    if (choice != std::string("required")) continue;
    EXPECT_EQ(single["status"], "completed");
    ASSERT_EQ(single["output"].size(), 1u);
    EXPECT_EQ(single["output"][0]["arguments"], call["arguments"]);
  }

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
    return KeptResponse{.messages = {{.role = "user", .content = std::string(bytes, 'x')}}};
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
  EXPECT_EQ(table.find("a", "")->messages.front().content.size(), 1000u);
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
