// Requests to a server, over TCP or a Unix socket: one connection each, replies whole or piece by
// piece. Knows nothing of what is asked. Only http_client.cpp includes Boost. Thread rule: one
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::cli {

// Where a server is.
struct ServerUrl {
  std::string host;  // A name or an address; empty: a Unix socket.
  std::string port = "80";
  std::string unix_path = {};  // Of the socket.

  // "http://127.0.0.1:8080", "127.0.0.1:8080", "unix:/run/cairn.sock". Errors: invalid_argument;
  // unsupported: https.
  static Result<ServerUrl> parse(std::string_view text);
};

class HttpClient {
 public:
  // `key`: shown with each request; empty: none is.
  HttpClient(ServerUrl url, std::string key) : url_(std::move(url)), key_(std::move(key)) {}

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
  // off; cancelled: wants_end().
  Result<Reply> send(std::string_view method, const std::string& path, std::string body,
                     const Hooks& hooks) const;

 private:
  ServerUrl url_;
  std::string key_;
};

}  // namespace cairn::cli
