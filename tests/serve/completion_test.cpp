// Text completions, the older form. Covers completion_writer.cpp, text_input.cpp and
// session/prompt_probabilities.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "serve/openai/completion_writer.h"
#include "tests/scratch_folder.h"
#include "tests/serve/events.h"
#include "tests/serve/nano_with.h"
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

// Of a model without tokens for a gap.
TEST(Completion, AnEmptySuffixIsNone) {
  Serving serving;
  const json body = {{"prompt", kPrompt}, {"suffix", ""}, {"echo", true}, {"logprobs", 1}};
  EXPECT_EQ(serving.post_json(kPath, body)["choices"][0]["text"], std::string(kPrompt) + kParis);
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

// Each number is within its limit, and all of them together are more than may wait.
TEST(Completion, MoreAnswersThanMayWaitAreMadeOneAfterTheOther) {
  Serving serving;
  std::vector<std::string> prompts(128, "One");
  prompts[127] = kPrompt;
  const json body = {{"prompt", prompts}, {"n", 16}, {"max_tokens", 1}};
  const json reply = serving.post_json(kPath, body);
  ASSERT_EQ(reply["choices"].size(), 128u * 16);
  const json alone = serving.post_json(kPath, {{"prompt", kPrompt}, {"max_tokens", 1}});
  for (size_t index = 0; index < reply["choices"].size(); ++index) {
    const json& choice = reply["choices"][index];
    EXPECT_EQ(choice["index"], index);
    EXPECT_EQ(choice["finish_reason"], "length");
    if (index >= 127 * 16) {
      EXPECT_EQ(choice["text"], alone["choices"][0]["text"]);
    }
  }
  EXPECT_EQ(reply["usage"]["completion_tokens"], 128 * 16);
}

// The queue is as short as a server with many tenants makes it: what it refuses is tried again.
TEST(Completion, AShortQueueMakesManyAnswersSlower) {
  for (const int32_t places : {1, 2, 64}) {
    Serving serving(SchedulerOptions{.running_max = places, .waiting_max = 1});
    for (const bool is_stream : {false, true}) {
      json body = {{"prompt", {kPrompt, "One", "Two"}}, {"n", 5}, {"max_tokens", 2}};
      body["stream"] = is_stream;
      const BareReply reply = serving.post(kPath, body.dump());
      ASSERT_EQ(reply.status, 200) << reply.body;
      if (!is_stream) {
        EXPECT_EQ(json::parse(reply.body)["choices"].size(), 15u) << places;
        continue;
      }
      EXPECT_EQ(reply.body.find("error"), std::string::npos) << reply.body;
      std::vector<int> ends(15, 0);
      for (const json& chunk : chunks_of(reply.body)) {
        for (const json& choice : chunk["choices"]) {
          if (choice["finish_reason"] == "length") ++ends[choice["index"].get<size_t>()];
        }
      }
      EXPECT_EQ(ends, std::vector<int>(15, 1)) << places;
    }
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

// The lists of a stream's pieces, of one choice, one after the other.
json streamed_lists(const std::string& events, int choice, std::string& text) {
  json lists = json::object();
  for (size_t at = 0, end; (end = events.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const json event = json::parse(events.substr(at + 6, end - at - 6), nullptr, false);
    if (!event.is_object()) continue;
    for (const json& one : event["choices"]) {
      if (one["index"] != choice) continue;
      text += one["text"].get<std::string>();
      for (const auto& [name, list] : one["logprobs"].items()) {
        for (const json& value : list) lists[name].push_back(value);
      }
    }
  }
  return lists;
}

// What is told of tokens beside a text that is told so far: they make up the text, and the last of
// them at most goes on behind it.
void expect_tokens_of(const std::string& text, const json& tokens, const std::string& where) {
  std::string told;
  for (size_t token = 0; token < tokens.size(); ++token) {
    EXPECT_LT(told.size(), text.size()) << where << ": " << tokens;
    told += tokens[token].get<std::string>();
  }
  EXPECT_TRUE(told.starts_with(text)) << where << ": " << tokens;
}

// A stop text is no part of the answer, and neither are its tokens; one that has the end of the
// answer and the beginning of the stop text is told whole.
TEST(Completion, ProbabilitiesEndWithTheText) {
  Serving serving;
  const std::string whole = kParis;
  const std::string asked = std::string(kPrompt).substr(std::string("<|bos|>").size());
  size_t within = 0;
  for (size_t begin = 0; begin < whole.size(); ++begin) {
    for (const size_t bytes : {size_t(1), size_t(3), size_t(9)}) {
      const std::string stop = whole.substr(begin, bytes);
      const size_t end = whole.find(stop);
      for (const bool echoes : {false, true}) {
        json body = {{"prompt", asked}, {"logprobs", 1}, {"echo", echoes}, {"stop", {stop}}};
        const json choice = serving.post_json(kPath, body)["choices"][0];
        const std::string prompt = echoes ? asked : "";
        const std::string where = "'" + stop + "'";
        EXPECT_EQ(choice["text"], prompt + whole.substr(0, end)) << where;
        const json& told = choice["logprobs"];
        std::string text;
        json tokens = json::array();
        // The first one of a prompt is before all texts, and in none.
        for (size_t token = echoes ? 1 : 0; token < told["tokens"].size(); ++token) {
          EXPECT_EQ(told["text_offset"][token], text.size()) << where << told;
          text += told["tokens"][token].get<std::string>();
          if (told["text_offset"][token] >= prompt.size()) tokens.push_back(told["tokens"][token]);
        }
        expect_tokens_of(whole.substr(0, end), tokens, where);
        within += text.size() > prompt.size() + end;
        EXPECT_EQ(told["token_logprobs"].size(), told["tokens"].size());
        body["stream"] = true;
        std::string streamed;
        const json lists = streamed_lists(serving.post(kPath, body.dump()).body, 0, streamed);
        for (const auto& [name, list] : told.items()) {
          EXPECT_EQ(lists.value(name, json::array()), list) << where;
        }
        EXPECT_EQ(streamed, choice["text"]) << where;
      }
    }
  }
  EXPECT_GT(within, 0u) << "some stop text begins within a token";
}

// A token that is a part of a character stands where that begins, in prompts and in answers.
TEST(Completion, OffsetsCountCharacters) {
  const std::string text = "a\u00e9b\u20acc";
  Serving serving;
  const tokenize::Tokenizer& tokenizer = *serving.service().engine().tokenizer();
  const std::vector<Token> tokens = tokenizer.encode(text, {.goes_on = true});
  session::Answer answer{.text = text, .tokens = tokens};
  json expected = json::array();
  size_t characters = 0, parts = 0;
  for (const Token token : tokens) {
    const std::string_view piece = tokenizer.piece(token);
    const bool is_part = (uint8_t(piece.front()) & 0xc0) == 0x80;
    expected.push_back(characters - is_part);
    parts += is_part;
    for (const char byte : piece) characters += (uint8_t(byte) & 0xc0) != 0x80;
    answer.probabilities.push_back({.chosen = {.token = token}});
  }
  ASSERT_GT(parts, 1u);
  openai::CompletionWriter writer({.id = "x", .created = 1, .model = "m"},
                                  {.tells_probabilities = true}, 1, &tokenizer);
  std::string whole;
  writer.end(std::span(&answer, 1), whole);
  EXPECT_EQ(json::parse(whole)["choices"][0]["logprobs"]["text_offset"], expected);
  const json body = {{"prompt", text}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}};
  json told = serving.post_json(kPath, body)["choices"][0]["logprobs"]["text_offset"];
  told.erase(0);  // The one that begins all texts.
  EXPECT_EQ(told, expected);
}

// What is held back because a stop text may begin with it comes with its probabilities, in the end
// too.
TEST(Completion, StreamsHoldProbabilitiesBackWithTheText) {
  Serving serving;
  using Stops = std::vector<std::string>;
  for (const Stops& stop : {Stops{"Fran\n"}, Stops{"capital of Norway", "of Spain"},
                            Stops{"is Paris.\n"}, Stops{"France is"}}) {
    const json body = {{"prompt", kPrompt}, {"logprobs", 0}, {"stop", stop}, {"stream", true}};
    std::string text;
    json tokens = json::array();
    for (const json& chunk : chunks_of(serving.post(kPath, body.dump()).body)) {
      for (const json& choice : chunk["choices"]) {
        text += choice["text"].get<std::string>();
        for (const json& token : choice["logprobs"]["tokens"]) tokens.push_back(token);
      }
      expect_tokens_of(text, tokens, stop.front());
    }
    EXPECT_EQ(text, stop.front() == "France is" ? "The capital of " : kParis);
  }
}

// By what stands before it, how likely each token is but the first: from the engine's own logits.
std::vector<double> own_log_probabilities(Engine& engine, const std::vector<int32_t>& ids) {
  std::vector<Token> tokens;
  for (const int32_t id : ids) tokens.push_back(Token(id));
  std::vector<double> all;
  memory::Sequence sequence = engine.memory().new_sequence();
  for (size_t begin = 0; begin < tokens.size(); begin += 16) {
    const auto part = std::span(tokens).subspan(begin, std::min<size_t>(16, tokens.size() - begin));
    std::vector<int32_t> outputs(part.size());
    std::iota(outputs.begin(), outputs.end(), 0);
    const StepItem item{.sequence = &sequence, .tokens = part, .outputs = outputs};
    const auto take = [&](size_t, const StepOutputs& rows) {
      for (int32_t row = 0; row < rows.count(); ++row) {
        const size_t next = begin + size_t(row) + 1;
        if (next == tokens.size()) break;
        const std::span<const float> logits = rows.logits(row);
        double sum = 0;
        for (const float logit : logits) sum += std::exp(double(logit));
        all.push_back(double(logits[size_t(index_of(tokens[next]))]) - std::log(sum));
      }
      return int32_t(part.size());
    };
    EXPECT_TRUE(engine.step({&item, 1}, take));
  }
  return all;
}

std::string long_prompt() {
  std::string text;
  for (int round = 0; round < 12; ++round) text += "Remember: blue is 17, and red is 4. ";
  return text + kPrompt;
}

TEST(Completion, EchoTellsHowLikelyThePromptsTokensAre) {
  Serving serving;
  const std::string prompt = long_prompt();
  const std::vector<int32_t> ids =
      serving.post_json("/tokenize", {{"content", prompt}, {"add_special", true}})["tokens"];
  ASSERT_GT(ids.size(), 150u) << "several steps";
  std::vector<double> own;
  serving.service().ask([&](Engine& engine) { own = own_log_probabilities(engine, ids); });
  EXPECT_EQ(serving.post_json(kPath, {{"prompt", prompt}})["choices"][0]["text"], kParis);
  const json body = {{"prompt", prompt}, {"echo", true}, {"logprobs", 3}};
  const json reply = serving.post_json(kPath, body);
  EXPECT_EQ(reply["memory"]["reused"], 0) << "memory keeps no logits";
  EXPECT_EQ(reply["memory"]["recomputed"], ids.size());
  EXPECT_TRUE(reply["memory"].contains("reason"));
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["text"], prompt + kParis);
  const json& told = choice["logprobs"];
  ASSERT_GT(told["tokens"].size(), ids.size());
  for (const char* list : {"token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(told[list].size(), told["tokens"].size()) << list;
  }
  EXPECT_TRUE(told["token_logprobs"][0].is_null() && told["top_logprobs"][0].is_null());
  for (size_t token = 1; token < ids.size(); ++token) {
    const double log_probability = told["token_logprobs"][token];
    EXPECT_NEAR(log_probability, own[token - 1], 1e-4) << token;
    double most = -1e9;
    for (const json& other : told["top_logprobs"][token])
      most = std::max(most, other.get<double>());
    EXPECT_GE(most, log_probability);
    EXPECT_EQ(told["top_logprobs"][token].size(), 3u);
  }
  // Its tokens stand where they say; the one that begins all texts stands nowhere.
  for (size_t token = 0; token < told["tokens"].size(); ++token) {
    const std::string piece = told["tokens"][token];
    const size_t offset = told["text_offset"][token];
    const bool is_added = token == 0 || token + 1 == told["tokens"].size();
    EXPECT_TRUE(is_added || choice["text"].get<std::string>().substr(offset).starts_with(piece))
        << token << piece;
  }
  EXPECT_EQ(told["tokens"].back(), "<|end|>");
  EXPECT_GT(serving.post_json(kPath, {{"prompt", prompt}})["memory"]["reused"], 100)
      << "what others share is unharmed";
}

// What harnesses that measure models send: they count on one token behind the prompt, or on none.
TEST(Completion, EchoOfMeasuredTexts) {
  Serving serving;
  const std::string bos = "<|bos|>", whole = std::string(kPrompt).substr(bos.size()) + kParis;
  const json ids =
      serving.post_json("/tokenize", {{"content", whole}, {"add_special", true}})["tokens"];
  for (const int count : {0, 1}) {
    for (const json& prompt : {json(whole), ids, json(json::array({ids}))}) {
      const json reply = serving.post_json(
          kPath, {{"prompt", prompt}, {"echo", true}, {"logprobs", 1}, {"max_tokens", count}});
      EXPECT_EQ(reply["usage"]["completion_tokens"], 0) << "the text is at its end";
      EXPECT_EQ(reply["choices"][0]["text"], prompt.is_string() ? whole : bos + whole);
      const json& told = reply["choices"][0]["logprobs"];
      ASSERT_EQ(told["tokens"].size(), ids.size() + size_t(count));
      if (count == 1) {
        EXPECT_EQ(told["tokens"].back(), "<|end|>");
      }
      // All that the model would have said itself.
      for (size_t token = ids.size() - 3; token < told["tokens"].size(); ++token) {
        EXPECT_EQ(told["top_logprobs"][token].size(), 1u);
        EXPECT_EQ(*told["top_logprobs"][token].begin(), told["token_logprobs"][token]);
      }
    }
  }
  const json plain = serving.post_json(
      kPath, {{"prompt", "x"}, {"echo", true}, {"logprobs", 0}, {"max_tokens", 0}});
  EXPECT_EQ(plain["choices"][0]["logprobs"]["token_logprobs"][0], json());
}

TEST(Completion, StreamsTellPromptsBeforeAnswers) {
  Serving serving;
  const std::string other = "<|bos|><|user|>What is the capital of Norway?<|end|><|assistant|>";
  json body = {{"prompt", {kPrompt, other}}, {"n", 2}, {"echo", true}, {"logprobs", 2}};
  const json choices = serving.post_json(kPath, body)["choices"];
  body["stream"] = true;
  const std::string events = serving.post(kPath, body.dump()).body;
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
  ASSERT_EQ(choices.size(), 4u);
  for (int choice = 0; choice < 4; ++choice) {
    std::string text;
    EXPECT_EQ(streamed_lists(events, choice, text), choices[size_t(choice)]["logprobs"]);
    EXPECT_EQ(text, choices[size_t(choice)]["text"]);
    EXPECT_TRUE(text.starts_with(choice < 2 ? kPrompt : other));
  }
}

// Of several answers one computes the prompt, whatever the others find of it in memory, and whoever
// is ahead.
TEST(Completion, SeveralAnswersTellAPromptThatWasComputedOnce) {
  Serving serving;
  const std::string prompt = long_prompt();
  json body = {{"prompt", prompt}, {"echo", true}, {"logprobs", 2}, {"max_tokens", 3}};
  const json alone = serving.post_json(kPath, body)["choices"][0];
  const size_t tokens =
      serving.post_json("/tokenize", {{"content", prompt}, {"add_special", true}})["tokens"].size();
  body["n"] = 4;
  for (const bool is_stream : {false, true}) {
    body["stream"] = is_stream;
    const int64_t rows = serving.service().stats().prompt_rows;
    const std::string reply = serving.post(kPath, body.dump()).body;
    EXPECT_LT(serving.service().stats().prompt_rows - rows, int64_t(tokens) + 64) << is_stream;
    for (int choice = 0; choice < 4; ++choice) {
      std::string text;
      json lists;
      if (is_stream) {
        lists = streamed_lists(reply, choice, text);
      } else {
        const json one = json::parse(reply)["choices"][size_t(choice)];
        lists = one["logprobs"];
        text = one["text"];
      }
      EXPECT_EQ(lists, alone["logprobs"]) << choice << is_stream;
      EXPECT_EQ(text, alone["text"]) << choice << is_stream;
    }
  }
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
  const json too_much = {{"prompt", std::vector<std::string>(16, long_prompt())},
                         {"n", 16},
                         {"logprobs", 100},
                         {"echo", true}};
  EXPECT_EQ(serving.refused(kPath, too_much), Refused(400, "logprobs"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"best_of", 2}}), Refused(400, "best_of"));
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"suffix", "y"}}), Refused(501, "suffix"))
      << "the model has no tokens for it";
  EXPECT_EQ(serving.refused(kPath, {{"prompt", "x"}, {"grammar", "root ::= ("}}),
            Refused(400, "grammar"));
}

// Its tokens do not stand in the order of the text.
TEST(Completion, AGapIsNotToldWithProbabilities) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("infill.gguf");
  write_nano_with({.numbers = {{"tokenizer.ggml.fim_pre_token_id", 2},
                               {"tokenizer.ggml.fim_suf_token_id", 3},
                               {"tokenizer.ggml.fim_mid_token_id", 5}}},
                  path);
  Serving serving({}, path);
  json body = {{"prompt", "x"}, {"suffix", "y"}, {"echo", true}, {"max_tokens", 1}};
  serving.post_json(kPath, body);
  body["logprobs"] = 1;
  EXPECT_EQ(serving.refused(kPath, body), std::make_pair(400, std::string("suffix")));
}

}  // namespace
}  // namespace cairn::serve::completion_test
