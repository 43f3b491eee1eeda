// Chat completions on the built-in model: whole and streamed, several at a time, tools, forms,
// probabilities, what is refused, and what happens to those whose client goes away. Covers
// generation.cpp, answering.cpp and openai/.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "serve/openai/chat_writer.h"
#include "tests/serve/events.h"
#include "tests/serve/serving.h"

namespace cairn::serve::chat_test {
namespace {

using nlohmann::json;

constexpr char kPath[] = "/v1/chat/completions";

std::vector<json> stream(Serving& serving, json body, const char* path = kPath) {
  body["stream"] = true;
  const BareReply reply = serving.post(path, body.dump());
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.has("content-type: text/event-stream\r\n"));
  EXPECT_TRUE(reply.is_whole);
  return chunks_of(reply.body);
}

// An answer that ignores its end, of an engine that leaves out what is old: it goes on until
// somebody ends it, however slow the one is who does.
EngineOptions endless() {
  return {.context_policy = ContextPolicy::shift};
}

TEST(Chat, Answers) {
  Serving serving;
  const json reply = serving.post_json(kPath, question(kFrance));
  EXPECT_EQ(reply["object"], "chat.completion");
  EXPECT_EQ(reply["model"], "test-model");
  ASSERT_EQ(reply["choices"].size(), 1u);
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  EXPECT_EQ(choice["message"]["content"], kParis);
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  const json& usage = reply["usage"];
  EXPECT_EQ(usage["total_tokens"],
            usage["prompt_tokens"].get<int>() + usage["completion_tokens"].get<int>());
  EXPECT_EQ(reply["timings"]["predicted_n"], usage["completion_tokens"]);
}

// What is asked again is not computed again, and the reply says so.
TEST(Chat, SaysWhatWasReused) {
  Serving serving;
  const json first = serving.post_json(kPath, question(kFrance));
  const json again = serving.post_json(kPath, question(kFrance));
  EXPECT_EQ(again["choices"], first["choices"]);
  EXPECT_EQ(first["memory"]["reused"], 0);
  EXPECT_EQ(first["memory"]["source"], "none");
  EXPECT_EQ(first["timings"]["prompt_n"], first["usage"]["prompt_tokens"]);
  EXPECT_EQ(again["memory"]["reused"], first["usage"]["prompt_tokens"]);
  EXPECT_EQ(again["memory"]["source"], "cache");
  EXPECT_EQ(again["timings"]["cache_n"], first["usage"]["prompt_tokens"]);
  EXPECT_EQ(again["usage"]["prompt_tokens_details"]["cached_tokens"],
            first["usage"]["prompt_tokens"]);
}

TEST(Chat, StreamsWhatItAnswersWhole) {
  Serving serving;
  json body = question(kFrance);
  body["stream_options"] = {{"include_usage", true}};
  const std::vector<json> events = stream(serving, body);
  ASSERT_GT(events.size(), 3u);
  EXPECT_EQ(events.front()["choices"][0]["delta"]["role"], "assistant");
  for (const json& event : events) {
    EXPECT_EQ(event["id"], events.front()["id"]);
    EXPECT_EQ(event["created"], events.front()["created"]);
    EXPECT_EQ(event["object"], "chat.completion.chunk");
  }
  EXPECT_EQ(text_in(events), kParis);
  const json& last = events[events.size() - 2];
  EXPECT_EQ(last["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(last.contains("timings") && last.contains("memory"));
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_GT(events.back()["usage"]["completion_tokens"].get<int>(), 0);
  for (size_t index = 0; index + 1 < events.size(); ++index) {
    EXPECT_EQ(events[index].at("usage"), json()) << "as OpenAI has it";
  }
  body["stream_options"]["include_usage"] = false;
  for (const json& event : stream(serving, body)) EXPECT_FALSE(event.contains("usage"));
}

TEST(Chat, SeveralAnswersReadThePromptOnce) {
  Serving serving;
  json body = question("Tell me something.");
  body["n"] = 4;
  body["temperature"] = 1.5;
  body["seed"] = 7;
  body["max_tokens"] = 20;
  const json reply = serving.post_json(kPath, body);
  ASSERT_EQ(reply["choices"].size(), 4u);
  EXPECT_EQ(serving.post_json(kPath, body)["choices"], reply["choices"]) << "equal seeds";
  const int prompt = reply["usage"]["prompt_tokens"].get<int>();
  EXPECT_EQ(serving.post_json(kPath, question("Tell me something."))["usage"]["prompt_tokens"],
            prompt);
  // The second one is the first one of the next seed.
  body["n"] = 1;
  body["seed"] = 8;
  EXPECT_EQ(serving.post_json(kPath, body)["choices"][0]["message"],
            reply["choices"][1]["message"]);
  body["n"] = 3;
  body["seed"] = 7;
  const std::vector<json> chunks = stream(serving, body);
  for (size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(text_in(chunks, index), reply["choices"][index]["message"]["content"]);
  }
}

TEST(Chat, EndsWhereItIsToldTo) {
  Serving serving;
  json body = question(kFrance);
  body["stop"] = " France";
  json reply = serving.post_json(kPath, body);
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "The capital of");
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "stop");
  body["stop"] = {"nothing", " is"};
  EXPECT_EQ(serving.post_json(kPath, body)["choices"][0]["message"]["content"],
            "The capital of France");
  body.erase("stop");
  body["max_tokens"] = 2;
  reply = serving.post_json(kPath, body);
  EXPECT_EQ(reply["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(reply["choices"][0].contains("cut_by")) << "nothing is cut off silently";
  EXPECT_EQ(reply["usage"]["completion_tokens"], 2);
  body["max_completion_tokens"] = 3;
  EXPECT_EQ(serving.post_json(kPath, body)["usage"]["completion_tokens"], 3);
  body["max_completion_tokens"] = 0;
  EXPECT_EQ(serving.post_json(kPath, body)["usage"]["completion_tokens"], 0);
}

TEST(Chat, TellsProbabilities) {
  Serving serving;
  json body = question(kFrance);
  body["logprobs"] = true;
  body["top_logprobs"] = 3;
  const json whole = serving.post_json(kPath, body)["choices"][0]["logprobs"]["content"];
  EXPECT_EQ(whole[0]["top_logprobs"].size(), 3u);
  std::string text;
  for (const json& token : whole) {
    text += token["token"].get<std::string>();
    EXPECT_EQ(token["bytes"].size(), token["token"].get<std::string>().size());
    EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]) << "greedy";
  }
  EXPECT_EQ(text, kParis);
  json streamed = json::array();
  for (const json& event : stream(serving, body)) {
    for (const json& choice : event["choices"]) {
      if (choice["logprobs"].is_null()) continue;
      for (const json& token : choice["logprobs"]["content"]) streamed.push_back(token);
    }
  }
  EXPECT_EQ(streamed, whole);
  body.erase("top_logprobs");
  EXPECT_TRUE(serving.post_json(kPath, body)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
                  .empty());
}

// The tokens of a stop text are none of the answer's.
TEST(Chat, ProbabilitiesEndWithTheText) {
  Serving serving;
  for (const char* stop : {"is Paris", " is", "rance", "The", "."}) {
    json body = question(kFrance);
    body["logprobs"] = true;
    body["stop"] = stop;
    const json choice = serving.post_json(kPath, body)["choices"][0];
    const std::string said = choice["message"]["content"];
    EXPECT_EQ(said, std::string(kParis).substr(0, std::string(kParis).find(stop)));
    std::string text;
    for (const json& token : choice["logprobs"]["content"]) {
      EXPECT_LT(text.size(), said.size()) << stop;
      text += token["token"].get<std::string>();
    }
    EXPECT_TRUE(text.starts_with(said)) << stop << ": " << text;
    json streamed = json::array();
    for (const json& event : stream(serving, body)) {
      for (const json& one : event["choices"]) {
        if (one["logprobs"].is_null()) continue;
        for (const json& token : one["logprobs"]["content"]) streamed.push_back(token);
      }
    }
    EXPECT_EQ(streamed, choice["logprobs"]["content"]) << stop;
  }
}

std::vector<sample::LogProbabilities> many_probabilities(int32_t count, int32_t top_count) {
  std::vector<sample::LogProbabilities> all;
  for (int32_t token = 0; token < count; ++token) {
    sample::LogProbabilities& one = all.emplace_back();
    one.chosen = {.token = Token(65 + token % 26), .log_probability = -0.1F * float(token)};
    for (int32_t other = 0; other < top_count; ++other) {
      one.top.push_back({.token = Token(other), .log_probability = -0.37F * float(other)});
    }
  }
  return all;
}

// The I/O thread writes them: what has come is not left to the end, when all others would wait.
TEST(Chat, ProbabilitiesAreWrittenAsTheyCome) {
  const std::unique_ptr<Engine> engine = cli::load_engine("", {}).value();
  openai::ChatWriter writer({.id = "x", .created = 1, .model = "m"},
                            {.tells_probabilities = true, .top_count = 100}, 1, engine->tokenizer(),
                            &engine->chat_format());
  session::Answer answer;
  answer.probabilities = many_probabilities(500, 100);
  const auto seconds_of = [](const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  session::AnswerPiece piece;
  piece.probabilities = answer.probabilities;
  std::string text;
  const double before = seconds_of([&] { writer.gather(0, piece); });
  const double at_end = seconds_of([&] { writer.end(std::span(&answer, 1), text); });
  EXPECT_LT(at_end, before / 4);
  const json content = json::parse(text)["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 500u);
  EXPECT_EQ(content[499]["id"], 65 + 499 % 26);
  EXPECT_EQ(content[499]["top_logprobs"].size(), 100u);
}

// What an answer has at its end is told, whatever has come before.
TEST(Chat, ProbabilitiesAreThoseOfTheAnswer) {
  const std::unique_ptr<Engine> engine = cli::load_engine("", {}).value();
  const std::vector<sample::LogProbabilities> all = many_probabilities(5, 1);
  const auto told = [&](size_t come, size_t count) {
    ProbabilityTexts texts({.top_count = 1}, engine->tokenizer());
    texts.add(std::span(all).first(come));
    texts.complete(std::span(all).first(count));
    std::string text;
    texts.take(text);
    EXPECT_TRUE(texts.is_empty());
    return json::parse(text);
  };
  const json whole = told(5, 5);
  EXPECT_EQ(whole[4]["id"], 69);
  for (const size_t come : {0u, 2u, 5u}) {
    EXPECT_EQ(told(come, 5), whole);
    EXPECT_EQ(told(come, 3).size(), 3u);
    EXPECT_TRUE(told(come, 0).empty());
  }
}

TEST(Chat, AnswersHaveForms) {
  Serving serving;
  json body = question(kFrance);
  body["max_tokens"] = 100;
  body["response_format"] = {{"type", "json_schema"},
                             {"json_schema",
                              {{"name", "city"},
                               {"schema",
                                {{"type", "object"},
                                 {"properties", {{"city", {{"type", "string"}, {"maxLength", 8}}}}},
                                 {"required", {"city"}},
                                 {"additionalProperties", false}}}}}};
  const json content = serving.post_json(kPath, body)["choices"][0]["message"]["content"];
  const json parsed = json::parse(content.get<std::string>());
  EXPECT_TRUE(parsed["city"].is_string()) << content;
  body["response_format"] = {{"type", "json_object"}};
  body["max_tokens"] = 5;
  EXPECT_TRUE(serving.post_json(kPath, body)["choices"][0]["message"]["content"]
                  .get<std::string>()
                  .starts_with("{"));
  body.erase("response_format");
  body["choices"] = {"yes", "no"};
  const std::string choice =
      serving.post_json(kPath, body)["choices"][0]["message"]["content"].get<std::string>();
  EXPECT_TRUE(choice == "yes" || choice == "no") << choice;
  body.erase("choices");
  body["regex"] = "[0-9]{4}";
  EXPECT_EQ(
      serving.post_json(kPath, body)["choices"][0]["message"]["content"].get<std::string>().size(),
      4u);
}

TEST(Chat, TakesConversationsAsClientsSendThem) {
  Serving serving;
  const json body = {
      {"model", "whatever"},
      {"user", nullptr},
      {"unknown", {1, 2}},
      {"messages",
       {{{"role", "developer"}, {"content", "Be brief."}},
        {{"role", "user"},
         {"content",
          {{{"type", "text"}, {"text", "My name "}}, {{"type", "text"}, {"text", "is Ada."}}}}},
        {{"role", "assistant"}, {"content", "Nice to meet you, Ada."}},
        {{"role", "user"}, {"content", "What is my name?"}}}}};
  EXPECT_EQ(serving.post_json(kPath, body)["choices"][0]["message"]["content"],
            "Your name is Ada.");
}

TEST(Chat, RefusalsNameTheField) {
  Serving serving;
  const auto refused = [&](const char* field, const json& value) {
    json body = question("x");
    body[field] = value;
    return serving.refused(kPath, body);
  };
  using Refused = std::pair<int, std::string>;
  const std::pair<const char*, json> wrong[] = {
      {"temperature", -1},
      {"temperature", "hot"},
      {"top_p", 2},
      {"top_k", -9.0e18},
      {"n", 0},
      {"n", 1000000000},
      {"n", 1.5},
      {"seed", "x"},
      {"max_tokens", -2},
      {"stop", 5},
      {"stop", json::array({1})},
      {"stop", json(std::vector<std::string>(17, "a"))},
      {"stop", std::string(513, 'a')},
      {"logit_bias", json::object({{"99999999", 1}})},
      {"logit_bias", json::array({json::array({2147483648LL, 1})})},
      {"logit_bias", 7},
      {"logprobs", 5},
      {"top_logprobs", 101},
      {"messages", json::array()},
      {"messages", "hello"},
      {"stream", "yes"},
      {"stream_options", true},
      {"samplers", json::array({"nothing"})},
      {"tool_choice", "required"},
      {"regex", "("},
  };
  for (const auto& [field, value] : wrong) {
    const std::string expected = std::string(field) == "regex" ? "grammar" : field;
    EXPECT_EQ(refused(field, value), Refused(400, expected)) << field << " " << value;
  }
  EXPECT_EQ(refused("stream_options", {{"include_usage", "true"}}),
            Refused(400, "stream_options.include_usage"));
  EXPECT_EQ(refused("messages", json::array({{{"role", "user"}}})),
            Refused(400, "messages[0].content"));
  EXPECT_EQ(refused("messages", json::array({{{"role", "boss"}, {"content", "x"}}})),
            Refused(400, "messages[0].role"));
  EXPECT_EQ(refused("messages", json::array({7})), Refused(400, "messages[0]"));
  EXPECT_EQ(refused("response_format", {{"type", "xml"}}), Refused(400, "response_format.type"));
  EXPECT_EQ(refused("chat_template_kwargs", {{"messages", 1}}),
            Refused(400, "chat_template_kwargs"));
  EXPECT_EQ(serving.refused(kPath, json::object()), Refused(400, "messages"));
}

// Attack 42.
TEST(Chat, ImagesAreNotKnownYet) {
  Serving serving;
  const json body = {
      {"messages",
       {{{"role", "user"},
         {"content",
          {{{"type", "image_url"}, {"image_url", {{"url", "http://169.254.169.254/"}}}}}}}}}};
  const BareReply reply = serving.post(kPath, body.dump());
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(json::parse(reply.body)["error"]["code"], "unsupported_content");
}

// In the words that clients look for, before anything is computed.
TEST(Chat, PromptsThatAreTooLongAreRefused) {
  Serving serving({}, "", {.context_tokens = 64});
  std::string text;
  for (int count = 0; count < 200; ++count) text += "word ";
  for (const bool is_stream : {false, true}) {
    json body = question(text);
    body["stream"] = is_stream;
    const BareReply reply = serving.post(kPath, body.dump());
    EXPECT_EQ(reply.status, 400);
    const json error = json::parse(reply.body)["error"];
    EXPECT_EQ(error["code"], "context_length_exceeded");
    EXPECT_TRUE(error["message"].get<std::string>().starts_with(
        "This model's maximum context length is 64 tokens. However, you requested "));
    EXPECT_EQ(error["n_ctx"], 64);
  }
  EXPECT_EQ(serving.service().stats().prompt_rows, 0);
}

TEST(Chat, OnlySoManyAtATime) {
  AppOptions options;
  options.requests_max = 1;
  Serving serving(std::move(options), "", endless());
  json body = question("Hello");
  body["stream"] = true;
  body["ignore_eos"] = true;
  BareClient first = serving.client();
  ASSERT_TRUE(first.send(post_request(kPath, body.dump())));
  ASSERT_TRUE(first.wait_for("\"delta\""));
  const BareReply refused = serving.post(kPath, question("x").dump());
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("retry-after: 1\r\n"));
  EXPECT_EQ(json::parse(refused.body)["error"]["code"], "queue_full");
  EXPECT_EQ(serving.get("/health").status, 200);
  first.close();
  int status = 429;
  for (int round = 0; round < 1000 && status == 429; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    status = serving.post(kPath, question("x").dump()).status;
  }
  EXPECT_EQ(status, 200);
}

// Streaming or waiting, alone or with others: nothing goes on for nobody.
TEST(Chat, ClientsThatGoAwayAreCancelled) {
  Serving serving({}, "", endless());
  const auto wait_until_idle = [&] {
    for (int round = 0; round < 3000; ++round) {
      const SchedulerStats stats = serving.service().stats();
      if (stats.running + stats.waiting == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  for (const bool is_stream : {false, true}) {
    json body = question("Hello");
    body["stream"] = is_stream;
    body["ignore_eos"] = true;
    body["n"] = 3;
    std::vector<BareClient> clients;
    for (int count = 0; count < 5; ++count) {
      clients.push_back(serving.client());
      ASSERT_TRUE(clients.back().send(post_request(kPath, body.dump())));
    }
    while (serving.service().stats().running < 15) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    clients.clear();
    EXPECT_TRUE(wait_until_idle());
  }
  EXPECT_EQ(serving.post_json(kPath, question(kFrance))["choices"][0]["message"]["content"],
            kParis);
  serving.service().ask([](Engine& engine) {
    engine.cache().clear();
    EXPECT_EQ(engine.memory().usage().used_bytes(), 0u);
  });
}

// A reader that takes nothing holds up nobody, and is not computed for beyond what is buffered.
TEST(Chat, SlowReadersBlockOnlyThemselves) {
  Serving serving({}, "", endless());
  json body = question("Hello");
  body["stream"] = true;
  body["ignore_eos"] = true;
  BareClient slow = serving.client();
  ASSERT_TRUE(slow.send(post_request(kPath, body.dump())));
  ASSERT_TRUE(slow.wait_for("\"delta\""));
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(serving.post_json(kPath, question(kFrance))["choices"][0]["message"]["content"],
              kParis);
  }
}

// A stream that is ended before it has begun has a status that says so: where the machine is slow,
// it is given more time.
TEST(Chat, AnswersHaveATimeLimit) {
  BareReply streamed;
  for (double seconds = 0.2; seconds < 60 && streamed.status != 200; seconds *= 4) {
    AppOptions options;
    options.request_seconds_max = seconds;
    Serving serving(std::move(options), "", endless());
    json body = question("Hello");
    body["ignore_eos"] = true;
    EXPECT_GE(serving.post(kPath, body.dump()).status, 500);
    body["stream"] = true;
    streamed = serving.post(kPath, body.dump());
    EXPECT_TRUE(streamed.status == 200 || streamed.status >= 500) << streamed.status;
  }
  EXPECT_EQ(streamed.status, 200);
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
  EXPECT_NE(streamed.body.find("data: {\"error\":{"), std::string::npos);
}

// The same answers, whoever else asks.
TEST(Chat, ManyClientsAtOnce) {
  Serving serving;
  const std::pair<const char*, const char*> exchanges[] = {
      {kFrance, kParis},
      {"What is the capital of Norway?", "The capital of Norway is Oslo."},
      {"What is the opposite of early?", "The opposite of early is late."}};
  std::vector<std::thread> threads;
  std::atomic<int> right_count = 0;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      BareClient asking = serving.client();
      for (int round = 0; round < 10; ++round) {
        const auto& [text, answer] = exchanges[size_t(thread + round) % std::size(exchanges)];
        if (!asking.send(post_request(kPath, question(text).dump()))) return;
        const BareReply reply = asking.read_reply();
        EXPECT_EQ(reply.status, 200) << reply.body;
        const json parsed = json::parse(reply.body, nullptr, false);
        if (reply.status != 200 || !parsed.is_object()) return;
        EXPECT_EQ(parsed["choices"][0]["message"]["content"], answer) << reply.body;
        right_count += int(parsed["choices"][0]["message"]["content"] == answer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right_count, 80);
}

}  // namespace
}  // namespace cairn::serve::chat_test
