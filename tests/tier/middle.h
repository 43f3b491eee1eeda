// A machine in the middle: whoever asks it for records is passed on to one that lends them, but the
// k-th reply goes wrong as it is told. A thread for each connection, and one for what it replies.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "tests/listener.h"
#include "tests/tier/fake_server.h"
#include "tier/tier_address.h"

namespace cairn::test {

class Middle {
 public:
  ~Middle() {
    is_closing_ = true;
    listener_.stop();
    {
      const std::lock_guard lock(mutex_);
      for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
    for (const int socket : sockets_) ::close(socket);
  }

  std::string address() const { return "127.0.0.1:" + listener_.port(); }
  void pass_on_to(const std::string& address) {
    to_ = tier::parse_socket_address("", address).value();
  }
  // The `first`-th reply of all, and each `every`-th behind it.
  void fail(Fault fault, int first, int every = 1 << 30) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    first_ = first;
    every_ = every;
    replied_ = failed_ = 0;
  }
  int failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  void take(int asker) {
    const int lender = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)::connect(lender, reinterpret_cast<sockaddr*>(&to_.bytes), to_.size);
    const std::lock_guard lock(mutex_);
    sockets_.insert(sockets_.end(), {asker, lender});
    threads_.emplace_back([asker, lender] { pass(asker, lender); });
    threads_.emplace_back([this, asker, lender] { reply(asker, lender); });
  }

  static void pass(int from, int to) {
    char bytes[65536];
    for (;;) {
      const ssize_t count = ::recv(from, bytes, sizeof bytes, 0);
      if (count <= 0 || !send_all(to, {bytes, size_t(count)})) break;
    }
    ::shutdown(to, SHUT_RDWR);
  }

  // "+OK\r\n", ":1\r\n", "$-1\r\n", "$3\r\nabc\r\n", if all of it is there.
  static size_t size_of_reply(const std::string& input) {
    const size_t end = input.find("\r\n");
    if (end == std::string::npos) return 0;
    if (input[0] != '$' || input[1] == '-') return end + 2;
    const size_t size = end + 2 + std::stoul(input.substr(1, end - 1)) + 2;
    return input.size() < size ? 0 : size;
  }

  void reply(int asker, int lender) {
    std::string input;
    char bytes[65536];
    for (bool goes_on = true; goes_on;) {
      const ssize_t count = ::recv(lender, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      input.append(bytes, size_t(count));
      while (const size_t size = goes_on ? size_of_reply(input) : 0) {
        goes_on = say(asker, input.substr(0, size));
        input.erase(0, size);
      }
    }
    ::shutdown(asker, SHUT_RDWR);
    ::shutdown(lender, SHUT_RDWR);
  }

  bool say(int asker, std::string text) {
    Fault fault = Fault::none;
    {
      const std::lock_guard lock(mutex_);
      ++replied_;
      if (replied_ >= first_ && (replied_ - first_) % every_ == 0) fault = fault_;
      failed_ += int(fault != Fault::none);
    }
    const bool is_value = text.starts_with("$") && text.size() > 10;
    switch (fault) {
      case Fault::slow:
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        break;
      case Fault::silent:
        while (!is_closing_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        return false;
      case Fault::cut:
        send_all(asker, text.substr(0, text.size() / 2));
        return false;
      case Fault::flip:
        if (is_value) text[text.size() / 2] = char(text[text.size() / 2] ^ 1);
        break;
      case Fault::half: {
        if (!is_value) break;
        const size_t begin = text.find("\r\n") + 2, half = (text.size() - begin - 2) / 2;
        text = "$" + std::to_string(half) + "\r\n" + text.substr(begin, half) + "\r\n";
        break;
      }
      case Fault::longer:
        text = "$1073741824\r\nabc";
        break;
      case Fault::list:
        text = "*2\r\n*1\r\n:1\r\n:2\r\n";
        break;
      case Fault::endless:
        text = "+" + std::string(100000, 'x');
        break;
      case Fault::error:
        text = "-BUSY others are lent to\r\n";
        break;
      case Fault::evict:
        text = is_value ? "$-1\r\n" : ":0\r\n";
        break;
      case Fault::moved:
        text = "-MOVED 1 127.0.0.1:1\r\n";
        break;
      case Fault::swap:  // What the one before has got.
        std::swap(text, last_value_);
        if (text.empty()) text = "$3\r\nabc\r\n";
        break;
      default:
        break;
    }
    if (is_value && fault == Fault::none) last_value_ = text;
    return send_all(asker, text);
  }

  std::string last_value_;
  tier::SocketAddress to_;
  std::atomic<bool> is_closing_{false};
  mutable std::mutex mutex_;
  std::list<int> sockets_;
  std::list<std::thread> threads_;
  Fault fault_ = Fault::none;
  int first_ = 1, every_ = 1, replied_ = 0, failed_ = 0;
  Listener listener_{[this](int asker) { take(asker); }};
};

}  // namespace cairn::test
