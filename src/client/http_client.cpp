// Boost.Beast, a step at a time, so that Ctrl-C is seen between them.
#include "client/http_client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

namespace cairn::client {

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using Failure = boost::system::error_code;

constexpr std::chrono::milliseconds kLookAgain(100);
constexpr size_t kPieceBytes = size_t(16) << 10;
constexpr size_t kBodyBytesMax = size_t(256) << 20;

// One request on a socket of its own, which may be wrapped in TLS.
template <class Socket>
class Exchange {
 public:
  template <class... More>
  Exchange(asio::io_context* context, const HttpClient::Hooks* hooks, More... more)
      : context_(*context), hooks_(*hooks), socket_(*context, more...) {}

  Socket& socket() { return socket_; }

  // `start` begins an operation, whose end it tells the function that it is given.
  template <class Start>
  Status wait(Start start, ErrorCode code, std::string_view what) {
    std::optional<Failure> ended;
    start([&ended](const Failure& failure, auto&&...) { ended = failure; });
    while (!ended) {
      context_.restart();
      context_.run_one_for(kLookAgain);
      if (ended || !hooks_.wants_end || !hooks_.wants_end()) continue;
      Failure ignored;
      boost::beast::get_lowest_layer(socket_).close(ignored);
      while (!ended) {
        context_.restart();
        context_.run_one();
      }
      return fail(ErrorCode::cancelled, "the request was given up");
    }
    if (!*ended || *ended == http::error::need_buffer) return Ok{};
    return fail(code, "{}: {}", what, ended->message());
  }

  Result<HttpClient::Reply> talk(const http::request<http::string_body>& request) {
    CAIRN_TRY(wait([&](auto done) { http::async_write(socket_, request, std::move(done)); },
                   ErrorCode::io, "the server"));
    boost::beast::flat_buffer buffer;
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(std::numeric_limits<uint64_t>::max());
    CAIRN_TRY(
        wait([&](auto done) { http::async_read_header(socket_, buffer, parser, std::move(done)); },
             ErrorCode::io, "the server's reply"));
    HttpClient::Reply reply{.status = int(parser.get().result_int())};
    const bool is_taken = hooks_.on_bytes && reply.status == 200;
    std::string piece(kPieceBytes, '\0');
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      CAIRN_TRY(
          wait([&](auto done) { http::async_read_some(socket_, buffer, parser, std::move(done)); },
               ErrorCode::io, "the server's reply broke off"));
      const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
      if (is_taken) {
        hooks_.on_bytes(bytes);
      } else if (reply.body.size() + bytes.size() > kBodyBytesMax) {
        return fail(ErrorCode::no_room, "the server's reply: expected at most {} bytes, found more",
                    kBodyBytesMax);
      } else {
        reply.body += bytes;
      }
      // Bytes may come faster than wait() looks.
      if (!parser.is_done() && hooks_.wants_end && hooks_.wants_end()) {
        return fail(ErrorCode::cancelled, "the request was given up");
      }
    }
    return reply;
  }

 private:
  asio::io_context& context_;
  const HttpClient::Hooks& hooks_;
  Socket socket_;
};

using Plain = asio::ip::tcp::socket;
using Secure = asio::ssl::stream<Plain>;

template <class Socket>
Status connect(Exchange<Socket>& exchange, asio::io_context& context, const ServerUrl& url) {
  asio::ip::tcp::resolver resolver(context);
  Failure failure;
  const auto places = resolver.resolve(url.host, url.port, failure);
  if (failure) return fail(ErrorCode::not_found, "{}: {}", url.host, failure.message());
  Plain& socket = boost::beast::get_lowest_layer(exchange.socket());
  return exchange.wait([&](auto done) { asio::async_connect(socket, places, std::move(done)); },
                       ErrorCode::not_found, url.host + ":" + url.port);
}

// Nothing is said before the certificate is believed.
Status begin_tls(Exchange<Secure>& exchange, const tls::ServerTrust& trust, const ServerUrl& url) {
  Status begun = exchange.wait(
      [&](auto done) {
        exchange.socket().async_handshake(asio::ssl::stream_base::client, std::move(done));
      },
      ErrorCode::io, url.host + ":" + url.port + ": expected TLS 1.2 or 1.3, found none");
  if (begun || begun.error().code == ErrorCode::cancelled) return begun;
  CAIRN_TRY(trust.refusal(exchange.socket().native_handle(), url.host));
  return begun;
}

}  // namespace

Result<ServerUrl> ServerUrl::parse(std::string_view text) {
  constexpr std::string_view kUnix = "unix:", kHttp = "http://", kHttps = "https://";
  const auto wrong = [&] {
    return fail(ErrorCode::invalid_argument,
                "--server: expected http://HOST:PORT, https://HOST:PORT or unix:FILE, found \"{}\"",
                text);
  };
  ServerUrl url;
  if (text.starts_with(kUnix)) {
    url.unix_path = text.substr(kUnix.size());
    // "unix:///run/x" as others write it.
    if (url.unix_path.starts_with("//")) url.unix_path.erase(0, 2);
    if (url.unix_path.empty()) return wrong();
    return url;
  }
  std::string_view rest = text;
  if (rest.starts_with(kHttps)) {
    url.is_secure = true;
    url.port = "443";
    rest.remove_prefix(kHttps.size());
  } else if (rest.starts_with(kHttp)) {
    rest.remove_prefix(kHttp.size());
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const bool is_literal = rest.starts_with('[');
  const size_t end = is_literal ? rest.find(']') : 0;
  if (end == rest.npos) return wrong();
  const size_t colon = rest.find(':', end);
  url.host = rest.substr(is_literal ? 1 : 0, is_literal ? end - 1 : colon);
  if (colon != rest.npos) url.port = rest.substr(colon + 1);
  const bool is_port = !url.port.empty() && url.port.size() <= 5 &&
                       url.port.find_first_not_of("0123456789") == url.port.npos;
  if (url.host.empty() || !is_port || url.host.find_first_of("/ @?#") != url.host.npos) {
    return wrong();
  }
  return url;
}

Result<HttpClient::Reply> HttpClient::send(std::string_view method, const std::string& path,
                                           std::string body, const Hooks& hooks) const {
  http::request<http::string_body> request;
  request.method_string({method.data(), method.size()});
  request.target(path);
  const bool is_ipv6 = url_.host.find(':') != url_.host.npos;
  request.set(http::field::host, url_.host.empty() ? "localhost"
                                 : is_ipv6         ? "[" + url_.host + "]"
                                                   : url_.host);
  request.set(http::field::user_agent, "cairn/" CAIRN_VERSION);
  request.set(http::field::connection, "close");
  if (!key_.empty()) request.set(http::field::authorization, "Bearer " + key_);
  if (method == "POST") request.set(http::field::content_type, "application/json");
  request.body() = std::move(body);
  request.prepare_payload();
  asio::io_context context(1);
  if (!url_.unix_path.empty()) {
    Exchange<asio::local::stream_protocol::socket> exchange(&context, &hooks);
    if (url_.unix_path.size() >= 108) {
      return fail(ErrorCode::invalid_argument, "--server: expected a path of at most 107 bytes");
    }
    CAIRN_TRY(exchange.wait(
        [&](auto done) {
          exchange.socket().async_connect(asio::local::stream_protocol::endpoint(url_.unix_path),
                                          std::move(done));
        },
        ErrorCode::not_found, url_.unix_path));
    return exchange.talk(request);
  }
  if (url_.is_secure) {
    // The stream takes the session over.
    ssl_st* const session = trust_->new_session(url_.host);
    if (session == nullptr) {
      return fail(ErrorCode::invalid_argument, "{}: expected the name of a server", url_.host);
    }
    Exchange<Secure> exchange(&context, &hooks, session);
    CAIRN_TRY(connect(exchange, context, url_));
    CAIRN_TRY(begin_tls(exchange, *trust_, url_));
    return exchange.talk(request);
  }
  Exchange<Plain> exchange(&context, &hooks);
  CAIRN_TRY(connect(exchange, context, url_));
  return exchange.talk(request);
}

}  // namespace cairn::client
