// `cairn serve` from outside: what it refuses to start with, and how it ends. Covers
// src/cli/commands/serve.cpp.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/machine/sandbox.h"
#include "tests/cli/run_program.h"
#include "tests/scratch_folder.h"
#include "tests/serve/bare_client.h"
#include "tests/serve/certificates.h"
#include "tests/serve/server_program.h"

namespace cairn::serve::program_test {
namespace {

using cli::Finished;
using cli::run_program;
using nlohmann::json;

std::string endless_stream() {
  return post_request("/v1/chat/completions",
                      R"({"messages":[{"role":"user","content":"Hello"}],"stream":true,)"
                      R"("ignore_eos":true,"max_tokens":3000})");
}

// Attack 29.
TEST(ServeProgram, RefusesToListenForOthersWithoutKeys) {
  for (const char* host : {"0.0.0.0", "::", "192.168.255.1"}) {
    const Finished run = run_program({"serve", "--host", host, "--port", "0"});
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find("--api-key-file"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find("--insecure-no-auth"), std::string::npos) << run.err;
  }
  EXPECT_EQ(run_program({"serve", "--host", "example.org"}).exit_code, 2);
}

TEST(ServeProgram, SaysWhatIsWrongWithKeys) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("keys");
  test::write_to(path, "a-key-of-somebody-1\n");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  const Finished open = run_program({"serve", "--api-key-file", path});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_NE(open.err.find("chmod 600"), std::string::npos) << open.err;
  const Finished small = run_program({"serve", "--api-key", "short"});
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_NE(small.err.find("16"), std::string::npos) << small.err;
}

TEST(ServeProgram, SaysWhatIsWrongWithCertificates) {
  const test::ScratchFolder folder;
  const Pair pair = make_pair_in(folder.path(), "one");
  const Pair other = make_pair_in(folder.path(), "other");
  const Finished half = run_program({"serve", "--tls-cert", pair.certificate});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_NE(half.err.find("expected --tls-key"), std::string::npos) << half.err;
  const Finished wrong =
      run_program({"serve", "--tls-cert", pair.certificate, "--tls-key", other.key});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.err.find(other.key), std::string::npos) << wrong.err;
  const Finished socket = run_program({"serve", "--unix-socket", folder.file("socket"),
                                       "--tls-cert", pair.certificate, "--tls-key", pair.key});
  EXPECT_EQ(socket.exit_code, 2);
  // TLS is no key: whoever reaches the server could use it.
  const Finished open = run_program({"serve", "--host", "0.0.0.0", "--port", "0", "--tls-cert",
                                     pair.certificate, "--tls-key", pair.key});
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_NE(open.err.find("--api-key-file"), std::string::npos) << open.err;
}

void write_keys(const std::string& path, const std::string& text) {
  test::write_to(path, text);
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
}

std::string list_with(const std::string& key) {
  return get_request("/v1/models", "Authorization: Bearer " + key + "\r\n");
}

// On connections that are there already.
TEST(ServeProgram, ReadsKeysAgain) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("keys");
  const std::string old = "a-key-of-somebody-1", later = "a-key-of-somebody-2";
  write_keys(path, old + "\n");
  ServerProgram program({"--api-key-file", path});
  BareClient asking = program.client();
  const auto status = [&](const std::string& key) {
    EXPECT_TRUE(asking.send(list_with(key)));
    return asking.read_reply().status;
  };
  EXPECT_EQ(status(old), 200);
  EXPECT_EQ(status(later), 401);
  BareClient watching = program.client();
  ASSERT_TRUE(
      watching.send(get_request("/v1/memory/events", "Authorization: Bearer " + old + "\r\n")));
  ASSERT_TRUE(watching.wait_for("data:"));
  write_keys(path, later + "\n");
  EXPECT_EQ(status(old), 200) << "before it was told";
  program.send_signal(SIGHUP);
  program.line_with("read again");
  EXPECT_EQ(status(later), 200);
  EXPECT_EQ(status(old), 401);
  watching.take_all();  // It is closed.
  for (const char* broken : {"short\n", "", "# none\n"}) {
    write_keys(path, broken);
    program.send_signal(SIGHUP);
    EXPECT_NE(program.line_with("stays in force").find(path), std::string::npos);
    EXPECT_EQ(status(later), 200);
  }
  ::unlink(path.c_str());
  program.send_signal(SIGHUP);
  program.line_with("stays in force");
  EXPECT_EQ(status(later), 200);
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait(), 0);
}

TEST(ServeProgram, ReadsCertificatesAgain) {
  const test::ScratchFolder folder;
  const Pair pair = make_pair_in(folder.path(), "server", {.serial = 11});
  ServerProgram program({"--tls-cert", pair.certificate, "--tls-key", pair.key});
  TlsClient asking(program.port());
  EXPECT_EQ(asking.serial(), 11);
  const auto is_answered = [](TlsClient& client) {
    return client.send(get_request("/v1/models")) && client.read_reply().status == 200;
  };
  EXPECT_TRUE(is_answered(asking));
  make_pair_in(folder.path(), "server", {.serial = 12});
  program.send_signal(SIGHUP);
  program.line_with("read again");
  TlsClient next(program.port());
  EXPECT_EQ(next.serial(), 12);
  EXPECT_TRUE(is_answered(next));
  EXPECT_TRUE(is_answered(asking)) << "what was there lives on";
  make_pair_in(folder.path(), "server", {.begin_days = -9, .end_days = -2, .serial = 13});
  program.send_signal(SIGHUP);
  EXPECT_NE(program.line_with("stays in force").find(pair.certificate), std::string::npos);
  EXPECT_EQ(TlsClient(program.port()).serial(), 12);
}

TEST(ServeProgram, AnswersAndTellsItsName) {
  ServerProgram program({"--alias", "my-model"});
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(post_request(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"What is the capital of France?"}]})")));
  const nlohmann::json reply = nlohmann::json::parse(asking.read_reply().body);
  EXPECT_EQ(reply["model"], "my-model");
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "The capital of France is Paris.");
}

// Of its answer, without the names of the moment: the text, and what each step's logits were.
std::string answer_and_bits(const ServerProgram& server) {
  const std::string body = R"({"messages":[{"role":"user","content":"What is the capital of )"
                           R"(France?"}],"seed":7,"temperature":1,"receipt":true})";
  BareClient asking = server.client();
  asking.send(post_request("/v1/chat/completions", body));
  const BareReply reply = asking.read_reply();
  const json answer = json::parse(reply.body, nullptr, false);
  if (reply.status != 200) return "none: " + reply.body;
  const json& choice = answer["choices"][0];
  return choice["message"].dump() + choice["receipt"]["answer"].dump();
}

// Each thread of it may neither start programs nor make sockets (the last filter's count), and what
// it answers is what it answers without.
TEST(ServeProgram, IsSandboxedAndAnswersWithTheSameBits) {
  if (!sandbox_support().why_not.empty()) GTEST_SKIP() << sandbox_support().why_not;
  const test::ScratchFolder folder;
  const ServerProgram sandboxed({"--sandbox", "on", "--cache-dir", folder.file("store")});
  const ServerProgram other({"--sandbox", "off", "--cache-dir", folder.file("other")});
  const std::string answer = answer_and_bits(sandboxed);
  EXPECT_NE(answer.find("digest"), std::string::npos) << answer;
  EXPECT_EQ(answer, answer_and_bits(other));
  const auto count_of = [](const ServerProgram& server, const char* line) {
    const std::string tasks = "/proc/" + std::to_string(server.process()) + "/task";
    int count = 0, threads = 0;
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      const std::string status = test::contents_of(task.path().string() + "/status");
      count += int(status.find(line) != std::string::npos);
      ++threads;
    }
    return std::pair(count, threads);
  };
  const auto [filtered, threads] = count_of(sandboxed, "Seccomp:\t2\n");
  EXPECT_EQ(filtered, threads);
  EXPECT_GT(threads, 1);
  EXPECT_EQ(count_of(other, "Seccomp:\t2\n").first, 0);
}

// A link that stands in the place of a model by the time it is loaded leads nowhere.
TEST(ServeProgram, TheSandboxKeepsFilesElsewhereShut) {
  if (!sandbox_support().why_not.empty()) GTEST_SKIP() << sandbox_support().why_not;
  const test::ScratchFolder elsewhere;
  std::filesystem::copy_file(CAIRN_SOURCE "/assets/nano.gguf", elsewhere.file("other.gguf"));
  for (const bool is_sandboxed : {false, true}) {
    const test::ScratchFolder models;
    for (const char* name : {"a.gguf", "b.gguf"}) {
      std::filesystem::copy_file(CAIRN_SOURCE "/assets/nano.gguf", models.file(name));
    }
    const ServerProgram server({models.path().string(), "--sandbox", is_sandboxed ? "on" : "off"});
    std::filesystem::remove(models.file("a.gguf"));
    std::filesystem::create_symlink(elsewhere.file("other.gguf"), models.file("a.gguf"));
    for (const std::string name : {"a", "b"}) {
      BareClient asking = server.client();
      asking.send(post_request(
          "/v1/chat/completions",
          R"({"model":")" + name + R"(","messages":[{"role":"user","content":"Hello"}]})"));
      const BareReply reply = asking.read_reply();
      EXPECT_EQ(reply.status, is_sandboxed && name == "a" ? 500 : 200) << reply.body;
    }
  }
}

// Attack 8: what is read again of the file is not taken for weights.
TEST(ServeProgram, AShrunkModelIsNamedAndEndsIt) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("model.gguf");
  std::filesystem::copy_file(CAIRN_SOURCE "/assets/nano.gguf", path);
  ServerProgram server({path, "--no-pack"});
  ASSERT_EQ(::truncate(path.c_str(), 4096), 0);
  BareClient asking = server.client();
  asking.send(
      post_request("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hello"}]})"));
  server.line_with("model.gguf: the file shrank");
  EXPECT_FALSE(asking.read_reply().is_whole);
  EXPECT_EQ(server.wait(), 3);
}

int health_of(ServerProgram& program) {
  BareClient asking = program.client();
  asking.send(get_request("/health"));
  return asking.read_reply().status;
}

// A folder that is lent has a tenth of its disk, if nobody says how much.
TEST(ServeProgram, AFolderThatIsLentHasATenthOfItsDisk) {
  const test::ScratchFolder folder;
  const auto budget = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--cache-dir", folder.file("store")});
    ServerProgram server(more);
    BareClient asking = server.client();
    asking.send(get_request("/metrics"));
    const std::string text = asking.read_reply().body;
    const size_t at = text.find("\ncairn_store_budget_bytes");
    return at == text.npos ? -1.0 : std::atof(text.c_str() + text.find(' ', at + 1));
  };
  const double tenth = double(std::filesystem::space(folder.path()).capacity / 10);
  const std::vector<std::string> lends = {"--tier", "unix:/nowhere", "--peer-listen",
                                          "127.0.0.1:0"};
  EXPECT_NEAR(budget(lends), tenth, 1e6);
  EXPECT_NEAR(budget({}), std::min(tenth, 20.0 * (1 << 30)), 1e6);
  std::vector<std::string> told = lends;
  told.insert(told.end(), {"--cache-disk-budget", "1G"});
  EXPECT_EQ(budget(told), double(1 << 30));
}

// From the line on that says where it listens.
TEST(ServeProgram, ASignalIsNeverTooEarly) {
  for (int times = 0; times < 5; ++times) {
    ServerProgram server;
    server.send_signal(SIGTERM);
    EXPECT_EQ(server.wait(), 0);
    ServerProgram router({"--node", "http://127.0.0.1:1"}, {}, "route");
    router.send_signal(SIGTERM);
    EXPECT_EQ(router.wait(), 0);
  }
}

TEST(ServeProgram, AnswersForAWhileBeforeItStops) {
  ServerProgram program({"--drain-seconds", "1"});
  ASSERT_EQ(health_of(program), 200);
  program.send_signal(SIGTERM);
  while (health_of(program) == 200) ::usleep(1000);
  EXPECT_EQ(health_of(program), 503);
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(post_request(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"What is the capital of France?"}]})")));
  EXPECT_EQ(asking.read_reply().status, 200);
  EXPECT_EQ(program.wait(), 0);
}

TEST(ServeProgram, FinishesWhatIsBeingAnswered) {
  ServerProgram program;
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(endless_stream()));
  ASSERT_TRUE(asking.wait_for("\"delta\""));
  program.send_signal(SIGTERM);
  while (health_of(program) == 200) ::usleep(1000);
  EXPECT_EQ(health_of(program), 503);
  BareClient late = program.client();
  ASSERT_TRUE(late.send(post_request("/v1/messages", "{}")));
  const BareReply refused = late.read_reply();
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("retry-after: 1\r\n"));
  EXPECT_NE(refused.body.find("overloaded_error"), std::string::npos) << refused.body;
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(program.wait(), 0);
}

TEST(ServeProgram, EndsAtOnceAtTheSecondSignal) {
  ServerProgram program({"--context-policy", "shift"});
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(post_request(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"Hello"}],"stream":true,"ignore_eos":true})")));
  ASSERT_TRUE(asking.wait_for("\"delta\""));
  program.send_signal(SIGTERM);
  while (health_of(program) == 200) ::usleep(1000);
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait(), 130);
}

TEST(ServeProgram, KeysComeFromTheEnvironment) {
  ASSERT_EQ(::setenv("CAIRN_API_KEY", "a-key-of-the-environment", 1), 0);
  ServerProgram program;
  ASSERT_EQ(::unsetenv("CAIRN_API_KEY"), 0);
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(get_request("/v1/models")));
  EXPECT_EQ(asking.read_reply().status, 401);
  ASSERT_TRUE(
      asking.send(get_request("/v1/models", "Authorization: Bearer a-key-of-the-environment\r\n")));
  EXPECT_EQ(asking.read_reply().status, 200);
}

std::string nano() {
  return CAIRN_SOURCE "/assets/nano.gguf";
}

// A file whose digest is being computed for a while: it has a hole of so many bytes.
void write_large(const std::string& path, uintmax_t bytes) {
  test::write_to(path, "GGUF");
  std::filesystem::resize_file(path, bytes);
}

TEST(ServeProgram, AFolderOfModels) {
  const test::ScratchFolder folder;
  std::filesystem::copy_file(nano(), folder.file("one.gguf"));
  std::filesystem::copy_file(nano(), folder.file("two.gguf"));
  ServerProgram program({folder.path().string(), "--alias", "gpt-4=two", "--alias",
                         "three=" + nano(), "--models-budget", "1G", "--memory-budget", "16M",
                         "--temp", "0"});
  for (const char* name : {"one", "gpt-4", "three"}) {
    BareClient asking = program.client();
    ASSERT_TRUE(asking.send(post_request(
        "/v1/chat/completions",
        std::string(
            R"({"messages":[{"role":"user","content":"What is the capital of France?"}],)") +
            R"("model":")" + name + "\"}")));
    const nlohmann::json reply = nlohmann::json::parse(asking.read_reply().body);
    EXPECT_EQ(reply["choices"][0]["message"]["content"], "The capital of France is Paris.")
        << reply;
  }
}

TEST(ServeProgram, SaysWhatIsWrongWithModels) {
  const test::ScratchFolder folder;
  EXPECT_EQ(run_program({"serve", folder.path().string()}).exit_code, 1) << "nothing is in it";
  std::filesystem::copy_file(nano(), folder.file("one.gguf"));
  const std::string zeros(64, '0');
  const std::vector<std::vector<std::string>> wrong = {
      {"--alias", "x=nothing"},          {"--alias", "one"},    {"--expect-sha256", "12"},
      {"--expect-sha256", "x=" + zeros}, {"--pooling", "mean"}, {"--models-budget", "much"}};
  for (const std::vector<std::string>& more : wrong) {
    std::vector<std::string> words = {"serve", folder.path().string()};
    words.insert(words.end(), more.begin(), more.end());
    const Finished run = run_program(words);
    EXPECT_EQ(run.exit_code, 2) << more[0] << " " << more[1] << run.err;
    EXPECT_NE(run.err.find(more[0]), std::string::npos) << run.err;
  }
  EXPECT_EQ(run_program({"serve", nano(), "-a", "x", "-a", "y"}).exit_code, 2);
  const Finished digest = run_program({"serve", nano(), "--expect-sha256", zeros});
  EXPECT_EQ(digest.exit_code, 1);
  EXPECT_NE(digest.err.find("expected SHA-256 " + zeros + ", found "), std::string::npos)
      << digest.err;
}

// The first signal leaves a load to be finished, for those who wait for it …
TEST(ServeProgram, FinishesLoadsThatSomebodyWaitsFor) {
  const test::ScratchFolder folder;
  write_large(folder.file("slow.gguf"), uintmax_t(1) << 30);
  ServerProgram program(
      {folder.path().string(), "--expect-sha256", "slow=" + std::string(64, '0')});
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(endless_stream()));
  // Where this machine is so busy that no note came before the end, the end is a plain reply.
  ASSERT_TRUE(asking.wait_for("HTTP/1.1 "));
  program.send_signal(SIGTERM);
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_NE(reply.body.find("{\"error\":{\"message\":\"model slow: slow.gguf: expected SHA-256"),
            std::string::npos)
      << reply.body;
  EXPECT_EQ(program.wait(), 0);
}

// … and the second one waits for nothing: this one would take minutes.
TEST(ServeProgram, TheSecondSignalEndsALoad) {
  const test::ScratchFolder folder;
  write_large(folder.file("slow.gguf"), uintmax_t(1) << 40);
  ServerProgram program(
      {folder.path().string(), "--expect-sha256", "slow=" + std::string(64, '0')});
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(endless_stream()));
  ASSERT_TRUE(asking.wait_for(": checking "));
  program.send_signal(SIGTERM);
  while (health_of(program) == 200) ::usleep(1000);
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait(), 130);
}

// As viewers read it: the end may be missing.
json read_trace(const std::string& path) {
  std::string text = test::contents_of(path);
  if (!text.ends_with("]\n")) text += "]";
  return json::parse(text, nullptr, false);
}

TEST(ServeProgram, ATraceTellsWhatWasDoneWhen) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("trace.json");
  for (const bool is_killed : {false, true}) {
    ServerProgram server({"--trace", path, "--cache-dir", folder.file("store")});
    BareClient client = server.client();
    for (int32_t count = 0; count < 3; ++count) {
      const std::string body =
          R"({"messages":[{"role":"user","content":"What is the capital of France?"}]})";
      const std::string id = "X-Request-Id: a-request-" + std::to_string(count) + "\r\n";
      ASSERT_TRUE(client.send(post_request("/v1/chat/completions", body, id)));
      EXPECT_EQ(client.read_reply().status, 200);
    }
    server.send_signal(is_killed ? SIGKILL : SIGTERM);
    server.wait();
    const json events = read_trace(path);
    ASSERT_TRUE(events.is_array()) << test::contents_of(path);
    std::map<std::string, int> counts;
    std::map<int64_t, std::vector<std::string>> open;  // Of tasks: spans that are not over.
    std::map<int64_t, std::vector<std::pair<double, double>>> threads;
    for (const json& event : events) {
      const std::string name = event["name"], phase = event["ph"];
      ++counts[phase + " " + name];
      if (phase == "b") open[event["id"]].push_back(name);
      if (phase == "e") {
        ASSERT_FALSE(open[event["id"]].empty());
        EXPECT_EQ(open[event["id"]].back(), name);
        open[event["id"]].pop_back();
      }
      if (phase != "X") continue;
      const double begin = event["ts"], end = begin + event["dur"].get<double>();
      // Of a thread each span holds those before it that it overlaps, or lies behind them.
      for (const auto& [other_begin, other_end] : threads[event["tid"]]) {
        const bool holds = begin <= other_begin && other_end <= end + 0.002;
        EXPECT_TRUE(holds || other_end <= begin + 0.002) << event;
      }
      threads[event["tid"]].emplace_back(begin, end);
    }
    EXPECT_EQ(counts["X load"], 1);
    EXPECT_EQ(counts["X load weights"], 1);
    EXPECT_GE(counts["X decode"], 3);
    EXPECT_EQ(counts["b request"], 3);
    EXPECT_EQ(counts["e request"], 3);
    EXPECT_EQ(counts["b queued"], 3);
    EXPECT_EQ(counts["b reading"], 3);
    EXPECT_EQ(counts["e writing"], 3);
    EXPECT_GE(counts["X prompt"], 1);
    for (const auto& [task, spans] : open) EXPECT_TRUE(spans.empty()) << task;
    const std::string text = test::contents_of(path);
    EXPECT_NE(text.find("\"id\":\"a-request-2\""), std::string::npos);
    EXPECT_EQ(text.find("capital"), std::string::npos);
    EXPECT_EQ(text.ends_with("\n]\n"), !is_killed);
  }
}

}  // namespace
}  // namespace cairn::serve::program_test
