// Connections: accepts them, reads requests, has them answered and writes replies, within limits of
// time and size. Knows neither routes nor JSON. Only server.cpp and connection.cpp include
// Boost.Asio. Thread rule: run() has the I/O thread; stop() may be called by any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serve/http/message.h"
#include "serve/http/reply.h"
#include "tls/server_identity.h"

namespace cairn::serve::http {

// What a server's requests are answered by.
class Handler {
 public:
  virtual ~Handler() = default;

  // Looks at the head alone, which it may complete; a reply is a refusal, and the body is not read.
  // On the I/O thread: takes microseconds.
  virtual std::unique_ptr<Reply> admit(Request& request) = 0;
  // Whether answer() takes microseconds too, so that it may be called on the I/O thread.
  virtual bool is_quick(const Request& request) const = 0;
  // On a worker, or where is_quick(). May take the body away. Never null.
  virtual std::unique_ptr<Reply> answer(Request& request) = 0;
  // What is sent where the bytes are no request, too many, or too many at a time. `head`: without a
  // path where none could be read.
  virtual std::unique_ptr<Reply> refuse(const RequestHead& head, int status,
                                        std::string_view message) = 0;

  // Of a request that has been replied to; for the log. On the I/O thread. `request` has its head
  // and id; `seconds` from its first byte on. `status`: 499 where not all of it was sent.
  struct Outcome {
    int status = 0;
    uint64_t bytes = 0;  // Of the reply's body.
    double seconds = 0;
  };
  virtual void ended(const Request& request, const Reply& reply, const Outcome& outcome) = 0;
};

struct Limits {
  size_t body_bytes_max = size_t(32) << 20;
  size_t bodies_bytes_max = size_t(256) << 20;  // Of all requests that are being read or answered.
  double head_seconds = 10;
  double body_seconds = 30;  // Beyond what body_bytes_per_second takes.
  double body_bytes_per_second = 1024;
  double idle_seconds = 60;     // Between requests.
  double write_seconds = 30;    // For a reader that takes nothing.
  double comment_seconds = 15;  // Between the comments of a silent stream.
  double linger_seconds = 2;    // For what a client goes on sending behind a refusal.
  double drain_seconds = 0;     // In which a server that was told to stop takes new requests.
  int32_t connections_max = 1024;
  int32_t connections_per_address_max = 64;  // Of addresses that are not this machine's …
  std::vector<std::string> proxies = {};     // … nor one of these, which ask for many clients.
  int32_t worker_count = 4;
};

struct Address {
  std::string host = "127.0.0.1";                       // An address, or localhost.
  uint16_t port = 8080;                                 // 0: one that is free.
  std::string unix_path = {};                           // Instead, where it is not empty.
  std::shared_ptr<const tls::ServerIdentity> tls = {};  // Null: connections are plain.
};

// Whether only this machine can reach it. Errors: invalid_argument, a host that is no address.
Result<bool> is_loopback(const std::string& host);

class Server {
 public:
  // Listens. `handler` must outlive the server. Errors: invalid_argument, io: it cannot listen
  // there.
  static Result<std::unique_ptr<Server>> listen(const Address& address, const Limits& limits,
                                                Handler* handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "http://127.0.0.1:8080", "https://…", "unix:/run/cairn.sock".
  const std::string& url() const;
  uint16_t port() const;

  // As a program does, before it says that it listens: from then on the first SIGTERM or SIGINT
  // begins the phases after `serving`: what is being answered is finished, and as long as that
  // takes whoever looks is still let in; the second one ends all. REQUIRES: before run().
  void catch_signals();
  // Called on the I/O thread at each SIGHUP; without it SIGHUP is left alone. REQUIRES: before
  // run().
  void catch_hangups(std::function<void()> reload);
  // Serves until it is stopped. Whether everything was finished.
  bool run();
  // For connections that come from now on. REQUIRES: there was one before; the I/O thread.
  void set_tls(std::shared_ptr<const tls::ServerIdentity> tls);
  // As a signal does.
  void stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace cairn::serve::http
