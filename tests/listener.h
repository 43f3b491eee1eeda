// For tests: a socket that listens, and a thread that hands on each connection that comes.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace cairn::test {

class Listener {
 public:
  // Whose thread calls it, and whose the connection is then.
  using Take = std::function<void(int socket)>;
  // At a port of this machine that is free.
  explicit Listener(Take take) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listen(own, std::move(take));
    socklen_t size = sizeof own;
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size), 0);
    port_ = std::to_string(ntohs(own.sin_port));
  }
  Listener(const std::string& unix_path, Take take) {
    sockaddr_un own = {};
    own.sun_family = AF_UNIX;
    std::memcpy(own.sun_path, unix_path.c_str(), unix_path.size());
    listen(own, std::move(take));
  }
  ~Listener() { stop(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Nobody comes any more.
  void stop() {
    if (!thread_.joinable()) return;
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  const std::string& port() const { return port_; }

 private:
  template <class Address>
  void listen(const Address& address, Take take) {
    const auto* const bytes = reinterpret_cast<const sockaddr*>(&address);
    socket_ = ::socket(bytes->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(socket_, bytes, sizeof address), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
    thread_ = std::thread([socket = socket_, take = std::move(take)] {
      for (int come; (come = ::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) take(come);
    });
  }

  int socket_ = -1;
  std::string port_;
  std::thread thread_;
};

inline bool send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    text.remove_prefix(size_t(count));
  }
  return true;
}

}  // namespace cairn::test
