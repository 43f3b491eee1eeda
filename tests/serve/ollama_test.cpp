// Ollama's routes: lines of JSON, options, forms, tools, what the model is, vectors. Covers ollama/
// and routes/ollama.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::ollama_test {
namespace {

using nlohmann::json;

constexpr char kChat[] = "/api/chat", kGenerate[] = "/api/generate";

std::vector<json> lines_of(const BareReply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.has("content-type: application/x-ndjson\r\n"));
  std::vector<json> lines;
  for (size_t at = 0, end; (end = reply.body.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(json::parse(reply.body.substr(at, end - at)));
  }
  EXPECT_TRUE(reply.body.ends_with("\n"));
  return lines;
}

json whole(json body) {
  body["stream"] = false;
  return body;
}

// The status of a refusal, and its message.
std::pair<int, std::string> refused(Serving& serving, const char* path, const json& body) {
  const BareReply reply = serving.post(path, body.dump());
  const json error = json::parse(reply.body, nullptr, false);
  if (!error.is_object() || !error.value("error", json()).is_string()) return {reply.status, ""};
  return {reply.status, error["error"]};
}

void expect_figures(const json& last) {
  EXPECT_EQ(last["done"], true);
  EXPECT_EQ(last["done_reason"], "stop");
  EXPECT_GT(last["prompt_eval_count"].get<int>(), 0);
  EXPECT_GT(last["eval_count"].get<int>(), 0);
  EXPECT_GT(last["eval_duration"].get<int64_t>(), 0);
  EXPECT_GE(last["total_duration"].get<int64_t>(), last["eval_duration"].get<int64_t>());
  EXPECT_EQ(last["load_duration"], 0);
  EXPECT_TRUE(last["memory"].contains("reused"));
}

TEST(Ollama, ChatsInLinesUnlessToldOtherwise) {
  Serving serving;
  json body = question(kFrance);
  body["model"] = "any";
  const std::vector<json> lines = lines_of(serving.post(kChat, body.dump()));
  ASSERT_GE(lines.size(), 2u);
  std::string text;
  for (const json& line : lines) {
    EXPECT_EQ(line["model"], "test-model:latest");
    EXPECT_EQ(line["message"]["role"], "assistant");
    EXPECT_EQ(line["created_at"].get<std::string>().size(), 24u);
    EXPECT_EQ(line["done"], &line == &lines.back());
    text += line["message"]["content"].get<std::string>();
  }
  EXPECT_EQ(text, kParis);
  expect_figures(lines.back());
  const json reply = serving.post_json(kChat, whole(body));
  EXPECT_EQ(reply["message"]["content"], kParis);
  expect_figures(reply);
}

TEST(Ollama, GeneratesWithAndWithoutTheTemplate) {
  Serving serving;
  std::string text;
  const std::vector<json> lines =
      lines_of(serving.post(kGenerate, json{{"model", "any"}, {"prompt", kFrance}}.dump()));
  for (const json& line : lines) text += line["response"].get<std::string>();
  EXPECT_EQ(text, kParis);
  expect_figures(lines.back());
  const std::string prompt = "<|user|>" + std::string(kFrance) + "<|end|><|assistant|>";
  const json raw = serving.post_json(kGenerate, whole({{"prompt", prompt}, {"raw", true}}));
  EXPECT_EQ(raw["response"], kParis);
  EXPECT_FALSE(raw.contains("context"));
  EXPECT_EQ(raw["prompt_eval_count"], lines.back()["prompt_eval_count"]);
}

// The tokens of a reply, handed back, stand before the next prompt.
TEST(Ollama, GoesOnFromAContext) {
  Serving serving;
  const json first = serving.post_json(
      kGenerate, whole({{"prompt", "Remember: blue is 17."}, {"system", "Be brief."}}));
  const size_t known = first["context"].size();
  EXPECT_EQ(known, first["prompt_eval_count"].get<size_t>() + first["eval_count"].get<size_t>());
  const json second =
      serving.post_json(kGenerate, whole({{"prompt", "x"}, {"context", first["context"]}}));
  EXPECT_GE(second["memory"]["reused"].get<size_t>(), known - 1);
  EXPECT_EQ(
      second["prompt_eval_count"].get<size_t>() - known,
      serving.post_json(kGenerate, whole({{"prompt", "x"}}))["prompt_eval_count"].get<size_t>() - 1)
      << "a text begins once";
  EXPECT_EQ(refused(serving, kGenerate, {{"prompt", "x"}, {"context", {1 << 30}}}).first, 400);
}

TEST(Ollama, WithoutAQuestionItIsLoaded) {
  Serving serving;
  for (const auto& [keep, reason] : std::vector<std::pair<json, std::string>>{{nullptr, "load"},
                                                                              {"5m", "load"},
                                                                              {-1, "load"},
                                                                              {0, "unload"},
                                                                              {"0", "unload"},
                                                                              {"0s", "unload"}}) {
    const json body = {{"model", "any"}, {"keep_alive", keep}};
    const json chat = serving.post_json(kChat, whole(body));
    EXPECT_EQ(chat["done_reason"], reason) << keep;
    EXPECT_EQ(chat["message"]["content"], "");
    EXPECT_EQ(lines_of(serving.post(kGenerate, body.dump())).at(0)["done_reason"], reason) << keep;
  }
  EXPECT_EQ(serving.post_json(kChat, whole(question(kFrance)))["message"]["content"], kParis)
      << "and stays so";
}

TEST(Ollama, OptionsAreThoseOfOthers) {
  Serving serving;
  const auto answer = [&](const json& options) {
    json body = question(kFrance);
    body["options"] = options;
    return serving.post_json(kChat, whole(body));
  };
  EXPECT_EQ(answer({{"num_predict", 2}})["done_reason"], "length");
  EXPECT_EQ(answer({{"num_predict", 2}})["eval_count"], 2);
  EXPECT_EQ(answer({{"num_predict", -2}})["message"]["content"], kParis);
  EXPECT_EQ(answer({{"stop", {"France"}}})["message"]["content"], "The capital of ");
  EXPECT_EQ(answer({{"num_ctx", 16}, {"num_gpu", 99}, {"mirostat", nullptr}})["message"]["content"],
            kParis);
  const json drawn = {{"temperature", 5}, {"seed", 3}, {"top_k", 0}, {"min_p", 0}, {"top_p", 1}};
  EXPECT_EQ(answer(drawn)["message"], answer(drawn)["message"]);
  EXPECT_NE(answer(drawn)["message"]["content"], kParis);
}

TEST(Ollama, AnswersHaveForms) {
  Serving serving;
  json body = question(kFrance);
  body["options"] = {{"num_predict", 60}};
  body["format"] = {{"type", "object"},
                    {"properties", {{"city", {{"type", "string"}, {"maxLength", 8}}}}},
                    {"required", {"city"}},
                    {"additionalProperties", false}};
  const json reply = serving.post_json(kChat, whole(body));
  const json said = json::parse(reply["message"]["content"].get<std::string>());
  EXPECT_TRUE(said["city"].is_string());
  body["format"] = "json";
  const std::string text = serving.post_json(kChat, whole(body))["message"]["content"];
  EXPECT_TRUE(text.starts_with("{")) << text;
}

TEST(Ollama, TellsProbabilities) {
  Serving serving;
  json body = question(kFrance);
  body["logprobs"] = true;
  body["top_logprobs"] = 2;
  size_t count = 0;
  for (const json& line : lines_of(serving.post(kChat, body.dump()))) {
    for (const json& one : line.value("logprobs", json::array())) {
      EXPECT_EQ(one["top_logprobs"].size(), 2u);
      ++count;
    }
  }
  const json reply = serving.post_json(kChat, whole(body));
  EXPECT_EQ(reply["logprobs"].size(), count);
  EXPECT_EQ(reply["eval_count"], count);
}

TEST(Ollama, CallsTools) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const json call = {{"function", {{"name", "weather"}, {"arguments", {{"city", "Oslo"}}}}}};
  json messages = json::array();
  messages.push_back({{"role", "user"}, {"content", kFrance}});
  messages.push_back({{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}});
  messages.push_back({{"role", "tool"}, {"content", "rain"}, {"tool_name", "weather"}});
  const json tool = {
      {"type", "function"},
      {"function",
       {{"name", "weather"},
        {"strict", true},
        {"parameters", {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}}}}}};
  const json body = {{"messages", messages}, {"tools", {tool}}, {"options", {{"num_predict", 5}}}};
  EXPECT_EQ(serving.post_json(kChat, whole(body))["message"]["role"], "assistant");
  json wrong = body;
  wrong["messages"][1]["tool_calls"] = {{{"function", {{"arguments", 1}}}}};
  EXPECT_EQ(refused(serving, kChat, wrong).first, 400);
  const json shown = serving.post_json("/api/show", {{"model", "any"}});
  EXPECT_EQ(shown["capabilities"], json::array({"completion", "tools"}));
}

TEST(Ollama, SaysWhatItServes) {
  Serving serving;
  const json tags = json::parse(serving.get("/api/tags").body)["models"];
  ASSERT_EQ(tags.size(), 1u);
  EXPECT_EQ(tags[0]["name"], "test-model:latest");
  EXPECT_EQ(tags[0]["model"], tags[0]["name"]);
  EXPECT_EQ(tags[0]["modified_at"], "2026-05-28T20:26:40.000Z");
  EXPECT_GT(tags[0]["size"].get<int64_t>(), 100000);
  EXPECT_EQ(tags[0]["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(tags[0]["details"]["format"], "gguf");
  EXPECT_EQ(tags[0]["details"]["quantization_level"], "Q8_0");
  const json running = json::parse(serving.get("/api/ps").body)["models"];
  EXPECT_GT(running[0]["context_length"].get<int>(), 0);
  EXPECT_TRUE(running[0].contains("expires_at"));
  EXPECT_EQ(json::parse(serving.get("/api/version").body)["version"], CAIRN_VERSION);
  for (const char* name : {"model", "name"}) {
    const json shown = serving.post_json("/api/show", {{name, "any"}});
    EXPECT_EQ(shown["capabilities"], json::array({"completion"}));
    EXPECT_NE(shown["template"].get<std::string>().find("add_generation_prompt"),
              std::string::npos);
    EXPECT_NE(shown["parameters"].get<std::string>().find("top_k   "), std::string::npos);
    EXPECT_FALSE(shown["parameters"].get<std::string>().ends_with("\n"));
    EXPECT_TRUE(shown["model_info"].contains("general.architecture"));
    EXPECT_TRUE(shown["model_info"]["tokenizer.ggml.tokens"].is_null());
  }
}

TEST(Ollama, MakesVectors) {
  EngineOptions options;
  options.pooling = Pooling::mean;
  options.context_tokens = 64;
  Serving serving({}, std::string(CAIRN_FIXTURES) + "/golden_embeddings/bert.gguf", options);
  const json several = serving.post_json("/api/embed", {{"input", {"one", "two"}}});
  ASSERT_EQ(several["embeddings"].size(), 2u);
  EXPECT_GT(several["prompt_eval_count"].get<int>(), 2);
  const json one = serving.post_json("/api/embed", {{"input", "one"}, {"dimensions", 4}});
  EXPECT_EQ(one["embeddings"][0].size(), 4u);
  const json older = serving.post_json("/api/embeddings", {{"prompt", "one"}});
  EXPECT_EQ(older["embedding"], several["embeddings"][0]);
  std::string large;
  for (int word = 0; word < 200; ++word) large += "word ";
  EXPECT_EQ(serving.post_json("/api/embed", {{"input", large}})["prompt_eval_count"], 64);
  EXPECT_EQ(refused(serving, "/api/embed", {{"input", large}, {"truncate", false}}).first, 400);
  EXPECT_EQ(refused(serving, "/api/embed", json::object()).first, 400);
  EXPECT_EQ(serving.post_json("/api/show", {{"model", "x"}})["capabilities"],
            json::array({"embedding"}));
  EXPECT_EQ(refused(serving, kChat, question("x")).first, 501);
}

TEST(Ollama, RefusalsAreTexts) {
  AppOptions options;
  Serving serving(std::move(options));
  const auto expect_refused = [&](const char* path, const json& body, const std::string& names) {
    const auto [status, message] = refused(serving, path, body);
    EXPECT_EQ(status, 400) << body;
    EXPECT_TRUE(message.starts_with(names)) << message;
  };
  json body = question("x");
  body["options"] = {{"temperature", -1}};
  expect_refused(kChat, body, "options.temperature: ");
  body["options"] = {{"num_ctx", 1 << 29}};
  expect_refused(kChat, body, "options.num_ctx: ");
  body["options"] = 5;
  expect_refused(kChat, body, "options: ");
  body = question("x");
  body["messages"][0]["images"] = {"aGVsbG8="};
  expect_refused(kChat, body, "messages[0].images: ");
  body = question("x");
  body["format"] = "yaml";
  expect_refused(kChat, body, "format: ");
  body = question("x");
  body["think"] = 5;
  expect_refused(kChat, body, "think: ");
  for (const json& message :
       {json(5), json({{"role", "nobody"}}), json({{"role", "user"}, {"content", 5}})}) {
    expect_refused(kChat, {{"messages", {message}}}, "messages[0]");
  }
  expect_refused(kGenerate, {{"prompt", "x"}, {"images", {"aGVsbG8="}}}, "images: ");
  expect_refused(kGenerate, {{"prompt", "x"}, {"template", "y"}}, "template: ");
  EXPECT_EQ(refused(serving, kGenerate, {{"prompt", "x"}, {"suffix", "y"}}).first, 501);
  EXPECT_EQ(json::parse(serving.get("/api/nothing").body)["error"].type(), json::value_t::string);
  EXPECT_EQ(json::parse(serving.get(kChat).body)["error"].type(), json::value_t::string);
}

}  // namespace
}  // namespace cairn::serve::ollama_test
