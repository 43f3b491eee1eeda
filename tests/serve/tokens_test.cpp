// Tokens and templates. Covers info.cpp with app_test.cpp.
#include <gtest/gtest.h>

#include "tests/scratch_folder.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::tokens_test {
namespace {

using nlohmann::json;

TEST(Tokens, AndBack) {
  Serving serving;
  const std::string text = "Hello, w\xc3\xb6rld! <|end|>";
  const json ids = serving.post_json("/tokenize", {{"content", text}})["tokens"];
  EXPECT_EQ(serving.post_json("/detokenize", {{"tokens", ids}})["content"], text);
  const json with_special =
      serving.post_json("/tokenize", {{"content", text}, {"add_special", true}})["tokens"];
  EXPECT_GE(with_special.size(), ids.size());
  const json unparsed =
      serving.post_json("/tokenize", {{"content", text}, {"parse_special", false}})["tokens"];
  EXPECT_GT(unparsed.size(), ids.size()) << "<|end|> is no token then";
  const json pieces =
      serving.post_json("/tokenize", {{"content", text}, {"with_pieces", true}})["tokens"];
  ASSERT_EQ(pieces.size(), ids.size());
  for (size_t index = 0; index < pieces.size(); ++index) {
    EXPECT_EQ(pieces[index]["id"], ids[index]);
  }
  EXPECT_EQ(pieces[0]["piece"], "Hello");
  EXPECT_EQ(serving.post_json("/tokenize", {{"content", ""}})["count"], 0);
}

// As many as come back.
TEST(Tokens, TextsHaveALimit) {
  Serving serving;
  std::string text;
  while (text.size() < size_t(3) << 20) text += "~#";
  const json body = {{"content", text}, {"with_pieces", true}};
  EXPECT_EQ(serving.refused("/tokenize", body), (std::pair<int, std::string>(400, "content")));
  text.resize(size_t(256) << 10);
  const json reply = serving.post_json("/tokenize", {{"content", text}, {"with_pieces", true}});
  std::string spelled;
  for (const json& token : reply["tokens"]) spelled += token["piece"].get<std::string>();
  EXPECT_EQ(spelled, text);
  EXPECT_EQ(reply["count"], reply["tokens"].size());
}

TEST(Tokens, ThatAreNoTextAreBytes) {
  Serving serving;
  const json pieces = serving.post_json(
      "/tokenize", {{"content", "\"\n\xf0\x9f\xa6\x80"}, {"with_pieces", true}})["tokens"];
  std::string spelled;
  size_t lists = 0;
  for (const json& token : pieces) {
    if (token["piece"].is_string()) spelled += token["piece"].get<std::string>();
    if (!token["piece"].is_array()) continue;
    ++lists;
    for (const json& byte : token["piece"]) spelled += char(byte.get<int>());
  }
  EXPECT_EQ(spelled, "\"\n\xf0\x9f\xa6\x80");
  EXPECT_GT(lists, 0u);
}

TEST(Tokens, OfOthersAreRefused) {
  Serving serving;
  for (const json& tokens : {json::array({-1}), json::array({1 << 30}), json::array({"x"}),
                             json::array({1.5}), json::array({4294967296LL})}) {
    EXPECT_EQ(serving.refused("/detokenize", {{"tokens", tokens}}),
              (std::pair<int, std::string>(400, "tokens")))
        << tokens;
  }
}

TEST(Tokens, OfConversations) {
  Serving serving;
  json body = question("x");
  EXPECT_EQ(serving.post_json("/apply-template", body)["prompt"],
            "<|bos|><|user|>x<|end|><|assistant|>");
  body["add_generation_prompt"] = false;
  EXPECT_EQ(serving.post_json("/apply-template", body)["prompt"], "<|bos|><|user|>x<|end|>");
  for (const char* name :
       {"messages", "bos_token", "add_generation_prompt", "documents", "tools"}) {
    body["chat_template_kwargs"] = {{name, "x"}};
    EXPECT_EQ(serving.refused("/apply-template", body),
              (std::pair<int, std::string>(400, "chat_template_kwargs")))
        << name;
  }
}

// The prompt that /apply-template tells has the tokens of the one that is answered.
TEST(Tokens, OfConversationsAreThoseOfChats) {
  const test::ScratchFolder folder;
  const std::string written(kToolTemplate);
  write_nano_with({.chat_template = "{% if reasoning_effort %}{{ reasoning_effort }}{% endif %}"
                                    "{% if tools %}{{ tools | tojson }}{% endif %}" +
                                    written},
                  folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const auto count_of = [&](const json& body) {
    return serving.post_json("/v1/chat/completions/input_tokens", body)["input_tokens"];
  };
  json body = question("x");
  body["messages"][0]["content"] = {{{"type", "text"}, {"text", "x"}},
                                    {{"type", "text"}, {"text", "y"}}};
  body["messages"].insert(body["messages"].begin(),
                          json{{"role", "developer"}, {"content", "Be."}});
  json call = {{"id", "1"}, {"type", "function"}};
  call["function"] = {{"name", "f"}, {"arguments", R"({"a":1})"}};
  body["messages"].push_back({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}});
  body["messages"].push_back({{"role", "tool"}, {"tool_call_id", "1"}, {"content", "2"}});
  body["tools"] = {{{"type", "function"}, {"function", {{"name", "f"}}}}};
  body["reasoning_effort"] = "high";
  const std::string prompt = serving.post_json("/apply-template", body)["prompt"];
  EXPECT_TRUE(prompt.starts_with("high")) << prompt;
  EXPECT_NE(prompt.find("<|system|>Be.<|end|><|user|>xy<|end|><|assistant|>"), std::string::npos)
      << prompt;
  EXPECT_NE(prompt.find(R"("arguments": {"a": 1})"), std::string::npos) << prompt;
  EXPECT_NE(prompt.find(R"("parameters": {)"), std::string::npos) << prompt;
  EXPECT_TRUE(prompt.ends_with("<|tool|>2<|end|><|assistant|>")) << prompt;
  EXPECT_EQ(serving.post_json("/tokenize", {{"content", prompt}, {"add_special", true}})["count"],
            count_of(body));
  body["messages"][1]["content"] = json::array({json{{"type", "image_url"}}});
  EXPECT_EQ(serving.refused("/apply-template", body),
            (std::pair<int, std::string>(400, "messages[1].content[0]")));
}

}  // namespace
}  // namespace cairn::serve::tokens_test
