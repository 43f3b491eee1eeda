// Receipts beside answers, fetched by their ids, and replayed: by the server and by `cairn replay`.
// Covers routes/receipts.cpp and kept_table.h.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "serve/kept_table.h"
#include "tests/cli/run_program.h"
#include "tests/scratch_folder.h"
#include "tests/serve/nano_with.h"
#include "tests/serve/serving.h"

namespace cairn::serve::receipts_test {
namespace {

using nlohmann::json;

constexpr char kChatPath[] = "/v1/chat/completions";
constexpr char kReplay[] = "/v1/receipts/replay";

json asked(json more = {}) {
  json body = question(kFrance);
  body["receipt"] = true;
  if (!more.is_null()) body.update(more);
  return body;
}

TEST(Receipts, CanBeFetchedAndReplayed) {
  Serving serving;
  serving.post_json(kChatPath, question(kFrance));  // So that the answer's prompt is reused.
  const json reply = serving.post_json(kChatPath, asked({{"temperature", 1.5}, {"seed", 5}}));
  EXPECT_EQ(reply["memory"]["recomputed"], 0);
  const json& choice = reply["choices"][0];
  const std::string id = choice["receipt_id"];
  const BareReply kept = serving.get("/v1/receipts/" + id);
  EXPECT_EQ(kept.status, 200);
  EXPECT_EQ(json::parse(kept.body), choice["receipt"]);
  const json same = json::parse(serving.post(kReplay, kept.body).body);
  EXPECT_EQ(same["equal"], true) << same;
  EXPECT_EQ(same["tokens"], choice["receipt"]["answer"]["tokens"].size());
  EXPECT_GE(same["computed_tokens"].get<size_t>(), choice["receipt"]["prompt"]["tokens"].size())
      << "nothing is taken from memory";
  json wrong = choice["receipt"];
  wrong["answer"]["tokens"][2] = 1 + wrong["answer"]["tokens"][2].get<int>();
  const json differs = serving.post_json(kReplay, wrong);
  EXPECT_EQ(differs["equal"], false);
  EXPECT_EQ(differs["field"], "answer.token");
  EXPECT_EQ(differs["token"], 2);
}

TEST(Receipts, TheCommandLineReplaysThem) {
  const test::ScratchFolder folder;
  Serving serving;
  const json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  for (const json& more : {json{}, json{{"json_schema", schema}, {"max_tokens", 20}},
                           json{{"stop", {"France"}}, {"max_tokens", 9}}}) {
    const json reply = serving.post_json(kChatPath, asked(more));
    const std::string path = folder.file("receipt.json");
    cli::write_to(
        path,
        serving.get("/v1/receipts/" + reply["choices"][0]["receipt_id"].get<std::string>()).body);
    const cli::Finished replayed = cli::run_program({"replay", path});
    EXPECT_EQ(replayed.exit_code, 0) << replayed.out << replayed.err;
    EXPECT_TRUE(replayed.out.starts_with("equal: ")) << replayed.out;
    EXPECT_EQ(serving.post_json(kReplay, json::parse(cli::contents_of(path)))["equal"], true);
  }
}

// The grammar that ended the answer is part of it.
TEST(Receipts, TellThatAnAnswerHasOneCall) {
  const test::ScratchFolder folder;
  write_nano_with({.chat_template = kToolTemplate}, folder.file("tools.gguf"));
  Serving serving({}, folder.file("tools.gguf"));
  const int32_t end = serving.post_json("/tokenize", {{"content", "<|end|>"}})["tokens"][0];
  const json schema = {{"type", "object"}, {"properties", {{"a", {{"type", "boolean"}}}}}};
  const json tool = {{"type", "function"},
                     {"function", {{"name", "look"}, {"parameters", schema}}}};
  const json reply =
      serving.post_json(kChatPath, asked({{"tools", json::array({tool})},
                                          {"tool_choice", "required"},
                                          {"parallel_tool_calls", false},
                                          {"logit_bias", json::array({json::array({end, false})})},
                                          {"max_tokens", 200}}));
  const json& choice = reply["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["tool_calls"].size(), 1u);
  EXPECT_EQ(choice["receipt"]["form"]["calls_once"], true);
  EXPECT_EQ(serving.post_json(kReplay, choice["receipt"])["equal"], true);
}

TEST(Receipts, ComeWithStreamsAndSessions) {
  Serving serving;
  const BareReply stream = serving.post(kChatPath, asked({{"stream", true}}).dump());
  const size_t at = stream.body.find("\"receipt_id\":\"");
  ASSERT_NE(at, std::string::npos);
  const std::string id = stream.body.substr(at + 14, stream.body.find('"', at + 14) - at - 14);
  EXPECT_EQ(serving.get("/v1/receipts/" + id).status, 200);
  serving.post_json("/v1/sessions", {{"id", "s"}});
  serving.post_json("/v1/sessions/s/generate", asked({{"max_tokens", 3}}));
  // Of an answer that was continued too.
  const json rest =
      serving.post_json("/v1/sessions/s/generate", {{"continue_answer", true}, {"receipt", true}});
  const json& receipt = rest["choices"][0]["receipt"];
  EXPECT_EQ(receipt["prompt"]["answer_prefix"], 3);
  EXPECT_EQ(serving.post_json(kReplay, receipt)["equal"], true);
}

// Attack 32.
TEST(Receipts, AreTheKeysThatAsked) {
  AppOptions options;
  for (const char* key : {"a-key-of-one-user-12", "a-key-of-another-user"}) {
    ASSERT_TRUE(options.keys.add(key, Role::user));
  }
  Serving serving(std::move(options));
  const std::string mine = "Authorization: Bearer a-key-of-one-user-12\r\n";
  const std::string other = "Authorization: Bearer a-key-of-another-user\r\n";
  const json reply = json::parse(serving.post(kChatPath, asked().dump(), mine).body);
  const std::string path = "/v1/receipts/" + reply["choices"][0]["receipt_id"].get<std::string>();
  EXPECT_EQ(serving.get(path, mine).status, 200);
  EXPECT_EQ(serving.get(path, other).status, 404);
  EXPECT_EQ(serving.get(path, other).body, serving.get("/v1/receipts/rcpt_0", other).body);
}

TEST(Receipts, WhatIsNoneIsRefused) {
  Serving serving;
  EXPECT_EQ(serving.refused(kReplay, json::object()).first, 400);
  const json reply = serving.post_json(kChatPath, asked());
  EXPECT_FALSE(serving.post_json(kChatPath, question(kFrance))["choices"][0].contains("receipt"));
  const json good = reply["choices"][0]["receipt"];
  json bad = good;
  bad["prompt"]["tokens"][0] = 99999999;
  EXPECT_EQ(serving.refused(kReplay, bad).first, 400);
  bad = good;
  bad["context"]["tokens"] = 77;
  EXPECT_EQ(serving.refused(kReplay, bad), std::pair(400, std::string("context")));
  bad = good;
  bad["sampling"].erase("temperature");
  EXPECT_EQ(serving.refused(kReplay, bad).first, 400);
}

TEST(KeptTable, ForgetsWhatIsOld) {
  KeptTable<std::string> table(3000, std::chrono::hours(1));
  const auto value = std::make_shared<const std::string>("x");
  for (const char* id : {"a", "b", "c"}) table.add(id, "me", value, 800);
  EXPECT_NE(table.find("a", "me"), nullptr);
  EXPECT_EQ(table.find("a", "you"), nullptr);
  table.add("d", "me", value, 800);
  EXPECT_EQ(table.find("b", "me"), nullptr) << "used longest ago";
  EXPECT_NE(table.find("a", "me"), nullptr);
  table.add("e", "me", value, 4000);
  EXPECT_EQ(table.find("e", "me"), nullptr) << "larger than the table";
  KeptTable<std::string> brief(3000, std::chrono::nanoseconds(1));
  brief.add("a", "me", value, 8);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(brief.find("a", "me"), nullptr);
}

}  // namespace
}  // namespace cairn::serve::receipts_test
