// `cairn run --server`: says what `cairn run` says, with the same commands; what a server cannot do
// is said, and so is what it refuses; an answer is stopped, and a server that was away is come back
// to. Covers remote_chat.cpp, local_chat.cpp and client/http_client.cpp.
#include "terminal_chat/remote_chat.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "terminal_chat/event_reader.h"
#include "tests/serve/server_program.h"
#include "tests/terminal_chat/terminal_program.h"

namespace cairn::terminal_chat::remote_chat_test {
namespace {

using cli::Environment;
using cli::Finished;
using cli::run_program;
using test::contents_of;
using test::ScratchFolder;
using test::write_to;

using serve::ServerProgram;

std::string url_of(const ServerProgram& server) {
  return "http://127.0.0.1:" + std::to_string(server.port());
}

TEST(RemoteChat, SaysWhatALocalOneSays) {
  const ScratchFolder folder;
  const ServerProgram server;
  const std::string saved = folder.file("saved.json");
  const std::string input =
      "My name is Ada.\nWhat is my name?\n/rewind\n/fork other\nWhat is the capital of France?\n"
      "/branches\n/switch main\nWhat is my name?\n/regen\n/edit What is the capital of Norway?\n"
      "/continue\n/retry temp=0\n/show temp\n/save! " +
      saved + "\n/clear\nWhat is my name?\n/load " + saved + "\n/branches\n/rewind 9\n/switch no\n";
  const Finished local = run_program({"run", "--chat"}, input);
  const Finished remote = run_program({"run", "--chat", "--server", url_of(server)}, input);
  EXPECT_EQ(remote.exit_code, 0) << remote.err;
  EXPECT_EQ(remote.out, local.out) << remote.err;
  EXPECT_NE(remote.out.find("Your name is Ada."), std::string::npos);
  for (const char* line :
       {"now in other; it shares all 1 turns so far", "* other            4 messages",
        "now in main, 1 turns; ", "1 turns left; ", " 0 to compute", "temp                0"}) {
    EXPECT_NE(local.err.find(line), std::string::npos) << line;
    EXPECT_NE(remote.err.find(line), std::string::npos) << line << ": " << remote.err;
  }
  // Its session goes with it.
  serve::BareClient client = server.client();
  ASSERT_TRUE(client.send(serve::get_request("/v1/sessions")));
  EXPECT_EQ(nlohmann::json::parse(client.read_reply().body)["data"].size(), 0u);
}

TEST(RemoteChat, SavesWhatALocalOneTakesUp) {
  const ScratchFolder folder;
  const ServerProgram server;
  const std::string session = folder.file("chat.json"), receipt = folder.file("receipt.json");
  const Finished first = run_program({"run", "--server", url_of(server), "--session", session,
                                      "--system", "Be kind.", "-p", "My name is Ada."});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  const auto saved = nlohmann::json::parse(contents_of(session));
  ASSERT_EQ(saved["messages"].size(), 3u);
  EXPECT_EQ(saved["messages"][0]["content"], "Be kind.");
  EXPECT_TRUE(saved["messages"][2].contains("token_ids"));
  EXPECT_EQ(run_program({"run", "--session", session, "-p", "What is my name?"}).out,
            "Your name is Ada.\n");
  const Finished again = run_program({"run", "--server", url_of(server), "--session", session,
                                      "--receipt", receipt, "-p", "What is my name?"});
  EXPECT_EQ(again.out, "Your name is Ada.\n") << again.err;
  EXPECT_EQ(run_program({"replay", receipt}).exit_code, 0);
}

TEST(RemoteChat, FormsAndLimitsAreSent) {
  const ServerProgram server;
  const std::vector<std::string> run = {"run", "--server", url_of(server), "-p",
                                        "What is the capital of France?"};
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> words = run;
    words.insert(words.end(), more);
    return run_program(words);
  };
  EXPECT_EQ(with({"--choice", "Oslo,Rome"}).out.size(), 5u);
  const Finished cut = with({"-n", "2"});
  EXPECT_EQ(cut.out, "The capital\n");
  EXPECT_NE(cut.err.find("cut off"), std::string::npos) << cut.err;
  EXPECT_EQ(with({"--stop", " is"}).out, "The capital of France\n");
  EXPECT_EQ(with({"--temp", "1.5", "--seed", "3"}).out, with({"--temp", "1.5", "--seed", "3"}).out);
  const Finished wrong = with({"--grammar", "root ::= ("});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find("(400)"), std::string::npos) << wrong.err;
}

TEST(RemoteChat, KeysAreShownAndRefusalsToo) {
  const ScratchFolder folder;
  write_to(folder.file("keys"), "a-key-of-one-user-12\n");
  ASSERT_EQ(chmod(folder.file("keys").c_str(), 0600), 0);
  write_to(folder.file("wrong"), "a-key-of-nobody-at-all\n");
  const ServerProgram server({"--api-key-file", folder.file("keys")});
  const std::string url = url_of(server);
  const Finished without = run_program({"run", "--server", url, "-p", "x"});
  EXPECT_EQ(without.exit_code, 1);
  EXPECT_NE(without.err.find("Invalid API Key (401)"), std::string::npos) << without.err;
  EXPECT_EQ(run_program({"run", "--server", url, "--api-key-file", folder.file("wrong"), "-p", "x"})
                .exit_code,
            1);
  const std::vector<std::string> question = {"-p", "What is the capital of France?"};
  const auto ask = [&](std::vector<std::string> words, const Environment& environment = {}) {
    words.insert(words.begin(), {"run", "--server", url});
    words.insert(words.end(), question.begin(), question.end());
    return run_program(words, "", environment).out;
  };
  EXPECT_EQ(ask({"--api-key-file", folder.file("keys")}), "The capital of France is Paris.\n");
  EXPECT_EQ(ask({"--api-key", "a-key-of-one-user-12"}), "The capital of France is Paris.\n");
  EXPECT_EQ(ask({}, {{"CAIRN_API_KEY", "a-key-of-one-user-12"}}),
            "The capital of France is Paris.\n");
}

TEST(RemoteChat, WhatAServerCannotDoIsSaid) {
  const ServerProgram server;
  const Finished chat = run_program({"run", "--chat", "--server", url_of(server)},
                                    "/lora\nMy name is Ada.\n/system Be rude.\n/memory\n");
  EXPECT_NE(chat.err.find("whose adapters are for all its clients"), std::string::npos);
  EXPECT_NE(chat.err.find("/clear begins anew"), std::string::npos);
  EXPECT_NE(chat.err.find("2 messages on the server"), std::string::npos) << chat.err;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--raw"}, {"--json"}, {"model.gguf"}, {"--cache-dir", "x"}}) {
    std::vector<std::string> words = {"run", "-p", "x", "--server", url_of(server)};
    words.insert(words.end(), more.begin(), more.end());
    const Finished refused = run_program(words);
    EXPECT_NE(refused.exit_code, 0) << more[0];
    EXPECT_NE(refused.err.find("expected none beside --server"), std::string::npos) << refused.err;
  }
}

// The first Ctrl-C ends the answer; the conversation goes on, and remembers it.
TEST(RemoteChat, AnAnswerIsStopped) {
  const ScratchFolder folder;
  const ServerProgram server({"--context-policy", "shift"});
  const Environment environment = terminal_environment(folder);
  Terminal terminal({"run", "--server", url_of(server), "--ignore-eos"}, environment);
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("My name is Ada.\n");
  ASSERT_TRUE(terminal.shows("Nice to meet you, Ada.")) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows("interrupted")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/branches\n");
  ASSERT_TRUE(terminal.shows("main             2 messages")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
}

// A server that was started again has forgotten the session, and the chat goes on.
TEST(RemoteChat, AServerComesBack) {
  const ScratchFolder folder;
  const Environment environment = terminal_environment(folder);
  const std::vector<std::string> on_socket = {"--unix-socket", folder.file("socket")};
  auto server = std::make_unique<ServerProgram>(on_socket);
  Terminal terminal({"run", "--server", "unix:" + on_socket[1]}, environment);
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("My name is Ada.\n");
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  server.reset();
  terminal.type("What is my name?\n");
  ASSERT_TRUE(terminal.shows("trying again")) << terminal.screen();
  server = std::make_unique<ServerProgram>(on_socket);
  ASSERT_TRUE(terminal.shows("the server is there again")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("it goes on in a new one")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("Your name is Ada.")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
}

// A server that comes back before anything was said hears the system message once.
TEST(RemoteChat, TheSystemMessageIsSaidOnce) {
  const ScratchFolder folder;
  const Environment environment = terminal_environment(folder);
  const std::vector<std::string> on_socket = {"--unix-socket", folder.file("socket")};
  auto server = std::make_unique<ServerProgram>(on_socket);
  Terminal terminal({"run", "--server", "unix:" + on_socket[1], "--system", "Be kind."},
                    environment);
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  server.reset();
  server = std::make_unique<ServerProgram>(on_socket);
  terminal.type("My name is Ada.\n");
  ASSERT_TRUE(terminal.shows("it goes on in a new one")) << terminal.screen();
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/memory\n");
  ASSERT_TRUE(terminal.shows(": 3 messages on the server")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
}

// What a server counts wrongly takes no memory, and is not shown.
TEST(EventReader, CountsAreKeptInTheirBounds) {
  for (const char* count : {"-1", "9223372036854775807"}) {
    const session::AnswerHooks hooks{};
    EventReader events(&hooks);
    events.add(std::string("data: {\"choices\":[],\"usage\":{\"completion_tokens\":") + count +
               ",\"prompt_tokens\":" + count + "}}\n\ndata: [DONE]\n\n");
    auto answer = std::move(events).finish();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_LE(answer->tokens.size(), size_t(1) << 24);
    EXPECT_GE(answer->prompt.prompt_tokens, 0);
  }
}

}  // namespace
}  // namespace cairn::terminal_chat::remote_chat_test
