// Sessions that the server keeps: what is said in them, snapshots, rewinds, forks, branches, stops,
// whose they are, limits, and restarts. Covers routes/session*.cpp and sessions/.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "serve/sessions/saved_reply.h"
#include "serve/sessions/session_files.h"
#include "serve/sessions/session_table.h"
#include "tests/scratch_folder.h"
#include "tests/serve/serving.h"

namespace cairn::serve::sessions_test {
namespace {

using nlohmann::json;
using namespace std::chrono_literals;

constexpr char kPath[] = "/v1/sessions";

std::string path_of(const std::string& session, const std::string& verb = "") {
  return std::string(kPath) + "/" + session + (verb.empty() ? "" : "/" + verb);
}

std::string delete_request(const std::string& path) {
  return "DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

json get_json(Serving& serving, const std::string& path) {
  const BareReply reply = serving.get(path);
  EXPECT_EQ(reply.status, 200) << reply.body;
  return json::parse(reply.body, nullptr, false);
}

json say(Serving& serving, const std::string& session, const std::string& text, json more = {}) {
  json body = question(text);
  if (!more.is_null()) body.update(more);
  return serving.post_json(path_of(session, "generate"), body);
}

std::string text_of(const json& reply) {
  return reply["choices"][0]["message"]["content"];
}

// The token ids of all answers.
std::vector<std::string> ids_of(Serving& serving, const std::string& session) {
  const json whole = get_json(serving, path_of(session));
  std::vector<std::string> ids;
  for (const json& message : whole["messages"]) {
    if (message["role"] == "assistant") ids.push_back(message.value("token_ids", "none"));
  }
  return ids;
}

TEST(Sessions, KeepWhatIsSaid) {
  Serving serving;
  const json made = serving.post_json(kPath, {{"id", "mine"}});
  EXPECT_EQ(made["object"], "session");
  EXPECT_EQ(made["survives_restart"], false);
  EXPECT_EQ(made["message_count"], 0);
  const json first = say(serving, "mine", "My name is Ada.");
  EXPECT_EQ(first["object"], "chat.completion");
  EXPECT_EQ(first["memory"]["session"], "mine");
  const json second = say(serving, "mine", "What is my name?");
  EXPECT_EQ(text_of(second), "Your name is Ada.");
  EXPECT_GE(second["memory"]["reused"].get<int>(), first["usage"]["total_tokens"].get<int>() - 1)
      << "nothing of the first turn is computed again";
  const json whole = get_json(serving, path_of("mine"));
  ASSERT_EQ(whole["messages"].size(), 4u);
  EXPECT_EQ(whole["messages"][3]["content"], "Your name is Ada.");
  EXPECT_EQ(whole["turns"], 2);
  const json list = get_json(serving, kPath);
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], "mine");
  EXPECT_FALSE(list["data"][0].contains("messages"));
  EXPECT_EQ(serving.send(delete_request(path_of("mine"))).status, 200);
  EXPECT_EQ(serving.get(path_of("mine")).status, 404);
  EXPECT_EQ(serving.send(delete_request(path_of("mine"))).status, 404);
}

TEST(Sessions, StreamAsChatCompletionsDo) {
  Serving serving;
  serving.post_json(kPath, {{"id", "s"}});
  json body = question(kFrance);
  body["stream"] = true;
  const BareReply reply = serving.post(path_of("s", "generate"), body.dump());
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_NE(reply.body.find("\"session\":\"s\""), std::string::npos);
  EXPECT_EQ(get_json(serving, path_of("s"))["messages"][1]["content"], kParis);
}

TEST(Sessions, RewindComputesNothingAgain) {
  Serving serving;
  serving.post_json(kPath, {{"id", "s"}});
  say(serving, "s", "My name is Ada.");
  const json marked = serving.post_json(path_of("s", "snapshot"), {{"name", "first"}});
  EXPECT_EQ(marked["snapshots"][0]["name"], "first");
  EXPECT_EQ(marked["snapshots"][0]["messages"], 2);
  const json second = say(serving, "s", "What is my name?");
  say(serving, "s", kFrance);
  for (const json& where : {json{{"snapshot", "first"}}, json{{"keep", 2}}, json{{"turns", 1}}}) {
    const json back = serving.post_json(path_of("s", "rewind"), where);
    EXPECT_EQ(back["message_count"], 2) << where;
    EXPECT_EQ(back["memory"]["recomputed"], 0) << where << back["memory"];
    EXPECT_GT(back["memory"]["reused"].get<int>(), 0);
    const json again = say(serving, "s", "What is my name?");
    EXPECT_EQ(text_of(again), text_of(second)) << where;
    EXPECT_GE(again["memory"]["reused"], back["memory"]["reused"]);
  }
  EXPECT_EQ(serving.refused(path_of("s", "rewind"), {{"keep", 9}}),
            std::pair(400, std::string("keep")));
  EXPECT_EQ(serving.refused(path_of("s", "rewind"), {{"turns", 9}}),
            std::pair(400, std::string("turns")));
  EXPECT_EQ(serving.refused(path_of("s", "rewind"), {{"snapshot", "none"}}),
            std::pair(400, std::string("snapshot")));
  EXPECT_EQ(serving.refused(path_of("s", "rewind"), json::object()),
            std::pair(400, std::string("keep")));
  EXPECT_EQ(serving.refused(path_of("s", "rewind"), {{"keep", 1}, {"turns", 1}}),
            std::pair(400, std::string("keep")));
  EXPECT_EQ(serving.refused(path_of("s", "snapshot"), {{"name", "first"}}),
            std::pair(400, std::string("name")));
  EXPECT_EQ(get_json(serving, path_of("s"))["message_count"], 4) << "errors change nothing";
}

TEST(Sessions, NameThemselvesInTheHeadWhereTheyAreMade) {
  Serving serving;
  const BareReply made = serving.post("/v1/sessions", R"({"id":"mine"})");
  EXPECT_TRUE(made.has("x-cairn-kept: mine\r\n")) << made.head;
  const BareReply forked = serving.post(path_of("mine", "fork"), R"({"id":"other"})");
  EXPECT_TRUE(forked.has("x-cairn-kept: other\r\n")) << forked.head;
}

// A fork says what a session would say in which nothing else was ever said, token for token.
TEST(Sessions, AForkIsAsIfItWereFresh) {
  Serving serving;
  serving.post_json(kPath, {{"id", "root"}});
  const json lively = {{"temperature", 1.2}, {"seed", 7}, {"max_tokens", 12}};
  say(serving, "root", "My name is Ada.", lively);
  say(serving, "root", kFrance, lively);
  const json forked = serving.post_json(path_of("root", "fork"), {{"id", "fork"}, {"keep", 2}});
  EXPECT_EQ(forked["forked_from"], "root");
  EXPECT_EQ(forked["shared_messages"], 2);
  EXPECT_EQ(forked["memory"]["recomputed"], 0) << forked["memory"];
  const json more = {{"temperature", 1.2}, {"seed", 9}, {"max_tokens", 12}};
  say(serving, "fork", "What is my name?", more);
  Serving other;
  other.post_json(kPath, {{"id", "fresh"}});
  say(other, "fresh", "My name is Ada.", lively);
  say(other, "fresh", "What is my name?", more);
  EXPECT_EQ(ids_of(serving, "fork"), ids_of(other, "fresh"));
  EXPECT_EQ(get_json(serving, path_of("root"))["message_count"], 4) << "the root is as it was";
  EXPECT_EQ(serving.post(path_of("root", "fork"), R"({"id":"fork"})").status, 409);
}

TEST(Sessions, HaveBranches) {
  Serving serving;
  serving.post_json(kPath, {{"id", "s"}});
  EXPECT_EQ(serving.refused(path_of("s", "branch"), {{"name", "b"}}),
            std::pair(400, std::string("name")))
      << "nothing was said yet";
  say(serving, "s", "My name is Ada.");
  const json branched = serving.post_json(path_of("s", "branch"), {{"name", "b"}});
  EXPECT_EQ(branched["branch"], "b");
  say(serving, "s", kFrance);
  const json back = serving.post_json(path_of("s", "switch"), {{"name", "main"}});
  EXPECT_EQ(back["branch"], "main");
  EXPECT_EQ(back["message_count"], 2);
  EXPECT_EQ(back["branches"][1], (json{{"name", "b"}, {"messages", 4}}));
  EXPECT_EQ(back["memory"]["recomputed"], 0);
  EXPECT_EQ(serving.refused(path_of("s", "switch"), {{"name", "c"}}),
            std::pair(400, std::string("name")));
}

// Another answer, another message, and an answer that was cut off: all in one request.
TEST(Sessions, AnswersAreMadeAgainAndContinued) {
  Serving serving;
  serving.post_json(kPath, {{"id", "s"}});
  say(serving, "s", kFrance);
  const std::vector<std::string> whole = ids_of(serving, "s");
  const std::string generate = path_of("s", "generate");
  serving.post_json(generate, {{"keep", 1}, {"max_tokens", 3}});
  ASSERT_EQ(ids_of(serving, "s").size(), 1u);
  EXPECT_TRUE(whole[0].starts_with(ids_of(serving, "s")[0]));
  EXPECT_NE(whole, ids_of(serving, "s"));
  const json rest = serving.post_json(generate, {{"continue_answer", true}});
  EXPECT_EQ(ids_of(serving, "s"), whole);
  EXPECT_LE(rest["memory"]["recomputed"], 1) << "the last token was chosen, and never read";
  EXPECT_EQ(text_of(say(serving, "s", "What is the capital of Norway?", {{"keep", 0}})),
            "The capital of Norway is Oslo.");
  EXPECT_EQ(get_json(serving, path_of("s"))["message_count"], 2);
  EXPECT_EQ(serving.refused(generate, {{"keep", 0}}), std::pair(400, std::string("messages")));
  EXPECT_EQ(serving.refused(generate, {{"keep", 1}, {"continue_answer", true}}),
            std::pair(400, std::string("continue_answer")));
  EXPECT_EQ(serving.refused(generate, {{"messages", {{{"role", "user"}}}}}),
            std::pair(400, std::string("messages[0].content")));
  json added = {{"messages", {{{"role", "user"}, {"content", kFrance}}}}};
  EXPECT_EQ(serving.post_json(path_of("s", "append"), added)["message_count"], 3);
  EXPECT_EQ(text_of(serving.post_json(generate, json::object())), kParis);
}

// A session as it is told can be given to another server, and goes on there.
TEST(Sessions, ASavedOneIsTakenUp) {
  Serving serving;
  serving.post_json(kPath, {{"id", "s"}});
  say(serving, "s", "My name is Ada.");
  const json whole = get_json(serving, path_of("s"));
  json copy = {{"id", "copy"},
               {"messages", whole["messages"]},
               {"vocabulary", whole["vocabulary"]},
               {"sampling", whole["sampling"]}};
  serving.post_json(kPath, copy);
  EXPECT_EQ(ids_of(serving, "copy"), ids_of(serving, "s"));
  EXPECT_EQ(text_of(say(serving, "copy", "What is my name?")), "Your name is Ada.");
  copy["id"] = "wrong";
  copy["messages"][1]["token_ids"] = "99999999";
  EXPECT_EQ(serving.refused(kPath, copy), std::pair(400, std::string("messages")));
  copy["vocabulary"] = "0000000000000000";
  EXPECT_EQ(serving.post(kPath, copy.dump()).status, 200) << "other vocabularies' ids are dropped";
  EXPECT_EQ(ids_of(serving, "wrong"), std::vector<std::string>{"none"});
  EXPECT_EQ(serving.refused(kPath, {{"id", "../x"}}), std::pair(400, std::string("id")));
  EXPECT_EQ(serving.post(kPath, R"({"id":"s"})").status, 409);
  EXPECT_TRUE(
      serving.post_json(kPath, json::object())["id"].get<std::string>().starts_with("sess-"));
}

// Attack 32.
TEST(Sessions, AreTheKeysThatMadeThem) {
  AppOptions options;
  for (const char* key : {"a-key-of-one-user-12", "a-key-of-another-user"}) {
    ASSERT_TRUE(options.keys.add(key, Role::user));
  }
  Serving serving(std::move(options));
  const std::string mine = "Authorization: Bearer a-key-of-one-user-12\r\n";
  const std::string other = "Authorization: Bearer a-key-of-another-user\r\n";
  ASSERT_EQ(serving.post(kPath, R"({"id":"s"})", mine).status, 200);
  ASSERT_EQ(serving.post(path_of("s", "append"), question("secret").dump(), mine).status, 200);
  const std::string none = serving.get(path_of("none"), other).body;
  EXPECT_EQ(serving.get(path_of("s"), other).status, 404);
  EXPECT_EQ(serving.get(path_of("s"), other).body, none) << "as if it were not there";
  const std::pair<const char*, const char*> posts[] = {
      {"generate", "{}"},
      {"append", R"({"messages":[{"role":"user","content":"x"}]})"},
      {"snapshot", R"({"name":"x"})"},
      {"rewind", R"({"keep":0})"},
      {"fork", "{}"},
      {"branch", R"({"name":"x"})"},
      {"switch", R"({"name":"x"})"},
      {"stop", "{}"}};
  for (const auto& [verb, body] : posts) {
    const BareReply reply = serving.post(path_of("s", verb), body, other);
    EXPECT_EQ(reply.status, 404) << verb;
    EXPECT_EQ(reply.body, none) << verb;
  }
  BareClient client = serving.client();
  ASSERT_TRUE(
      client.send("DELETE " + path_of("s") + " HTTP/1.1\r\nHost: localhost\r\n" + other + "\r\n"));
  EXPECT_EQ(client.read_reply().status, 404);
  EXPECT_EQ(json::parse(serving.get(kPath, other).body)["data"], json::array());
  EXPECT_EQ(serving.post(kPath, R"({"id":"s"})", other).status, 200) << "a name of its own";
  EXPECT_EQ(json::parse(serving.get(path_of("s"), mine).body)["message_count"], 1);
  EXPECT_EQ(serving.get(path_of("s")).status, 401);
}

// While an answer is made: readers see the session as it was, nobody else changes it, and whoever
// stops it keeps what is there.
TEST(Sessions, AnAnswerIsStopped) {
  Serving serving({}, "", {.context_policy = ContextPolicy::shift});
  serving.post_json(kPath, {{"id", "s"}});
  json body = question("Count from one.");
  body.update({{"stream", true}, {"ignore_eos", true}});
  BareClient answering = serving.client();
  ASSERT_TRUE(answering.send(post_request(path_of("s", "generate"), body.dump())));
  ASSERT_TRUE(answering.wait_for("\"content\":\"") && answering.wait_for("}\n\n"));
  EXPECT_EQ(get_json(serving, path_of("s"))["message_count"], 0);
  const BareReply busy = serving.post(path_of("s", "append"), question("x").dump());
  EXPECT_EQ(busy.status, 409);
  EXPECT_NE(busy.body.find("session_busy"), std::string::npos);
  EXPECT_EQ(serving.post_json(path_of("s", "stop"), json::object())["stopped"], true);
  const BareReply reply = answering.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(get_json(serving, path_of("s"))["message_count"], 2) << "it stays as far as it went";
  EXPECT_EQ(serving.post_json(path_of("s", "stop"), json::object())["stopped"], false);
}

TEST(Sessions, NeedNoBodyWhereNoFieldIsNeeded) {
  Serving serving;
  const BareReply made = serving.post(kPath, "");
  EXPECT_EQ(made.status, 200) << made.body;
  const std::string id = json::parse(made.body, nullptr, false).value("id", "none");
  EXPECT_EQ(serving.post(path_of(id, "stop"), "").status, 200);
  EXPECT_EQ(serving.post(path_of(id, "fork"), "").status, 200);
  EXPECT_EQ(serving.post(path_of(id, "snapshot"), "").status, 400);
  EXPECT_EQ(serving.post(path_of(id, "rewind"), "").status, 400);
}

// A client that goes away leaves the session as it was, and free.
TEST(Sessions, ALostClientChangesNothing) {
  Serving serving({}, "", {.context_policy = ContextPolicy::shift});
  serving.post_json(kPath, {{"id", "s"}});
  json body = question("Count from one.");
  body.update({{"stream", true}, {"ignore_eos", true}});
  {
    BareClient answering = serving.client();
    ASSERT_TRUE(answering.send(post_request(path_of("s", "generate"), body.dump())));
    ASSERT_TRUE(answering.wait_for("\"content\":\""));
  }
  int status = 409;
  const json empty = {{"messages", {{{"role", "user"}, {"content", kFrance}}}}};
  for (int attempt = 0; attempt < 3000 && status == 409; ++attempt) {
    status = serving.post(path_of("s", "append"), empty.dump()).status;
    if (status == 409) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(status, 200);
  EXPECT_EQ(get_json(serving, path_of("s"))["message_count"], 1);
}

TEST(Sessions, HaveLimits) {
  AppOptions options;
  options.sessions = {.sessions_max = 2,
                      .branches_max = 2,
                      .messages_max = 3,
                      .owner_bytes_max = 8000,
                      .bytes_max = 8000};
  Serving serving(std::move(options));
  serving.post_json(kPath, {{"id", "a"}});
  serving.post_json(kPath, {{"id", "b"}});
  const BareReply many = serving.post(kPath, R"({"id":"c"})");
  EXPECT_EQ(many.status, 429);
  EXPECT_NE(many.body.find("session_limit"), std::string::npos);
  EXPECT_TRUE(many.has("x-should-retry: false\r\n"));
  const auto add = [&](const std::string& text) {
    return serving.post(path_of("a", "append"), question(text).dump()).status;
  };
  EXPECT_EQ(add(std::string(9000, 'x')), 429);
  EXPECT_EQ(add("1"), 200);
  serving.post_json(path_of("a", "snapshot"), {{"name", "1"}});
  serving.post_json(path_of("a", "snapshot"), {{"name", "2"}});
  EXPECT_EQ(serving.post(path_of("a", "snapshot"), R"({"name":"3"})").status, 429);
  EXPECT_EQ(add("2"), 200);
  EXPECT_EQ(add("3"), 200);
  EXPECT_EQ(add("4"), 429);
  EXPECT_EQ(get_json(serving, path_of("a"))["message_count"], 3);
}

TEST(Sessions, HaveLimitsForVariablesAndSnapshotsToo) {
  AppOptions options;
  options.sessions = {.owner_bytes_max = 40000};
  Serving serving(std::move(options));
  serving.post_json(kPath, {{"id", "a"}});
  json body = question(kFrance);
  body["chat_template_kwargs"] = {{"unused", std::string(60000, 'v')}};
  const BareReply variables = serving.post(path_of("a", "generate"), body.dump());
  EXPECT_EQ(variables.status, 429) << "they are kept in the session: " << variables.body;
  json many = {{"messages", json::array()}};
  for (int i = 0; i < 50; ++i) many["messages"].push_back({{"role", "user"}, {"content", "x"}});
  serving.post_json(path_of("a", "append"), many);
  serving.post_json(path_of("a", "snapshot"), {{"name", "long"}});
  serving.post_json(path_of("a", "rewind"), {{"keep", 0}});
  EXPECT_EQ(serving.post_json(path_of("a", "rewind"), {{"snapshot", "long"}})["message_count"], 50);
  EXPECT_EQ(serving.post_json(path_of("a", "rewind"), {{"keep", 0}})["message_count"], 0);
  serving.post_json(kPath, {{"id", "b"}});
  int status = 200;
  while (status == 200) status = serving.post(path_of("b", "append"), question("x").dump()).status;
  EXPECT_EQ(status, 429);
  EXPECT_EQ(serving.post(path_of("a", "rewind"), R"({"snapshot":"long"})").status, 429);
  EXPECT_EQ(get_json(serving, path_of("a"))["message_count"], 0);
}

// Of two changes at a time that have room for one, the second is refused before it is made.
TEST(SessionTable, RoomIsReservedUntilTheChangeEnds) {
  const auto table = std::make_shared<SessionTable>(SessionLimits{.owner_bytes_max = 10000});
  for (const char* id : {"a", "b"}) ASSERT_TRUE(table->add({.id = id, .model = "m"}));
  const auto longer = [](const SessionState& state, size_t bytes) {
    SessionState next = state;
    next.dialogue.add({"user", std::string(bytes, 'x')});
    return next;
  };
  {
    const auto first = std::move(table->change("", "a")).value();
    const auto second = std::move(table->change("", "b")).value();
    EXPECT_TRUE(first->reserve(longer(first->state(), 6000)));
    EXPECT_FALSE(second->reserve(longer(second->state(), 6000)));
    EXPECT_TRUE(second->reserve(second->state())) << "it takes no more than before";
  }
  const auto second = std::move(table->change("", "b")).value();
  const SessionState larger = longer(second->state(), 6000);
  EXPECT_TRUE(second->reserve(larger)) << "the first one came to nothing";
  second->commit(larger);
  const auto first = std::move(table->change("", "a")).value();
  EXPECT_FALSE(first->reserve(longer(first->state(), 6000)));
}

TEST(SessionTable, WhatNobodyUsesIsForgotten) {
  const auto table = std::make_shared<SessionTable>(SessionLimits{.unused_max = 100s});
  for (const char* id : {"changed", "seen", "other"}) {
    ASSERT_TRUE(table->add({.id = id, .owner = "ada", .model = "m"}));
  }
  auto change = std::move(table->change("ada", "changed")).value();
  const auto begin = SessionTable::Clock::now();
  table->forget_unused(begin + 90s);
  EXPECT_EQ(table->list("ada").size(), 3u);
  table->forget_unused(begin + 101s);
  EXPECT_EQ(table->list("ada").size(), 1u) << "somebody is changing it";
  EXPECT_EQ(table->unknown("ada", "seen").code, "session_expired");
  EXPECT_EQ(table->unknown("bob", "seen").code, "session_not_found") << "it was another's";
  EXPECT_EQ(table->unknown("ada", "never").code, "session_not_found");
  EXPECT_EQ(table->change("ada", "seen").error().code, "session_expired");
  change.reset();
  table->forget_unused(begin + 250s);
  EXPECT_TRUE(table->list("ada").empty());
  ASSERT_TRUE(table->add({.id = "seen", .owner = "ada", .model = "m"})) << "the name is free";
  EXPECT_NE(table->find("ada", "seen"), nullptr);
  EXPECT_FALSE(SessionTable(SessionLimits{}).expires_at("ada", "seen"));
}

// Waits, for ten seconds at most, until there are no more sessions than these.
void wait_for_count(Serving& serving, size_t count) {
  for (int look = 0; look < 100; ++look) {
    if (get_json(serving, kPath)["data"].size() <= count) return;
    std::this_thread::sleep_for(100ms);
  }
  ADD_FAILURE() << get_json(serving, kPath);
}

TEST(Sessions, ExpireOnTheDiskTooWhereThatIsAskedFor) {
  const test::ScratchFolder folder;
  AppOptions options;
  options.session_folder = folder.file("store") + "/sessions";
  const auto files = [&] {
    size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(options.session_folder)) {
      count += size_t(entry.path().extension() == ".json");
    }
    return count;
  };
  {
    options.sessions.unused_max = 2s;
    Serving serving(options);
    const json made = serving.post_json(kPath, {{"id", "s"}});
    const int64_t left = made["expires_at"].get<int64_t>() - made["created"].get<int64_t>();
    EXPECT_TRUE(left >= 1 && left <= 3) << left;
    EXPECT_EQ(files(), 1u);
    wait_for_count(serving, 0);
    const BareReply gone = serving.get(path_of("s"));
    EXPECT_EQ(gone.status, 404);
    EXPECT_NE(gone.body.find("session_expired"), std::string::npos) << gone.body;
  }
  EXPECT_EQ(files(), 0u);
  options.sessions.unused_max = 0s;
  {
    Serving serving(options);
    EXPECT_FALSE(serving.post_json(kPath, {{"id", "old"}}).contains("expires_at"));
    serving.post_json(kPath, {{"id", "new"}});
  }
  // By when they were changed last, where they are taken up.
  for (const auto& entry : std::filesystem::directory_iterator(options.session_folder)) {
    if (test::contents_of(entry.path()).find("\"old\"") == std::string::npos) continue;
    std::filesystem::last_write_time(entry.path(),
                                     std::filesystem::file_time_type::clock::now() - 2h);
  }
  options.sessions.unused_max = 3600s;
  Serving serving(options);
  EXPECT_EQ(serving.get(path_of("old")).status, 404);
  EXPECT_EQ(serving.get(path_of("new")).status, 200);
}

TEST(Sessions, SurviveARestartWithAStore) {
  const test::ScratchFolder folder;
  AppOptions options;
  options.session_folder = folder.file("store") + "/sessions";
  const EngineOptions engine{.cache_dir = folder.file("store")};
  json before;
  {
    Serving serving(options, "", engine);
    EXPECT_EQ(serving.post_json(kPath, {{"id", "s"}})["survives_restart"], true);
    serving.post_json(kPath, {{"id", "gone"}});
    say(serving, "s", "My name is Ada.");
    serving.post_json(path_of("s", "snapshot"), {{"name", "first"}});
    serving.post_json(path_of("s", "branch"), {{"name", "b"}});
    say(serving, "s", "Remember: the code is 4711, the cat is called Tom, and blue is 17.");
    before = get_json(serving, path_of("s"));
    serving.send(delete_request(path_of("gone")));
  }
  struct stat info = {};
  ASSERT_EQ(stat(options.session_folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  std::ofstream(options.session_folder + "/broken.json") << "{\"cairn_session\": 1}";
  Serving serving(options, "", engine);
  EXPECT_EQ(get_json(serving, path_of("s")), before);
  EXPECT_EQ(serving.get(path_of("gone")).status, 404);
  EXPECT_EQ(get_json(serving, kPath)["data"].size(), 1u);
  const json next = say(serving, "s", "What is my name?");
  EXPECT_EQ(text_of(next), "Your name is Ada.");
  EXPECT_EQ(next["memory"]["source"], "disk") << next["memory"];
}

// The second server of a folder keeps nothing there, and does not disturb the first one.
TEST(SessionFiles, AFolderIsOneServersAtATime) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.file("new") + "/sessions";
  {
    const std::unique_ptr<SessionFiles> first = SessionFiles::open(folder).value();
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(SessionFiles::open(folder).value(), nullptr);
    for (const char* id : {"a", "b"}) {
      first->keep(std::make_shared<const SessionState>(SessionState{.id = id, .model = "m"}));
    }
    first->drain();
    first->forget("", "b");
  }
  std::ofstream(folder + "/00ff.json.partial.0123abcd") << "{";
  std::filesystem::create_directory(folder + "/kept.json.partial.x");
  const std::unique_ptr<SessionFiles> again = SessionFiles::open(folder).value();
  ASSERT_NE(again, nullptr);
  const std::vector<SessionState> kept = again->take_kept();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].id, "a");
  EXPECT_FALSE(std::filesystem::exists(folder + "/00ff.json.partial.0123abcd"))
      << "somebody was killed while he wrote it";
  EXPECT_TRUE(std::filesystem::exists(folder + "/kept.json.partial.x")) << "it is no file";
}

// First come, first written, the newest state of each; who asks is told when his is.
TEST(SessionFiles, TellsWhenOneIsWritten) {
  const test::ScratchFolder scratch;
  const std::string folder = scratch.file("new") + "/sessions";
  constexpr int kCount = 40;
  const auto name_of = [](int number) { return "s" + std::to_string(number); };
  std::atomic<int> told = 0;
  {
    const std::unique_ptr<SessionFiles> files = SessionFiles::open(folder).value();
    EXPECT_TRUE(files->is_written("", "none", [&] { told += 1000; }))
        << "nothing was to be written";
    for (const int64_t created : {1, 2}) {
      for (int number = 0; number < kCount; ++number) {
        files->keep(std::make_shared<const SessionState>(
            SessionState{.id = name_of(number), .model = "m", .created = created}));
      }
    }
    for (int number = 0; number < kCount; ++number) {
      if (files->is_written("", name_of(number), [&] { ++told; })) ++told;
    }
    files->drain();
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      count += entry.path().extension() == ".json";
    }
    EXPECT_EQ(count, kCount) << "who has waited finds all of them";
    EXPECT_TRUE(files->is_written("", name_of(0), [&] { told += 1000; }));
  }
  EXPECT_EQ(told, kCount);
  const std::unique_ptr<SessionFiles> again = SessionFiles::open(folder).value();
  for (const SessionState& state : again->take_kept()) EXPECT_EQ(state.created, 2) << state.id;
}

// Whoever has let go of a reply is not woken any more: the connection that it woke may be gone.
TEST(SavedReply, WaitsForTheDiskAndForNobodyElse) {
  const test::ScratchFolder scratch;
  const auto table = std::make_shared<SessionTable>(
      SessionLimits(), SessionFiles::open(scratch.file("new") + "/sessions").value());
  // The writer is held up behind a session of which it was asked before it was done with it.
  std::promise<void> gate;
  const std::shared_future<void> is_open = gate.get_future().share();
  for (int number = 0;; ++number) {
    const std::string id = "held-" + std::to_string(number);
    ASSERT_TRUE(table->add({.id = id, .model = "m"}));
    if (!table->is_written("", id, [is_open] { is_open.wait(); })) break;
  }
  const SessionState state{.id = "next", .model = "m"};
  std::atomic<int> wakes = 0;
  const auto reply_to = [&] {
    auto reply = std::make_unique<SavedReply>(
        std::make_unique<http::WholeReply>(http::ReplyHead{}, "body"), table, "", "next");
    reply->listen([&] { ++wakes; });
    return reply;
  };
  ASSERT_TRUE(table->add(state));
  auto kept = reply_to(), dropped = reply_to();
  std::string out;
  EXPECT_EQ(kept->read(out), http::Reply::State::waiting);
  EXPECT_EQ(dropped->read(out), http::Reply::State::waiting);
  EXPECT_EQ(out, "");
  EXPECT_EQ(kept->head(), nullptr);
  dropped.reset();
  gate.set_value();
  while (wakes == 0) std::this_thread::yield();
  EXPECT_EQ(kept->read(out), http::Reply::State::ended);
  EXPECT_EQ(out, "body");
  EXPECT_EQ(kept->head()->status, 200);
  table->drain();
  EXPECT_EQ(reply_to()->read(out), http::Reply::State::ended) << "nothing is left to be written";
  EXPECT_EQ(wakes, 1);
}

TEST(SessionFiles, WhatIsReadIsChecked) {
  SessionState state{.id = "a", .model = "m", .created = 5, .vocabulary = 7, .seed = UINT64_MAX};
  state.dialogue.add({"user", "one"});
  ASSERT_TRUE(state.dialogue.fork("other"));
  state.dialogue.add({"assistant", "two", {Token(3)}});
  state.snapshots.push_back({.name = "s", .messages = state.dialogue.messages()});
  state.form = {.tools = "[]", .reasons = false, .variables = {{"v", "1"}}};
  const std::string text = session_text(state);
  auto read = read_session("file", text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(session_text(*read), text);
  EXPECT_EQ(read->seed, UINT64_MAX);
  EXPECT_EQ(read->snapshots[0].messages.refs()[0], read->dialogue.branches()[0].messages.refs()[0])
      << "what was shared is shared again";
  EXPECT_EQ(bytes_of(*read), bytes_of(state));
  const json good = json::parse(text);
  const std::pair<const char*, json> wrong[] = {
      {"cairn_session", 2},
      {"id", "../x"},
      {"created", "x"},
      {"vocabulary", "7"},
      {"seed", "-1"},
      {"active", 2},
      {"active", -1},
      {"branches", 5},
      {"branches", json::array()},
      {"snapshots", {{{"name", ""}}}},
      {"messages", 7},
      {"form", 0},
      {"branches", {{{"name", "x"}, {"messages", {99}}}}}};
  for (const auto& [member, value] : wrong) {
    json bad = good;
    bad[member] = value;
    EXPECT_FALSE(read_session("file", bad.dump())) << member << value;
  }
  EXPECT_FALSE(is_session_name("") || is_session_name(".x") || is_session_name("a/b") ||
               is_session_name(std::string(129, 'x')));
  EXPECT_TRUE(is_session_name("a.b_c-1"));
}

}  // namespace
}  // namespace cairn::serve::sessions_test
