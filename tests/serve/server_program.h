// For tests: `cairn serve`, or `cairn route`, as a process of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/serve/bare_client.h"

namespace cairn::serve {

// A server as a process of its own, on a port that is free.
class ServerProgram {
 public:
  // `variables`: NAME=VALUE, beside those of the test.
  explicit ServerProgram(const std::vector<std::string>& more = {},
                         const std::vector<std::string>& variables = {},
                         const std::string& command = "serve") {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    std::vector<std::string> words = {"/usr/bin/env"};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {CAIRN_PROGRAM, command, "--request-log", "none"});
    if (std::find(more.begin(), more.end(), "--port") == more.end()) {
      words.insert(words.end(), {"--port", "0"});
    }
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::execv(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    errors_ = ends[0];
    if (std::find(more.begin(), more.end(), "--unix-socket") != more.end()) {
      line_with(": unix:");
      return;
    }
    constexpr std::string_view kUrl = "://127.0.0.1:";
    const std::string line = line_with(kUrl);
    port_ =
        uint16_t(std::atoi(line.c_str() + std::min(line.find(kUrl) + kUrl.size(), line.size())));
    EXPECT_NE(port_, 0) << line;
  }
  ~ServerProgram() {
    if (process_ > 0) {
      send_signal(SIGKILL);
      wait();
    }
    ::close(errors_);
  }

  pid_t process() const { return process_; }
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

}  // namespace cairn::serve
