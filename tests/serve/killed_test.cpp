// A server that is killed (SIGKILL) in the midst of eight conversations, and one that is started on
// the same folder: each conversation goes on, and says what it would have said. What a session's
// reply has told is on the disk when the reply ends. What was computed is written soon after: of
// what the store says it has, nothing is computed again; of the rest, all.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/scratch_folder.h"
#include "tests/serve/events.h"
#include "tests/serve/server_program.h"

namespace cairn::serve::killed_test {
namespace {

using nlohmann::json;

constexpr int kConversations = 8, kTurnsBefore = 2;
// Of the answer in which the server is killed, and of the one that it is compared with.
constexpr int kLongTokens = 2000, kShortTokens = 48;

const std::string kTold[kTurnsBefore] = {
    "My name is Ada, and I have a cat that is called Tom.",
    "Remember: the code is 4711, the cat is called Tom, and blue is 17."};

json message(const std::string& role, const std::string& text) {
  return {{"role", role}, {"content", text}};
}

// A client's side of a conversation: of a session its name, else all that was said.
class Conversation {
 public:
  Conversation(int number, bool is_session)
      : number_(number), is_session_(is_session), name_("s" + std::to_string(number)) {}

  bool is_session() const { return is_session_; }
  const std::string& name() const { return name_; }

  void make(const ServerProgram& program) const {
    if (is_session_) reply_to(program, "/v1/sessions", {{"id", name_}});
  }
  // What asks for turn `turn`.
  std::string request(int turn, int token_count, bool is_stream) const {
    json body = {{"messages", is_session_ ? json::array() : history_},
                 {"max_tokens", token_count},
                 {"stream", is_stream},
                 {"temperature", 0.7},
                 {"seed", 100 * number_ + turn}};
    body["messages"].push_back(asked(turn));
    if (turn >= kTurnsBefore) body["ignore_eos"] = true;
    return post_request(
        is_session_ ? "/v1/sessions/" + name_ + "/generate" : "/v1/chat/completions", body.dump());
  }
  // Says a turn, and takes the answer up.
  json say(const ServerProgram& program, int turn, int token_count) {
    BareClient client = program.client();
    EXPECT_TRUE(client.send(request(turn, token_count, false)));
    const BareReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200) << reply.body;
    json whole = json::parse(reply.body, nullptr, false);
    history_.push_back(asked(turn));
    history_.push_back(message("assistant", whole["choices"][0]["message"]["content"]));
    return whole;
  }
  static json reply_to(const ServerProgram& program, const std::string& path, const json& body) {
    BareClient client = program.client();
    EXPECT_TRUE(client.send(post_request(path, body.dump())));
    const BareReply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body, nullptr, false);
  }

 private:
  json asked(int turn) const {
    if (turn < kTurnsBefore) return message("user", name_ + ": " + kTold[turn]);
    return message("user", turn == kTurnsBefore ? "What is my name?" : "And what is blue?");
  }

  int number_;
  bool is_session_;
  std::string name_;
  json history_ = json::array();
};

std::vector<Conversation> begin_conversations(const ServerProgram& program) {
  std::vector<Conversation> all;
  for (int number = 0; number < kConversations; ++number) {
    Conversation& one = all.emplace_back(number, number % 2 == 0);
    one.make(program);
    for (int turn = 0; turn < kTurnsBefore; ++turn) one.say(program, turn, kShortTokens);
  }
  return all;
}

json get(const ServerProgram& program, const std::string& path) {
  BareClient client = program.client();
  EXPECT_TRUE(client.send(get_request(path)));
  return json::parse(client.read_reply().body, nullptr, false);
}

// Until the disk has all that memory has.
void wait_until_stored(const ServerProgram& program) {
  const auto is_stored = [&] {
    const json memory = get(program, "/v1/memory");
    for (const json& sequence : memory["sequences"]) {
      if (!sequence["stored"].get<bool>()) return false;
    }
    return memory["engine"]["running"] == 0 && !memory["sequences"].empty();
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!is_stored()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << get(program, "/v1/memory");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

std::unique_ptr<ServerProgram> start(const test::ScratchFolder& folder,
                                     const std::string& model = "") {
  std::vector<std::string> words = {"--cache-dir", folder.file("store"), "--memory-budget",
                                    "256M",        "--threads",          "2"};
  if (!model.empty()) words.push_back(model);
  return std::make_unique<ServerProgram>(words);
}

// All conversations ask for a long answer; when each has some of it, the server is killed. What
// each of them has got.
std::vector<std::string> kill_in_the_midst(ServerProgram& program,
                                           const std::vector<Conversation>& all) {
  std::vector<BareClient> clients;
  for (const Conversation& one : all) {
    clients.push_back(program.client());
    EXPECT_TRUE(clients.back().send(one.request(kTurnsBefore, kLongTokens, true)));
  }
  for (BareClient& client : clients) EXPECT_TRUE(client.wait_for("\"content\":\""));
  program.send_signal(SIGKILL);
  EXPECT_EQ(program.wait(), -SIGKILL);
  std::vector<std::string> texts;
  for (BareClient& client : clients) {
    const BareReply reply = client.read_reply();
    EXPECT_FALSE(reply.is_whole);
    std::string rest;
    std::vector<json> chunks;
    for (const Event& event : events_of(reply.body, &rest)) {
      json chunk = json::parse(event.data, nullptr, false);
      if (!chunk.is_discarded()) chunks.push_back(std::move(chunk));
    }
    texts.push_back(text_in(chunks));
  }
  return texts;
}

std::string text_of(const json& reply) {
  return reply["choices"][0]["message"]["content"];
}

// What each conversation is told when nobody is killed.
struct Undisturbed {
  json next, last;
};

std::vector<Undisturbed> undisturbed(const std::string& model = "") {
  const test::ScratchFolder folder;
  const auto program = start(folder, model);
  std::vector<Undisturbed> told;
  for (Conversation& one : begin_conversations(*program)) {
    json next = one.say(*program, kTurnsBefore, kShortTokens);
    told.push_back({std::move(next), one.say(*program, kTurnsBefore + 1, kShortTokens)});
  }
  return told;
}

// Answers are the same, and of the prompt as much is reused as in memory that was never lost.
void go_on(const ServerProgram& program, std::vector<Conversation>& all,
           const std::vector<Undisturbed>& expected) {
  for (int number = 0; number < kConversations; ++number) {
    Conversation& one = all[size_t(number)];
    const Undisturbed& same = expected[size_t(number)];
    const json next = one.say(program, kTurnsBefore, kShortTokens);
    EXPECT_EQ(text_of(next), text_of(same.next)) << number;
    EXPECT_EQ(next["memory"]["source"], "disk") << number << next["memory"];
    EXPECT_EQ(next["usage"], same.next["usage"]) << "with what was cached, " << number;
    EXPECT_GT(next["memory"]["reused"], next["memory"]["recomputed"]) << number;
    EXPECT_EQ(next["memory"]["recomputed"], same.next["memory"]["recomputed"]) << number;
    const json last = one.say(program, kTurnsBefore + 1, kShortTokens);
    EXPECT_EQ(text_of(last), text_of(same.last)) << number;
    EXPECT_EQ(last["usage"], same.last["usage"]) << number;
  }
}

void kill_and_go_on(const std::string& model) {
  const std::vector<Undisturbed> expected = undisturbed(model);
  const test::ScratchFolder folder;
  auto program = start(folder, model);
  std::vector<Conversation> all = begin_conversations(*program);
  wait_until_stored(*program);
  std::vector<json> sessions;
  for (const Conversation& one : all) {
    if (one.is_session()) sessions.push_back(get(*program, "/v1/sessions/" + one.name()));
  }
  for (int time = 0; time < 3; ++time) {
    const std::vector<std::string> texts = kill_in_the_midst(*program, all);
    for (size_t number = 0; number < texts.size(); ++number) {
      const std::string whole = text_of(expected[number].next);
      const size_t size = std::min(whole.size(), texts[number].size());
      EXPECT_EQ(texts[number].substr(0, size), whole.substr(0, size)) << number;
    }
    program = start(folder, model);
    auto session = sessions.begin();
    for (const Conversation& one : all) {
      if (!one.is_session()) continue;
      EXPECT_EQ(get(*program, "/v1/sessions/" + one.name()), *session++)
          << "without the answer that was not finished";
    }
  }
  go_on(*program, all, expected);
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("store") + "/quarantine"));
  program->send_signal(SIGTERM);
  EXPECT_EQ(program->wait(), 0);
}

TEST(Killed, ConversationsGoOn) {
  kill_and_go_on("");
}

// Whoever has the end of a reply has changed the session for good, whatever happens then. Nothing
// is said of what it has computed: that is written later, and is computed again if need be.
TEST(Killed, WhatAReplyHasToldIsThere) {
  const test::ScratchFolder folder;
  auto program = start(folder);
  for (const char* id : {"a", "gone"})
    Conversation::reply_to(*program, "/v1/sessions", {{"id", id}});
  const auto kill = [&] {
    program->send_signal(SIGKILL);
    EXPECT_EQ(program->wait(), -SIGKILL);
    program = start(folder);
  };
  const auto count = [&](const std::string& id) {
    return get(*program, "/v1/sessions/" + id).value("message_count", -1);
  };
  kill();
  EXPECT_EQ(count("a"), 0);
  const json body = {{"messages", json::array({message("user", kTold[0])})}, {"max_tokens", 9}};
  const json told = Conversation::reply_to(*program, "/v1/sessions/a/generate", body);
  kill();
  const json whole = get(*program, "/v1/sessions/a");
  ASSERT_EQ(whole["messages"].size(), 2u);
  EXPECT_EQ(whole["messages"][1]["content"], text_of(told));
  json streamed = body;
  streamed["stream"] = true;
  BareClient client = program->client();
  ASSERT_TRUE(client.send(post_request("/v1/sessions/a/generate", streamed.dump())));
  ASSERT_TRUE(client.wait_for("data: [DONE]"));
  kill();
  EXPECT_EQ(count("a"), 4);
  Conversation::reply_to(*program, "/v1/sessions/a/append", body);
  kill();
  EXPECT_EQ(count("a"), 5);
  Conversation::reply_to(*program, "/v1/sessions/a/rewind", {{"keep", 1}});
  kill();
  EXPECT_EQ(count("a"), 1);
  Conversation::reply_to(*program, "/v1/sessions/a/fork", {{"id", "b"}});
  kill();
  EXPECT_EQ(count("b"), 1);
  BareClient other = program->client();
  ASSERT_TRUE(other.send("DELETE /v1/sessions/gone HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(other.read_reply().status, 200);
  kill();
  EXPECT_EQ(count("gone"), -1);
}

}  // namespace
}  // namespace cairn::serve::killed_test
