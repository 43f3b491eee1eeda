// Answers that go on from a given beginning.
#include <gtest/gtest.h>

#include <string>

#include "tests/serve/events.h"
#include "tests/serve/serving.h"

namespace cairn::serve::continued_chat_test {
namespace {

using nlohmann::json;

json begun(const std::string& answer) {
  json body = question("What is the capital of France?");
  body["messages"].push_back({{"role", "assistant"}, {"content", answer}});
  body["continue_final_message"] = true;
  return body;
}

TEST(ContinuedChat, GoesOnFromWhereItIs) {
  Serving serving;
  const json whole =
      serving.post_json("/v1/chat/completions", question("What is the capital of France?"));
  const std::string text = whole["choices"][0]["message"]["content"];
  ASSERT_EQ(text, "The capital of France is Paris.");
  const json rest = serving.post_json("/v1/chat/completions", begun("The capital of France"));
  EXPECT_EQ(rest["choices"][0]["message"]["content"], text);
  EXPECT_GT(whole["usage"]["completion_tokens"], rest["usage"]["completion_tokens"]);
  EXPECT_GT(rest["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"]);
  // What the first answer had is there.
  EXPECT_GE(rest["memory"]["reused"], whole["usage"]["prompt_tokens"]);
}

TEST(ContinuedChat, AStreamHasTheRestAlone) {
  Serving serving;
  json body = begun("The capital of France");
  body["stream"] = true;
  const BareReply reply = serving.post("/v1/chat/completions", body.dump());
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(text_in(chunks_of(reply.body)), " is Paris.");
}

TEST(ContinuedChat, OnlyAnswersOfTextCanBeContinued) {
  Serving serving;
  const auto refused = [&](json body) {
    body["continue_final_message"] = true;
    return serving.refused("/v1/chat/completions", body);
  };
  const std::pair<int, std::string> expected(400, "continue_final_message");
  EXPECT_EQ(refused(question("What is the capital of France?")), expected);
  EXPECT_EQ(refused(begun("")), expected);
  EXPECT_EQ(refused({{"messages", {{{"role", "assistant"}, {"content", "The"}}}}}), expected);
}

// A prompt ends either where an answer begins or within one.
TEST(ContinuedChat, HasNoPlaceForAnotherAnswer) {
  Serving serving;
  const char* const path = "/v1/chat/completions";
  json body = begun("The capital of France");
  body["add_generation_prompt"] = false;
  EXPECT_EQ(serving.post(path, body.dump()).status, 200);
  const std::pair<int, std::string> expected(400, "add_generation_prompt");
  body["add_generation_prompt"] = true;
  EXPECT_EQ(serving.refused(path, body), expected);
  body = question("What is the capital of France?");
  body["add_generation_prompt"] = true;
  EXPECT_EQ(serving.post(path, body.dump()).status, 200);
  body["add_generation_prompt"] = false;
  EXPECT_EQ(serving.refused(path, body), expected);
}

}  // namespace
}  // namespace cairn::serve::continued_chat_test
