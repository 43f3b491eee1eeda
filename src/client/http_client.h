// Requests to a server, over TCP, TLS or a Unix socket: one connection each, replies whole or piece
// by piece. Knows nothing of what is asked. Only http_client.cpp includes Boost. Thread rule: one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tls/server_trust.h"

namespace cairn::client {

// Where a server is.
struct ServerUrl {
  std::string host;  // A name or an address; empty: a Unix socket.
  std::string port = "80";
  std::string unix_path = {};  // Of the socket.
  bool is_secure = false;      // Under TLS.

  // "http://127.0.0.1:8080", "127.0.0.1:8080", "https://host", "unix:/run/cairn.sock". Errors:
  // invalid_argument.
  static Result<ServerUrl> parse(std::string_view text);
};

class HttpClient {
 public:
  // `key`: shown with each request; empty: none is. `trust`: null where the URL is not secure.
  HttpClient(ServerUrl url, std::string key,
             std::shared_ptr<const tls::ServerTrust> trust = nullptr)
      : url_(std::move(url)), key_(std::move(key)), trust_(std::move(trust)) {}

  struct Reply {
    int status = 0;
    std::string body;  // But for what on_bytes has taken.
  };
  struct Hooks {
    // Takes the bytes of a reply whose status is 200; none: they are the body.
    std::function<void(std::string_view bytes)> on_bytes = {};
    // Asked ten times a second, and after each piece of a reply: whether to let go of the request.
    std::function<bool()> wants_end = {};
  };
  // `body`: JSON, of POST. Errors: not_found: no connection, and nothing was asked; io: it broke
  // off; invalid_data: the server's certificate is not believed, and nothing was asked; cancelled:
  // wants_end().
  Result<Reply> send(std::string_view method, const std::string& path, std::string body,
                     const Hooks& hooks) const;

 private:
  ServerUrl url_;
  std::string key_;
  std::shared_ptr<const tls::ServerTrust> trust_;
};

}  // namespace cairn::client
