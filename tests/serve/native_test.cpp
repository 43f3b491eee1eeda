// llama.cpp's own routes: completions, infill, what the server says of itself, adapters. Covers
// llama/, infill.cpp, routes/native.cpp, routes/props.cpp and adapter_scales.h.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/events.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::native_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/completion";
constexpr char kPrompt[] = "<|user|>What is the capital of France?<|end|><|assistant|>";

TEST(Native, AnswersInItsOwnWords) {
  Serving serving;
  const json body = {
      {"prompt", kPrompt}, {"seed", 7}, {"return_tokens", true}, {"top_k", 3}, {"n_predict", 50}};
  for (const char* path : {kPath, "/completions"}) {
    const json reply = serving.post_json(path, body);
    EXPECT_EQ(reply["content"], kParis);
    EXPECT_EQ(serving.schemas().violation_of_type(reply, "NativeAnswer"), "");
    EXPECT_EQ(reply["stop"], true);
    EXPECT_EQ(reply["stop_type"], "eos");
    EXPECT_EQ(reply["stopping_word"], "");
    EXPECT_EQ(reply["model"], "test-model");
    EXPECT_EQ(reply["prompt"], "<|bos|>" + std::string(kPrompt));
    EXPECT_EQ(reply["truncated"], false);
    EXPECT_EQ(reply["has_new_line"], false);
    EXPECT_EQ(reply["tokens"].size(), reply["tokens_predicted"].get<size_t>());
    EXPECT_EQ(reply["timings"]["cache_n"].get<int>() + reply["timings"]["prompt_n"].get<int>(),
              reply["tokens_evaluated"].get<int>());
    EXPECT_EQ(reply["generation_settings"]["seed"], 7);
    EXPECT_EQ(reply["generation_settings"]["top_k"], 3);
    EXPECT_EQ(reply["generation_settings"]["n_predict"], 50);
    EXPECT_FALSE(reply.contains("completion_probabilities"));
    EXPECT_EQ(serving.post_json("/detokenize", {{"tokens", reply["tokens"]}})["content"], kParis);
  }
}

TEST(Native, StreamsWhatItAnswersWhole) {
  Serving serving;
  const json body = {
      {"prompt", kPrompt}, {"stream", true}, {"n_probs", 2}, {"return_tokens", true}};
  const BareReply reply = serving.post(kPath, body.dump());
  EXPECT_TRUE(reply.has("content-type: text/event-stream\r\n"));
  std::vector<json> events;
  for (const Event& event : events_of(reply.body)) events.push_back(json::parse(event.data));
  for (const json& event : events) {
    const char* const type = event["stop"] == true ? "NativeAnswer" : "NativePiece";
    EXPECT_EQ(serving.schemas().violation_of_type(event, type), "");
  }
  ASSERT_GE(events.size(), 2u);
  std::string text;
  size_t tokens = 0, probabilities = 0;
  for (const json& event : events) {
    text += event["content"].get<std::string>();
    tokens += event["tokens"].size();
    probabilities += event.value("completion_probabilities", json::array()).size();
    EXPECT_EQ(event["stop"], &event == &events.back());
    EXPECT_EQ(event["tokens_evaluated"], events.back()["tokens_evaluated"]);
  }
  EXPECT_EQ(text, kParis);
  EXPECT_EQ(tokens, events.back()["tokens_predicted"].get<size_t>());
  EXPECT_EQ(probabilities, tokens);
  EXPECT_EQ(events.back()["stop_type"], "eos");
  EXPECT_TRUE(events.back()["timings"].contains("predicted_per_second"));
}

TEST(Native, SaysWhyItStopped) {
  Serving serving;
  json body = {{"prompt", kPrompt}, {"stop", {"Nothing", "France"}}};
  const json word = serving.post_json(kPath, body);
  EXPECT_EQ(word["content"], "The capital of ");
  EXPECT_EQ(word["stop_type"], "word");
  EXPECT_EQ(word["stopping_word"], "France");
  const json limit = serving.post_json(kPath, {{"prompt", kPrompt}, {"n_predict", 2}});
  EXPECT_EQ(limit["stop_type"], "limit");
  EXPECT_EQ(limit["tokens_predicted"], 2);
  const json warm = serving.post_json(kPath, {{"prompt", kPrompt}, {"n_predict", 0}});
  EXPECT_EQ(warm["content"], "");
  EXPECT_EQ(warm["tokens_predicted"], 0);
}

// The last of several names decides, on every route.
TEST(Native, LengthsHaveSeveralNames) {
  Serving serving;
  json asked = question("Count.");
  asked.update({{"prompt", "Count."}, {"ignore_eos", true}});
  for (const char* path : {kPath, "/v1/completions", "/v1/chat/completions"}) {
    json body = asked;
    int length = 2;
    for (const char* name : {"max_tokens", "max_completion_tokens", "n_predict"}) {
      body[name] = ++length;
      const json reply = serving.post_json(path, body);
      const json made =
          path == kPath ? reply["tokens_predicted"] : reply["usage"]["completion_tokens"];
      EXPECT_EQ(made, length) << path << " " << name;
    }
  }
}

TEST(Native, PromptsAreTextsIdsOrBoth) {
  Serving serving;
  const json ids =
      serving.post_json("/tokenize", {{"content", kPrompt}, {"add_special", true}})["tokens"];
  json mixed = json::array();
  const json question = serving.post_json(
      "/tokenize", {{"content", "<|user|>What is the capital of France?"}})["tokens"];
  mixed.push_back(ids[0]);
  for (const json& id : question) mixed.push_back(id);
  mixed.push_back("<|end|><|assistant|>");
  for (const json& prompt : {ids, mixed}) {
    EXPECT_EQ(serving.post_json(kPath, {{"prompt", prompt}})["content"], kParis) << prompt;
  }
  const json several = serving.post_json(kPath, {{"prompt", {ids, kPrompt, mixed}}});
  ASSERT_EQ(several.size(), 3u);
  for (size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(several[index]["index"], index);
    EXPECT_EQ(several[index]["content"], kParis);
  }
  EXPECT_TRUE(serving.post_json(kPath, {{"prompt", json::array({kPrompt})}}).is_array());
  const json object = {{"prompt_string", kPrompt}};
  EXPECT_EQ(serving.post_json(kPath, {{"prompt", object}})["content"], kParis);
  EXPECT_EQ(serving.post_json(kPath, {{"prompt", {object, "x"}}, {"n_predict", 24}})[0]["content"],
            kParis);
}

TEST(Native, RepliesHaveTheMembersThatAreWanted) {
  Serving serving;
  const json reply = serving.post_json(
      kPath, {{"prompt", kPrompt},
              {"response_fields", {"content", "generation_settings/top_k", "no/such", ""}}});
  EXPECT_EQ(reply, (json{{"content", kParis}, {"generation_settings/top_k", 40}}));
}

TEST(Native, ProbabilitiesAreLogarithmsOrShares) {
  Serving serving;
  json body = {{"prompt", kPrompt}, {"n_probs", 3}, {"n_predict", 2}, {"temperature", 1}};
  const json before = serving.post_json(kPath, body)["completion_probabilities"];
  ASSERT_EQ(before.size(), 2u);
  EXPECT_LE(before[0]["logprob"].get<double>(), 0);
  EXPECT_EQ(before[0]["top_logprobs"].size(), 3u);
  EXPECT_TRUE(before[0]["top_logprobs"][0].contains("id"));
  body["post_sampling_probs"] = true;
  const json after = serving.post_json(kPath, body)["completion_probabilities"];
  EXPECT_GT(after[0]["prob"].get<double>(), 0);
  EXPECT_GE(after[0]["top_probs"][0]["prob"], after[0]["prob"]);
}

TEST(Native, AnswersHaveForms) {
  Serving serving;
  const json reply = serving.post_json(
      kPath, {{"prompt", kPrompt}, {"grammar", "root ::= \"yes\" | \"no\""}, {"n_predict", 9}});
  EXPECT_TRUE(reply["content"] == "yes" || reply["content"] == "no") << reply["content"];
}

TEST(Native, WhatPropsTellMayBeSent) {
  Serving serving;
  const json props = json::parse(serving.get("/props").body);
  json body = props["default_generation_settings"]["params"];
  EXPECT_EQ(body["grammar"], "");
  body["prompt"] = kPrompt;
  EXPECT_EQ(serving.post_json(kPath, body)["content"], kParis);
  json chat = question(kFrance);
  chat["grammar"] = "";
  EXPECT_EQ(serving.post_json("/v1/chat/completions", chat)["choices"][0]["message"]["content"],
            kParis);
}

TEST(Native, RefusalsNameTheField) {
  Serving serving;
  using Refused = std::pair<int, std::string>;
  EXPECT_EQ(serving.refused(kPath, json::object()), Refused(400, "prompt"));
  for (const json& prompt : {json(5), json::array(), json::object(), json::array({true}),
                             json::array({-1}), json::array({1 << 30}), json::array({1, true}),
                             json{{"prompt_string", "x"}, {"multimodal_data", {"AA=="}}},
                             json(std::vector<std::string>(129, "x"))}) {
    EXPECT_EQ(serving.refused(kPath, {{"prompt", prompt}}), Refused(400, "prompt")) << prompt;
  }
  const json lora = {{{"id", 0}, {"scale", 1}}};
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"lora", lora}}), Refused(400, "lora"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"response_fields", {1}}}),
            Refused(400, "response_fields"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"n_probs", 101}}), Refused(400, "n_probs"));
  EXPECT_EQ(serving.refused("/infill", {{"input_prefix", "x"}}), Refused(501, "suffix"))
      << "the model has no tokens for it";
}

class InfillTest : public testing::Test {
 protected:
  static std::string model(const test::ScratchFolder& folder) {
    const std::string path = folder.file("infill.gguf");
    // <|system|>, <|user|> and <|pad|>.
    write_nano_with({.numbers = {{"tokenizer.ggml.fim_pre_token_id", 2},
                                 {"tokenizer.ggml.fim_suf_token_id", 3},
                                 {"tokenizer.ggml.fim_mid_token_id", 5}}},
                    path);
    return path;
  }
  test::ScratchFolder folder_;
};

TEST_F(InfillTest, PromptsHaveTheirPartsInOrder) {
  Serving serving({}, model(folder_));
  const json body = {{"input_prefix", "before"},
                     {"input_suffix", "after"},
                     {"prompt", "begun"},
                     {"input_extra", {{{"filename", "a.txt"}, {"text", "one"}}}},
                     {"n_predict", 1}};
  const json reply = serving.post_json("/infill", body);
  EXPECT_EQ(reply["prompt"], "<|bos|>\n\n# a.txt\n\none<|system|>before<|user|>after<|pad|>begun");
  EXPECT_EQ(reply["tokens_predicted"], 1);
  const json suffix = serving.post_json(
      "/v1/completions", {{"prompt", "before"}, {"suffix", "after"}, {"max_tokens", 1}});
  EXPECT_EQ(suffix["choices"].size(), 1u);
  EXPECT_EQ(serving.post_json("/infill", {{"input_prefix", "x"},
                                          {"max_tokens", 2},
                                          {"ignore_eos", true}})["tokens_predicted"],
            2);
  // What somebody typed spells no special token.
  EXPECT_EQ(serving.post_json("/infill", {{"input_prefix", "<|end|>"}, {"n_predict", 1}})["prompt"],
            "<|bos|><|system|><|end|><|user|><|pad|>");
  EXPECT_GT(serving.post_json("/infill",
                              {{"input_prefix", "<|end|>"}, {"n_predict", 1}})["tokens_evaluated"],
            5);
}

TEST_F(InfillTest, FilesThatDoNotFitAreLeftOutAndTold) {
  EngineOptions options;
  options.context_tokens = 256;
  Serving serving({}, model(folder_), options);
  std::string large;
  for (int word = 0; word < 400; ++word) large += "word ";
  json files = {{{"text", large}}, {{"filename", "b"}, {"text", "two"}}};
  const json body = {{"input_prefix", "x"}, {"input_extra", files}, {"n_predict", 1}};
  const json reply = serving.post_json("/infill", body);
  EXPECT_EQ(reply["left_out_files"], 1);
  EXPECT_EQ(reply["truncated"], true);
  EXPECT_EQ(reply["prompt"], "<|bos|>\n\n# b\n\ntwo<|system|>x<|user|><|pad|>");
  const BareReply refused = serving.post("/infill", json{{"input_prefix", large}}.dump());
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("context_length_exceeded"), std::string::npos);
  for (const json& file :
       {json(1), json{{"filename", "x"}}, json{{"filename", 1}, {"text", "x"}}}) {
    EXPECT_EQ(serving.refused("/infill", {{"input_extra", json::array({file})}}),
              std::pair(400, std::string("input_extra")))
        << file;
  }
}

TEST(Native, SaysWhatItServes) {
  AppOptions options;
  options.requests_max = 3;
  Serving serving(std::move(options));
  const json props = json::parse(serving.get("/props").body);
  EXPECT_EQ(props["model_alias"], "test-model");
  EXPECT_EQ(props["total_slots"], 3);
  EXPECT_EQ(props["bos_token"], "<|bos|>");
  EXPECT_NE(props["chat_template"].get<std::string>().find("add_generation_prompt"),
            std::string::npos);
  EXPECT_GT(props["default_generation_settings"]["n_ctx"].get<int>(), 0);
  EXPECT_EQ(props["default_generation_settings"]["params"]["temperature"], 0);
  const json slots = json::parse(serving.get("/slots").body);
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0]["is_processing"], false);
  EXPECT_EQ(json::parse(serving.get("/lora-adapters").body), json::array());
}

TEST(Native, SlotsAreWhatIsAnswered) {
  AppOptions options;
  options.requests_max = 1;
  // An answer without an end, however slow this thread is.
  Serving serving(std::move(options), "", {.context_policy = ContextPolicy::shift});
  BareClient asking = serving.client();
  const json body = {{"prompt", kPrompt}, {"ignore_eos", true}, {"stream", true}};
  ASSERT_TRUE(asking.send(post_request(kPath, body.dump())));
  ASSERT_TRUE(asking.wait_for("data: "));
  const json slots = json::parse(serving.get("/slots").body);
  ASSERT_EQ(slots.size(), 1u);
  EXPECT_EQ(slots[0]["is_processing"], true);
  EXPECT_EQ(serving.get("/slots?fail_on_no_slot=1").status, 503);
}

TEST(Native, AdaptersAreChangedByOperatorsAndChosenByRequests) {
  const std::string base = std::string(CAIRN_FIXTURES) + "/folders/Tiny-Llama-3.1-8B-Instruct.gguf";
  const std::string admin = "an-admin-key-for-tests", user = "a-user-key-for-tests";
  EngineOptions engine;
  for (const char* name : {"tone", "facts"}) {
    engine.adapters.push_back(
        {.path = std::string(CAIRN_FIXTURES) + "/adapters/" + name + ".gguf", .scale = 0});
  }
  AppOptions options;
  ASSERT_TRUE(options.keys.add(user, Role::user));
  ASSERT_TRUE(options.keys.add(admin, Role::admin));
  Serving serving(std::move(options), base, engine);
  const auto bearer = [](const std::string& key) {
    return "Authorization: Bearer " + key + "\r\n";
  };
  const json body = {{"prompt", {5, 6, 7, 8}}, {"n_predict", 8}, {"return_tokens", true}};
  const auto tokens_of = [&](const json& asked) {
    const BareReply reply = serving.post(kPath, asked.dump(), bearer(user));
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body)["tokens"];
  };
  const json plain = tokens_of(body);
  json with_tone = body;
  with_tone["lora"] = {{{"id", 0}, {"scale", 2.0}}};
  const json chosen = tokens_of(with_tone);
  EXPECT_NE(chosen, plain);
  EXPECT_EQ(tokens_of(body), plain) << "the choice was that request's";

  const std::string scales = R"([{"id":0,"scale":2.0}])";
  EXPECT_EQ(serving.post("/lora-adapters", scales, bearer(user)).status, 403);
  EXPECT_EQ(serving.post("/lora-adapters", R"([{"id":2,"scale":1}])", bearer(admin)).status, 400);
  EXPECT_EQ(serving.post("/lora-adapters", R"([{"id":0}])", bearer(admin)).status, 400);
  EXPECT_EQ(serving.post("/lora-adapters", R"([1)", bearer(admin)).status, 400);
  EXPECT_EQ(tokens_of(body), plain);
  EXPECT_EQ(serving.post("/lora-adapters", scales, bearer(admin)).status, 200);
  EXPECT_EQ(tokens_of(body), chosen);
  const json told = json::parse(serving.get("/lora-adapters", bearer(user)).body);
  EXPECT_EQ(told[0], (json{{"id", 0}, {"name", "tone"}, {"path", "tone"}, {"scale", 2.0}}));
  EXPECT_EQ(told[1]["scale"], 0);
}

}  // namespace
}  // namespace cairn::serve::native_test
