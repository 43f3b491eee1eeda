// Text completions, the older form. Covers completion_writer.cpp and text_input.cpp.
#include <gtest/gtest.h>

#include <string>

#include "tests/serve/serving.h"

namespace cairn::serve::completion_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/v1/completions";
// What the model's template makes of a question.
constexpr char kPrompt[] = "<|bos|><|user|>What is the capital of France?<|end|><|assistant|>";

TEST(Completion, ContinuesATextAndItsTokens) {
  Serving serving;
  const json reply = serving.post_json(kPath, {{"prompt", kPrompt}});
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(reply["choices"][0]["text"], kParis);
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  const json tokens =
      serving.post_json("/tokenize", {{"content", kPrompt}, {"add_special", true}})["tokens"];
  EXPECT_EQ(int(tokens.size()), reply["usage"]["prompt_tokens"].get<int>());
  EXPECT_EQ(serving.post_json(kPath, {{"prompt", tokens}})["choices"], reply["choices"]);
}

TEST(Completion, SeveralPromptsAndAnswersHaveTheirIndices) {
  Serving serving;
  const std::string other = "<|bos|><|user|>What is the capital of Norway?<|end|><|assistant|>";
  const json body = {{"prompt", {kPrompt, other}}, {"n", 2}, {"echo", true}};
  const json choices = serving.post_json(kPath, body)["choices"];
  ASSERT_EQ(choices.size(), 4u);
  for (size_t index = 0; index < 4; ++index) {
    EXPECT_EQ(choices[index]["index"], index);
    EXPECT_EQ(choices[index]["text"],
              index < 2 ? std::string(kPrompt) + kParis : other + "The capital of Norway is Oslo.");
  }
}

TEST(Completion, ProbabilitiesAreListsBesideEachOther) {
  Serving serving;
  const json logprobs =
      serving.post_json(kPath, {{"prompt", kPrompt}, {"logprobs", 2}})["choices"][0]["logprobs"];
  const size_t count = logprobs["tokens"].size();
  ASSERT_GT(count, 3u);
  EXPECT_EQ(logprobs["token_logprobs"].size(), count);
  EXPECT_EQ(logprobs["top_logprobs"].size(), count);
  std::string text;
  for (size_t token = 0; token < count; ++token) {
    EXPECT_EQ(logprobs["text_offset"][token], text.size());
    text += logprobs["tokens"][token].get<std::string>();
    EXPECT_EQ(logprobs["top_logprobs"][token].size(), 2u);
    EXPECT_EQ(logprobs["top_logprobs"][token][logprobs["tokens"][token].get<std::string>()],
              logprobs["token_logprobs"][token]);
  }
  EXPECT_EQ(text, kParis);
}

TEST(Completion, Streams) {
  Serving serving;
  for (const bool echoes : {false, true}) {
    const json body = {{"prompt", kPrompt},
                       {"stream", true},
                       {"echo", echoes},
                       {"stream_options", {{"include_usage", true}}}};
    const BareReply reply = serving.post(kPath, body.dump());
    EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
    std::string text;
    json usage;
    for (size_t at = 0, end; (end = reply.body.find("\n\n", at)) != std::string::npos;
         at = end + 2) {
      const json event = json::parse(reply.body.substr(at + 6, end - at - 6), nullptr, false);
      if (!event.is_object()) continue;
      for (const json& choice : event["choices"]) text += choice["text"].get<std::string>();
      if (event.contains("usage")) usage = event["usage"];
    }
    EXPECT_EQ(text, (echoes ? kPrompt : "") + std::string(kParis));
    EXPECT_GT(usage["completion_tokens"].get<int>(), 0);
  }
}

TEST(Completion, RefusalsNameTheField) {
  Serving serving;
  using Refused = std::pair<int, std::string>;
  EXPECT_EQ(serving.refused(kPath, json::object()), Refused(400, "prompt"));
  for (const json& prompt :
       {json(5), json::array(), json::object(), json::array({true}), json::array({-1}),
        json::array({1 << 30}), json::array({1, "x"}), json(std::vector<std::string>(129, "x"))}) {
    EXPECT_EQ(serving.refused(kPath, {{"prompt", prompt}}), Refused(400, "prompt")) << prompt;
  }
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"logprobs", 101}}), Refused(400, "logprobs"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"logprobs", 1}, {"echo", true}}),
            Refused(400, "echo"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"best_of", 2}}), Refused(400, "best_of"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"suffix", "y"}}), Refused(501, "suffix"))
      << "the model has no tokens for it";
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"grammar", "root ::= ("}}),
            Refused(400, "grammar"));
}

}  // namespace
}  // namespace cairn::serve::completion_test
