// A connection's bytes, plain or under TLS: the same calls for both, which cost a plain connection
// nothing more. One read and one write may go on at a time. Included by connection.h alone, since
// it shows Boost.Asio. Thread rule: the I/O thread.
#pragma once

#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "tls/server_identity.h"

namespace cairn::serve::http {

// Errors come as values.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

class Stream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Moved = boost::asio::awaitable<std::tuple<boost::system::error_code, size_t>>;

  explicit Stream(Socket socket) : socket_(std::move(socket)) {}

  enum class Begin : uint8_t { tls, plain, failed };
  // The handshake. Plain: the client does not speak TLS; its bytes can be read as they are.
  boost::asio::awaitable<Begin> begin(const tls::ServerIdentity& tls) {
    uint8_t first = 0;
    boost::system::error_code error;
    socket_.non_blocking(true, error);
    do {
      std::tie(error) = co_await socket_.async_wait(Socket::wait_read, kAwait);
      if (error) co_return Begin::failed;
      const size_t count = socket_.receive(boost::asio::buffer(&first, 1), MSG_PEEK, error);
      if (!error && count == 0) co_return Begin::failed;
    } while (error == boost::asio::error::would_block);
    if (error) co_return Begin::failed;
    constexpr uint8_t kHandshake = 22;  // What the first byte of the first record says.
    if (first != kHandshake) co_return Begin::plain;
    ssl_st* const session = tls.new_session();
    if (session == nullptr) co_return Begin::failed;
    tls_.emplace(socket_, session);
    std::tie(error) = co_await tls_->async_handshake(boost::asio::ssl::stream_base::server, kAwait);
    co_return error ? Begin::failed : Begin::tls;
  }

  Moved read_some(boost::asio::mutable_buffer place) {
    return tls_ ? tls_->async_read_some(place, kAwait) : socket_.async_read_some(place, kAwait);
  }
  Moved write_some(boost::asio::const_buffer bytes) {
    return tls_ ? tls_->async_write_some(bytes, kAwait) : socket_.async_write_some(bytes, kAwait);
  }
  // As they come from the client, whatever they mean.
  Moved read_raw(boost::asio::mutable_buffer place) {
    return socket_.async_read_some(place, kAwait);
  }
  // So that the client knows that nothing was cut off.
  boost::asio::awaitable<void> end_sending() {
    boost::system::error_code ignored;
    if (tls_) std::tie(ignored) = co_await tls_->async_shutdown(kAwait);
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  // Whether the client is told, where the connection is closed, that it is not for the end of what
  // was sent. Unix sockets have no way to say so.
  void reset_on_close(bool resets) {
    boost::system::error_code ignored;
    socket_.set_option(boost::asio::socket_base::linger(resets, 0), ignored);
  }
  void close() {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

 private:
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace cairn::serve::http
