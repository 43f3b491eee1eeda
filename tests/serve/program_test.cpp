// `cairn serve` from outside: what it refuses to start with, and how it ends. Covers
// src/cli/commands/serve.cpp.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/serve/bare_client.h"
#include "tests/serve/certificates.h"

namespace cairn::serve::program_test {
namespace {

using cli::Finished;
using cli::run_program;

// A server as a process of its own, on a port that is free.
class Program {
 public:
  explicit Program(std::vector<std::string> more = {}) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::vector<std::string> words = {CAIRN_PROGRAM, "serve",         "--port",
                                      "0",           "--request-log", "none"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::execv(CAIRN_PROGRAM, arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    errors_ = ends[0];
    constexpr std::string_view kUrl = "://127.0.0.1:";
    const std::string line = line_with(kUrl);
    port_ =
        uint16_t(std::atoi(line.c_str() + std::min(line.find(kUrl) + kUrl.size(), line.size())));
    EXPECT_NE(port_, 0) << line;
  }
  ~Program() {
    if (process_ > 0) {
      send_signal(SIGKILL);
      wait();
    }
    ::close(errors_);
  }

  uint16_t port() const { return port_; }
  BareClient client() const { return BareClient(port_); }
  // Waits until the program says such a line on stderr.
  std::string line_with(std::string_view text) const {
    std::string line;
    char byte = 0;
    while (::read(errors_, &byte, 1) == 1) {
      line += byte;
      if (byte != '\n') continue;
      if (line.find(text) != std::string::npos) return line;
      line.clear();
    }
    ADD_FAILURE() << "it never said " << text;
    return {};
  }
  void send_signal(int signal) const { ::kill(process_, signal); }
  // The exit code, or minus the signal.
  int wait() {
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t process_ = -1;
  int errors_ = -1;
  uint16_t port_ = 0;
};

std::string endless_stream() {
  return post_request("/v1/chat/completions",
                      R"({"messages":[{"role":"user","content":"Hello"}],"stream":true,)"
                      R"("ignore_eos":true,"max_tokens":3000})");
}

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
  EXPECT_NE(half.err.find("expected both"), std::string::npos) << half.err;
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
  Program program({"--api-key-file", path});
  BareClient asking = program.client();
  const auto status = [&](const std::string& key) {
    EXPECT_TRUE(asking.send(list_with(key)));
    return asking.read_reply().status;
  };
  EXPECT_EQ(status(old), 200);
  EXPECT_EQ(status(later), 401);
  write_keys(path, later + "\n");
  EXPECT_EQ(status(old), 200) << "before it was told";
  program.send_signal(SIGHUP);
  program.line_with("read again");
  EXPECT_EQ(status(later), 200);
  EXPECT_EQ(status(old), 401);
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
  Program program({"--tls-cert", pair.certificate, "--tls-key", pair.key});
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
  Program program({"--alias", "my-model"});
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(post_request(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"What is the capital of France?"}]})")));
  const nlohmann::json reply = nlohmann::json::parse(asking.read_reply().body);
  EXPECT_EQ(reply["model"], "my-model");
  EXPECT_EQ(reply["choices"][0]["message"]["content"], "The capital of France is Paris.");
}

TEST(ServeProgram, FinishesWhatIsBeingAnswered) {
  Program program;
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(endless_stream()));
  ASSERT_TRUE(asking.wait_for("\"delta\""));
  program.send_signal(SIGTERM);
  const BareReply reply = asking.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(program.wait(), 0);
}

TEST(ServeProgram, EndsAtOnceAtTheSecondSignal) {
  Program program({"-c", "100000"});
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(post_request(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"Hello"}],"stream":true,"ignore_eos":true})")));
  ASSERT_TRUE(asking.wait_for("\"delta\""));
  program.send_signal(SIGTERM);
  // Until the first one has been seen: nobody is let in any more.
  while (program.client().is_connected()) ::usleep(1000);
  program.send_signal(SIGTERM);
  EXPECT_EQ(program.wait(), 130);
}

TEST(ServeProgram, KeysComeFromTheEnvironment) {
  ASSERT_EQ(::setenv("CAIRN_API_KEY", "a-key-of-the-environment", 1), 0);
  Program program;
  ASSERT_EQ(::unsetenv("CAIRN_API_KEY"), 0);
  BareClient asking = program.client();
  ASSERT_TRUE(asking.send(get_request("/v1/models")));
  EXPECT_EQ(asking.read_reply().status, 401);
  ASSERT_TRUE(
      asking.send(get_request("/v1/models", "Authorization: Bearer a-key-of-the-environment\r\n")));
  EXPECT_EQ(asking.read_reply().status, 200);
}

}  // namespace
}  // namespace cairn::serve::program_test
