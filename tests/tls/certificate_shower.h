// For tests: a server that shows any certificate, also one that no server of ours would begin with.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/serve/certificates.h"

namespace cairn::test {

// Hears what clients say then.
class CertificateShower {
 public:
  explicit CertificateShower(const serve::Pair& pair) : context_(SSL_CTX_new(TLS_server_method())) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_, pair.certificate.c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_, pair.key.c_str(), SSL_FILETYPE_PEM), 1);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 4), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~CertificateShower() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    SSL_CTX_free(context_);
  }

  std::string port() const { return std::to_string(port_); }
  bool has_heard() const { return has_heard_; }

 private:
  void run() {
    ::signal(SIGPIPE, SIG_IGN);
    for (;;) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (client < 0) return;
      SSL* const session = SSL_new(context_);
      SSL_set_fd(session, client);
      char byte = 0;
      if (SSL_accept(session) == 1 && SSL_read(session, &byte, 1) == 1) has_heard_ = true;
      SSL_free(session);
      ::close(client);
    }
  }

  SSL_CTX* context_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> has_heard_{false};
  std::thread thread_;
};

}  // namespace cairn::test
