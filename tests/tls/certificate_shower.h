// For tests: a server that shows any certificate, also one that no server of ours would begin with.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "tests/listener.h"
#include "tests/serve/certificates.h"

namespace cairn::test {

// Hears what clients say then.
class CertificateShower {
 public:
  explicit CertificateShower(const serve::Pair& pair) : context_(SSL_CTX_new(TLS_server_method())) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_, pair.certificate.c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_, pair.key.c_str(), SSL_FILETYPE_PEM), 1);
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~CertificateShower() {
    listener_.stop();
    SSL_CTX_free(context_);
  }

  const std::string& port() const { return listener_.port(); }
  bool has_heard() const { return has_heard_; }

 private:
  void take(int client) {
    SSL* const session = SSL_new(context_);
    SSL_set_fd(session, client);
    char byte = 0;
    if (SSL_accept(session) == 1 && SSL_read(session, &byte, 1) == 1) has_heard_ = true;
    SSL_free(session);
    ::close(client);
  }

  SSL_CTX* context_;
  std::atomic<bool> has_heard_{false};
  Listener listener_{[this](int client) { take(client); }};
};

}  // namespace cairn::test
