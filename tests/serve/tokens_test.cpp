// Tokens and templates. Covers info.cpp with app_test.cpp.
#include <gtest/gtest.h>

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
  for (const char* name : {"messages", "bos_token", "add_generation_prompt", "now", "tools"}) {
    body["chat_template_kwargs"] = {{name, "x"}};
    EXPECT_EQ(serving.refused("/apply-template", body),
              (std::pair<int, std::string>(400, "chat_template_kwargs")))
        << name;
  }
}

}  // namespace
}  // namespace cairn::serve::tokens_test
