// One connection: request after request, each answered before the next one is read. Included by
// server.cpp and connection.cpp alone, since it shows Boost.Asio. Thread rule: the I/O thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/head.h"
#include "serve/http/server.h"
#include "serve/http/stream.h"

namespace cairn::serve::http {

// What connections share.
struct Shared {
  boost::asio::io_context* io;
  boost::asio::thread_pool* workers;
  Handler* handler;
  Limits limits;
  std::shared_ptr<const tls::ServerIdentity>
      tls;                  // Of connections that come; null: they are plain.
  size_t bodies_bytes = 0;  // Of requests that are being read or answered.
  uint64_t request_count = 0;
  ServerPhase phase = ServerPhase::serving;  // If not serving, connections end behind their reply.
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = Stream::Socket;

  Connection(Socket socket, Shared* shared, std::string address, bool is_local);

  // Until it is closed. Never throws.
  boost::asio::awaitable<void> serve();
  // Where no request is being answered: at once; else behind the reply.
  void drain();
  // Where a reply is sent that has no end: at once.
  void close_endless();
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  // What is sent of a reply.
  struct Pieces {
    std::string body, wire;
    bool has_head = false, is_chunked = false;
  };
  // A part of the bytes that all bodies may have together.
  class BodyRoom {
   public:
    explicit BodyRoom(Shared* shared) : shared_(shared) {}
    ~BodyRoom() { release(); }
    BodyRoom(const BodyRoom&) = delete;
    BodyRoom& operator=(const BodyRoom&) = delete;
    bool grow_to(size_t bytes);
    void release();

   private:
    Shared* shared_;
    size_t taken_ = 0;
  };

  // The handshake, where there is TLS. False where it failed.
  boost::asio::awaitable<bool> begin();
  // False where the connection ends behind it.
  boost::asio::awaitable<bool> serve_one();
  // A refusal where the bytes are no request; is_cut_ where none came.
  boost::asio::awaitable<std::unique_ptr<Reply>> read_head(Request& request);
  boost::asio::awaitable<std::unique_ptr<Reply>> read_body(Request& request, BodyRoom& room);
  // False where nothing comes any more.
  boost::asio::awaitable<bool> read_more();
  boost::asio::awaitable<std::unique_ptr<Reply>> answer(Request& request);
  // Until all of the reply is sent, or nobody wants it any more.
  boost::asio::awaitable<void> send(const Request& request, Reply& reply);
  boost::asio::awaitable<void> send_or_cut(const Request& request, Reply& reply, Pieces& pieces);
  boost::asio::awaitable<void> send_rest(const Request& request, Reply& reply, Pieces& pieces);
  // Until the client goes away.
  boost::asio::awaitable<void> watch();
  // Whether all of it was taken.
  boost::asio::awaitable<bool> write(std::string_view bytes);
  boost::asio::awaitable<bool> wait_for_bell(bool has_comment);
  // So that a client that is still sending reads the reply.
  boost::asio::awaitable<void> linger();
  std::string head_text(const Request& request, const ReplyHead& head,
                        std::optional<size_t> length) const;
  std::function<void()> waker();
  // The connection is cut after `seconds`, unless this or disarm() is called before.
  void arm(double seconds);
  void disarm() { deadline_.cancel(); }

  Stream stream_;
  Shared* shared_;
  std::string address_;
  bool is_local_;
  std::string input_;  // What was read and not used.
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer bell_;  // Rings when the reply may have more.
  bool is_rung_ = false;
  bool is_busy_ = false;     // With a request whose first byte has come.
  bool is_endless_ = false;  // The reply that is being sent.
  bool closes_ = false;      // Behind the reply.
  bool is_cut_ = false;      // The client went away, or took too long.
  Clock::time_point begin_;  // Of the request.
  Clock::time_point last_sent_;
  int sent_status_ = 0;
  uint64_t sent_bytes_ = 0;  // Of the reply's body.
  bool is_sent_ = false;     // All of the reply.
  bool has_served_ = false;  // A request before this one.
  bool lacks_tls_ = false;   // It is plain, and should not be.
};

}  // namespace cairn::serve::http
