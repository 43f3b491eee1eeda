// A server that speaks enough of Redis for a tier, on a Unix socket, and fails as it is told: the
// k-th command in every so many is answered late, cut off, with other bytes, with half of them,
// with what nobody asked for; or what it asks for has been evicted. A thread for each connection.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/listener.h"

namespace cairn::test {

enum class Fault {
  none,
  slow,     // Answers 150 ms later.
  silent,   // Never answers.
  cut,      // Closes the connection in the midst of the reply.
  flip,     // One bit of the bytes is another.
  half,     // The value is only the first half of what was written.
  longer,   // Says that a gigabyte comes.
  list,     // A list of lists.
  endless,  // A line without an end.
  error,    // "OOM command not allowed".
  evict,    // What it asks for has just gone.
  swap,     // The value of another key.
  moved,    // Says that another server has it, where nobody is.
};
inline constexpr Fault kFaults[] = {Fault::slow,  Fault::silent, Fault::cut,  Fault::flip,
                                    Fault::half,  Fault::longer, Fault::list, Fault::endless,
                                    Fault::error, Fault::evict,  Fault::swap, Fault::moved};
inline const char* name_of(Fault fault) {
  constexpr const char* kNames[] = {"none", "slow",    "silent", "cut",   "flip", "half", "longer",
                                    "list", "endless", "error",  "evict", "swap", "moved"};
  return kNames[int(fault)];
}

class FakeServer {
 public:
  explicit FakeServer(const std::string& path)
      : path_(path), listener_(path, [this](int socket) { take(socket); }) {}
  ~FakeServer() { stop(); }

  // As a process that is killed.
  void stop() {
    if (is_closing_.exchange(true)) return;
    listener_.stop();
    ::unlink(path_.c_str());
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
  }

  std::string url() const { return "unix:" + path_; }
  // Each `every`-th command whose name is among `commands` (all: empty) fails, from the `first`-th.
  void fail(Fault fault, int every = 1, const std::string& commands = {}, int first = 1) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    every_ = every;
    first_ = first;
    commands_ = commands;
    asked_ = failed_ = 0;
  }
  int failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }
  int asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::map<std::string, std::string> values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  void set(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    values_.clear();
    ends_.clear();
  }
  void forget(const std::string& key) {
    const std::lock_guard lock(mutex_);
    values_.erase(key);
  }
  // So often each command came.
  std::map<std::string, int> counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Said {
    std::string text;
    bool closes = false;
    int wait_ms = 0;
  };

  void take(int socket) {
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }

  void serve(int socket) {
    std::string input;
    char bytes[65536];
    for (;;) {
      const ssize_t count = ::recv(socket, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      input.append(bytes, size_t(count));
      while (const auto words = take_command(input)) {
        if (!say(socket, answer(*words))) {
          ::shutdown(socket, SHUT_RDWR);
          break;
        }
      }
    }
    const std::lock_guard lock(mutex_);
    std::erase(sockets_, socket);
    ::close(socket);
  }

  bool say(int socket, const Said& said) {
    for (int waited = 0; waited < said.wait_ms && !is_closing_; waited += 10) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return send_all(socket, said.text) && !said.closes;
  }

  // "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n", if all of it is there.
  static std::optional<std::vector<std::string>> take_command(std::string& input) {
    size_t place = 0;
    const auto line = [&](char kind) -> std::optional<size_t> {
      const size_t end = input.find("\r\n", place);
      if (end == std::string::npos || input[place] != kind) return std::nullopt;
      const size_t number = std::stoul(input.substr(place + 1, end - place - 1));
      place = end + 2;
      return number;
    };
    const auto count = line('*');
    if (!count) return std::nullopt;
    std::vector<std::string> words;
    for (size_t word = 0; word < *count; ++word) {
      const auto length = line('$');
      if (!length || input.size() < place + *length + 2) return std::nullopt;
      words.push_back(input.substr(place, *length));
      place += *length + 2;
    }
    input.erase(0, place);
    return words;
  }

  static std::string bulk(const std::string& value) {
    return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
  }

  Said answer(const std::vector<std::string>& words) {
    const std::lock_guard lock(mutex_);
    ++counts_[words[0]];
    const bool is_meant = commands_.empty() ||
                          (" " + commands_ + " ").find(" " + words[0] + " ") != std::string::npos;
    bool fails = false;
    if (fault_ != Fault::none && is_meant) {
      ++asked_;
      fails = asked_ >= first_ && (asked_ - first_) % every_ == 0;
    }
    if (!fails) return {reply(words)};
    ++failed_;
    switch (fault_) {
      case Fault::slow:
        return {reply(words), false, 150};
      case Fault::silent:
        return {"", true, 60000};
      case Fault::longer:
        return {"$1073741824\r\nabc"};
      case Fault::list:
        return {"*2\r\n*1\r\n:1\r\n:2\r\n"};
      case Fault::endless:
        return {"+" + std::string(100000, 'x')};
      case Fault::error:
        return {"-OOM command not allowed when used memory > 'maxmemory'.\r\n"};
      case Fault::moved:
        return {"-MOVED 1 127.0.0.1:1\r\n"};
      case Fault::evict:
        if (words.size() > 1) values_.erase(words[1]);
        return {reply(words)};
      case Fault::swap:
        if (words.size() > 1 && values_.contains(words[1])) {
          for (const auto& [key, value] : values_) {
            if (key != words[1] && words[0].starts_with("GET")) return {bulk(value)};
          }
        }
        return {reply(words)};
      default:
        break;
    }
    std::string text = reply(words);
    if (fault_ == Fault::cut) return {text.substr(0, text.size() / 2), true};
    const bool is_value = text.starts_with("$") && text.size() > 10;
    if (!is_value) return {text};
    if (fault_ == Fault::half) {
      const std::string value = values_.at(words[1]);
      return {bulk(value.substr(0, value.size() / 2))};
    }
    text[text.size() / 2] = char(text[text.size() / 2] ^ 1);
    return {text};
  }

  bool is_there(const std::string& key) {
    const auto end = ends_.find(key);
    if (end != ends_.end() && Clock::now() > end->second) {
      values_.erase(key);
      ends_.erase(end);
    }
    return values_.contains(key);
  }

  void keep(const std::string& key, const std::string& ms) {
    ends_[key] = Clock::now() + std::chrono::milliseconds(std::stol(ms));
  }

  std::string reply(const std::vector<std::string>& words) {
    const std::string& name = words[0];
    if (name == "PING") return "+PONG\r\n";
    if (name == "AUTH") {
      return words.back() == "secret" ? "+OK\r\n" : "-WRONGPASS invalid password\r\n";
    }
    const std::string& key = words[1];
    if (name == "GET" || name == "GETEX") {
      if (!is_there(key)) return "$-1\r\n";
      if (name == "GETEX") keep(key, words[3]);
      return bulk(values_[key]);
    }
    if (name == "EXISTS") return is_there(key) ? ":1\r\n" : ":0\r\n";
    if (name == "PEXPIRE") {
      if (!is_there(key)) return ":0\r\n";
      keep(key, words[2]);
      return ":1\r\n";
    }
    if (name == "PTTL") {
      if (!is_there(key)) return ":-2\r\n";
      const auto left = ends_[key] - Clock::now();
      return ":" + std::to_string(left / std::chrono::milliseconds(1)) + "\r\n";
    }
    if (name == "PSETEX") {
      values_[key] = words[3];
      keep(key, words[2]);
      return "+OK\r\n";
    }
    if (name == "SET") {  // SET key value [NX] PX ms
      const bool only_new = words[3] == "NX";
      if (only_new && is_there(key)) return "$-1\r\n";
      values_[key] = words[2];
      keep(key, words.back());
      return "+OK\r\n";
    }
    return "-ERR unknown command\r\n";
  }

  std::string path_;
  std::atomic<bool> is_closing_{false};
  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::map<std::string, Clock::time_point> ends_;
  std::map<std::string, int> counts_;
  std::vector<int> sockets_;
  std::list<std::thread> threads_;
  Fault fault_ = Fault::none;
  int every_ = 1, first_ = 1, asked_ = 0, failed_ = 0;
  std::string commands_;
  Listener listener_;
};

}  // namespace cairn::test
