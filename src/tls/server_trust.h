// Which servers a client believes: certificates of known authorities, for the very name or address
// that was asked for. Knows OpenSSL and no sockets. Thread-safe: constant once read.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

struct ssl_ctx_st;  // OpenSSL's.
struct ssl_st;

namespace cairn::tls {

class ServerTrust {
 public:
  // The authorities of this system; or, where a path is given, those of that file alone, in PEM.
  // TLS 1.2 at least. Errors: what read_file() says; invalid_argument: no certificate in it.
  static Result<std::shared_ptr<const ServerTrust>> read(const std::string& authority_path);
  ~ServerTrust();
  ServerTrust(const ServerTrust&) = delete;
  ServerTrust& operator=(const ServerTrust&) = delete;

  // For one connection to this name or address; the caller's. Its handshake fails unless the
  // server's certificate is believed. Null where there is no memory.
  ssl_st* new_session(const std::string& host) const;
  // After a handshake that failed: why the certificate was not believed, with what was expected and
  // what was found; Ok where it was not for that.
  Status refusal(ssl_st* session, const std::string& host) const;

 private:
  ServerTrust(ssl_ctx_st* context, std::string authority_path)
      : context_(context), authority_path_(std::move(authority_path)) {}

  ssl_ctx_st* context_;
  std::string authority_path_;  // Empty: the system's.
};

}  // namespace cairn::tls
