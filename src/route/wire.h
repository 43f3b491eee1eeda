// A connection to a node, over TCP, TLS or a Unix socket: opened within a time, closed by whoever
// wants it gone. Included by node_link.cpp alone, since it shows Boost.Asio. Thread rule: the
// link's thread.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/http_client.h"
#include "route/name_lookup.h"
#include "tls/server_trust.h"

namespace cairn::route {

// Errors come as values.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

class Wire : public std::enable_shared_from_this<Wire> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  using executor_type = Socket::executor_type;

  explicit Wire(boost::asio::io_context* io) : io_(*io), socket_(*io), deadline_(*io), bell_(*io) {}

  // Why there is none; empty: there is one. Nothing has been sent then.
  boost::asio::awaitable<std::string> open(client::ServerUrl url, const tls::ServerTrust* trust,
                                           NameLookup* names, double seconds) {
    arm(seconds);
    const std::vector<Endpoint> endpoints = co_await endpoints_of(url, *names);
    boost::system::error_code error;
    if (endpoints.empty()) error = why_there_is_none();
    for (const Endpoint& endpoint : endpoints) {
      if (is_closed_) break;
      boost::system::error_code ignored;
      socket_.close(ignored);
      std::tie(error) = co_await socket_.async_connect(endpoint, kAwait);
      if (!error) break;
    }
    lacks_means_ = is_of_this_machine(error);
    std::string why = error ? error.message() : std::string();
    if (why.empty() && !url.host.empty()) watch_peer();
    if (why.empty() && url.is_secure) why = co_await begin_tls(url, trust);
    if (is_closed_) co_return "it took too long";
    // The time may be over already and not yet noticed: from now on it counts no more.
    deadline_.expires_at(std::chrono::steady_clock::time_point::max());
    co_return why;
  }
  // open() failed since this machine has no room for another connection, whatever the node does.
  bool lacks_means() const { return lacks_means_; }
  // It is closed after so long.
  void arm(double seconds) {
    deadline_.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(seconds)));
    deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const std::shared_ptr<Wire> self = error ? nullptr : weak.lock();
      if (self != nullptr && self->deadline_.expiry() <= std::chrono::steady_clock::now()) {
        self->close();
      }
    });
  }
  void close() {
    is_closed_ = true;
    bell_.cancel();
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

  // As a stream has them.
  executor_type get_executor() { return socket_.get_executor(); }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, size_t)>(
        [this](auto handler, const Buffers& these) {
          if (tls_) {
            tls_->async_read_some(these, std::move(handler));
          } else {
            socket_.async_read_some(these, std::move(handler));
          }
        },
        token, buffers);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(boost::system::error_code, size_t)>(
        [this](auto handler, const Buffers& these) {
          if (tls_) {
            tls_->async_write_some(these, std::move(handler));
          } else {
            socket_.async_write_some(these, std::move(handler));
          }
        },
        token, buffers);
  }

 private:
  static bool is_of_this_machine(const boost::system::error_code& error) {
    return error == boost::asio::error::no_descriptors ||
           error == boost::asio::error::no_buffer_space || error == boost::asio::error::no_memory ||
           error == boost::system::errc::too_many_files_open_in_system;
  }
  // Without descriptors no name is found either, whatever its machine does.
  boost::system::error_code why_there_is_none() {
    boost::system::error_code error, ignored;
    socket_.open(boost::asio::generic::stream_protocol(boost::asio::ip::tcp::v4()), error);
    socket_.close(ignored);
    return is_of_this_machine(error) ? error : boost::asio::error::host_not_found;
  }
  boost::asio::awaitable<std::vector<Endpoint>> endpoints_of(const client::ServerUrl& url,
                                                             NameLookup& names) {
    using boost::asio::ip::tcp;
    std::vector<Endpoint> endpoints;
    boost::system::error_code error;
    if (url.host.empty()) {
      if (url.unix_path.size() < 108) {
        endpoints.emplace_back(boost::asio::local::stream_protocol::endpoint(url.unix_path));
      }
      co_return endpoints;
    }
    const auto address = boost::asio::ip::make_address(url.host, error);
    if (!error) {
      endpoints.emplace_back(tcp::endpoint(address, uint16_t(std::atoi(url.port.c_str()))));
      co_return endpoints;
    }
    const auto take = [weak = weak_from_this(), io = &io_](const NameLookup::Addresses& found) {
      boost::asio::post(*io, [weak, found] {
        const std::shared_ptr<Wire> self = weak.lock();
        if (self == nullptr) return;
        self->addresses_ = found;
        self->bell_.cancel();
      });
    };
    const std::shared_ptr<const void> question = names.find(url.host, url.port, take);
    while (!addresses_ && !is_closed_) {
      bell_.expires_at(std::chrono::steady_clock::time_point::max());
      co_await bell_.async_wait(kAwait);
    }
    if (!addresses_) co_return endpoints;
    for (const NameLookup::Address& one : *addresses_) {
      endpoints.emplace_back(&one.bytes, size_t(one.size));
    }
    co_return endpoints;
  }
  boost::asio::awaitable<std::string> begin_tls(const client::ServerUrl& url,
                                                const tls::ServerTrust* trust) {
    ssl_st* const session = trust == nullptr ? nullptr : trust->new_session(url.host);
    if (session == nullptr) co_return "expected the name of a server";
    tls_.emplace(socket_, session);
    const auto [error] =
        co_await tls_->async_handshake(boost::asio::ssl::stream_base::client, kAwait);
    if (!error) co_return std::string();
    const Status refused = trust->refusal(tls_->native_handle(), url.host);
    co_return refused ? error.message() : refused.error().message;
  }
  // A machine that is gone without a word is found after half a minute.
  void watch_peer() {
    const auto set = [&](int level, int name, int value) {
      ::setsockopt(socket_.native_handle(), level, name, &value, sizeof(value));
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
    set(IPPROTO_TCP, TCP_KEEPCNT, 3);
    set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
  }

  boost::asio::io_context& io_;
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer bell_;  // Rings when a name is answered, or nobody waits for it.
  std::optional<NameLookup::Addresses> addresses_;
  bool is_closed_ = false, lacks_means_ = false;
};

}  // namespace cairn::route
