// A real redis-server on a Unix socket in a folder of the test, with the settings of docs/tier.md.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace cairn::test {

class RedisServer {
 public:
  // `more`: further settings. Whether it runs is said by is_running().
  explicit RedisServer(const std::string& folder, const std::vector<std::string>& more = {})
      : path_(folder + "/redis.sock") {
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      "0",
                                      "--unixsocket",
                                      path_,
                                      "--unixsocketperm",
                                      "700",
                                      "--save",
                                      "",
                                      "--appendonly",
                                      "no",
                                      "--dir",
                                      folder,
                                      "--maxmemory",
                                      "256mb",
                                      "--maxmemory-policy",
                                      "allkeys-lfu",
                                      "--loglevel",
                                      "warning",
                                      "--logfile",
                                      folder + "/redis.log"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    if (::posix_spawnp(&process_, "redis-server", nullptr, nullptr, pointers.data(), environ) != 0)
      process_ = -1;
    for (int tries = 0; process_ > 0 && tries < 500 && !answers(); ++tries) {
      if (::waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  ~RedisServer() { kill(); }

  bool is_running() const { return process_ > 0; }
  std::string url() const { return "unix:" + path_; }
  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  // As one that hangs, and goes on.
  void stop() { ::kill(process_, SIGSTOP); }
  void go_on() { ::kill(process_, SIGCONT); }

 private:
  bool answers() const {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size());
    const auto* const bytes = reinterpret_cast<const sockaddr*>(&address);
    const bool is_there = ::connect(socket, bytes, sizeof address) == 0;
    ::close(socket);
    return is_there;
  }

  std::string path_;
  pid_t process_ = -1;
};

}  // namespace cairn::test
