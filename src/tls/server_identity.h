// A server's certificate and its key, read from files: what connections under TLS begin with. Knows
// OpenSSL and no sockets. Thread-safe: constant once read.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's.
struct ssl_st;

namespace cairn::tls {

class ServerIdentity {
 public:
  // Both in PEM: the server's own certificate first, then those that lead to one that clients know;
  // the key without a password. TLS 1.2 at least, with forward secrecy, without renegotiation.
  // Errors: what read_file() says; invalid_argument, with the file's name: no certificate or key in
  // it, one that is not valid today, a key of another certificate, one that is too weak.
  static Result<std::shared_ptr<const ServerIdentity>> read(const std::string& certificate_path,
                                                            const std::string& key_path);
  ~ServerIdentity();
  ServerIdentity(const ServerIdentity&) = delete;
  ServerIdentity& operator=(const ServerIdentity&) = delete;

  // For one connection; the caller's. It outlives this. Null where there is no memory.
  ssl_st* new_session() const;

 private:
  explicit ServerIdentity(ssl_ctx_st* context) : context_(context) {}

  ssl_ctx_st* context_;
};

}  // namespace cairn::tls
