// For tests whose servers must be told their port before they run.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace cairn::test {

// A free port of the loopback. While this is there, the system gives the port to nobody who asks
// for any; a server that names the port can listen there (with SO_REUSEADDR, as servers do).
class HeldPort {
 public:
  HeldPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const bytes = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, bytes, size), 0);
    EXPECT_EQ(::getsockname(socket_, bytes, &size), 0);
    name_ = std::to_string(ntohs(address.sin_port));
  }
  ~HeldPort() { ::close(socket_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  const std::string& name() const { return name_; }

 private:
  int socket_;
  std::string name_;
};

}  // namespace cairn::test
