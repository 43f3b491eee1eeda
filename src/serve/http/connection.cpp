// Reading requests and writing replies, as a coroutine.
#include "serve/http/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>
#include <variant>

#include "base/log.h"
#include "base/process.h"
#include "serve/http/chunks.h"

namespace cairn::serve::http {

namespace asio = boost::asio;

namespace {

constexpr size_t kReadBytes = 64 << 10;
// Of requests that come while one is answered.
constexpr size_t kAheadBytesMax = 256 << 10;

std::chrono::steady_clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

bool Connection::BodyRoom::grow_to(size_t bytes) {
  if (bytes <= taken_) return true;
  if (bytes - taken_ > shared_->limits.bodies_bytes_max - shared_->bodies_bytes) return false;
  shared_->bodies_bytes += bytes - taken_;
  taken_ = bytes;
  return true;
}

void Connection::BodyRoom::release() {
  shared_->bodies_bytes -= std::exchange(taken_, 0);
}

Connection::Connection(Socket socket, Shared* shared, std::string address, bool is_local)
    : stream_(std::move(socket)),
      shared_(shared),
      address_(std::move(address)),
      is_local_(is_local),
      deadline_(*shared->io),
      bell_(*shared->io) {}

asio::awaitable<void> Connection::serve() {
  try {
    if (co_await begin()) {
      while (co_await serve_one()) has_served_ = true;
    }
  } catch (const std::exception&) {
    log::error("a connection: {}", exception_text());
  }
  disarm();
  close();
}

// As long as for a request's head. Whoever speaks plainly is told so in reply to a request.
asio::awaitable<bool> Connection::begin() {
  const std::shared_ptr<const tls::ServerIdentity> tls = shared_->tls;
  if (tls == nullptr) co_return true;
  arm(shared_->limits.head_seconds);
  const Stream::Begin begun = co_await stream_.begin(*tls);
  lacks_tls_ = begun == Stream::Begin::plain;
  co_return begun != Stream::Begin::failed && !is_cut_;
}

void Connection::drain() {
  if (!is_busy_ || is_endless_) close();
}

void Connection::close_endless() {
  if (is_endless_) close();
}

void Connection::close() {
  is_cut_ = is_rung_ = true;
  bell_.cancel();
  stream_.close();
}

void Connection::arm(double seconds) {
  deadline_.expires_after(seconds_of(seconds));
  deadline_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const std::shared_ptr<Connection> self = error ? nullptr : weak.lock();
    // One that was armed again meanwhile.
    if (self == nullptr || self->deadline_.expiry() > Clock::now()) return;
    self->is_cut_ = true;
    self->close();
  });
}

asio::awaitable<bool> Connection::read_more() {
  const size_t before = input_.size();
  input_.resize(before + kReadBytes);
  const auto place = asio::buffer(input_.data() + before, kReadBytes);
  const auto [error, count] = co_await stream_.read_some(place);
  input_.resize(before + count);
  if (error) is_cut_ = true;
  co_return !is_cut_;
}

asio::awaitable<std::unique_ptr<Reply>> Connection::read_head(Request& request) {
  is_busy_ = false;
  const Limits& limits = shared_->limits;
  arm(has_served_ ? limits.idle_seconds : limits.head_seconds);
  const bool is_over = has_served_ && shared_->phase == ServerPhase::finishing;
  if (input_.empty() && (is_over || !co_await read_more())) {
    is_cut_ = true;
    co_return nullptr;
  }
  is_busy_ = true;
  begin_ = Clock::now();
  arm(limits.head_seconds);
  request.address = address_;
  request.is_local = is_local_;
  for (size_t seen = 0;;) {
    std::variant<size_t, Malformed> size = head_size(input_, seen);
    if (const auto* wrong = std::get_if<Malformed>(&size)) {
      co_return shared_->handler->refuse(request.head, wrong->status, wrong->message);
    }
    if (const size_t bytes = std::get<size_t>(size); bytes > 0) {
      auto head = parse_head(std::string_view(input_).substr(0, bytes));
      if (const auto* wrong = std::get_if<Malformed>(&head)) {
        co_return shared_->handler->refuse(request.head, wrong->status, wrong->message);
      }
      request.head = std::get<RequestHead>(std::move(head));
      input_.erase(0, bytes);
      co_return nullptr;
    }
    seen = input_.size();
    if (!co_await read_more()) co_return nullptr;
  }
}

// The whole body, or why there is none.
asio::awaitable<std::unique_ptr<Reply>> Connection::read_body(Request& request, BodyRoom& room) {
  const RequestHead& head = request.head;
  if (!head.has_body()) co_return nullptr;
  const Limits& limits = shared_->limits;
  const auto refuse = [&](int status, std::string_view message) {
    return shared_->handler->refuse(head, status, message);
  };
  const uint64_t length = head.content_length.value_or(0);
  if (length > limits.body_bytes_max) {
    co_return refuse(413, fmt::format("body: expected at most {} bytes, found {}",
                                      limits.body_bytes_max, length));
  }
  constexpr std::string_view kBusy = "the server is reading too many requests at a time";
  if (!room.grow_to(length)) co_return refuse(503, kBusy);
  if (head.expects_continue && input_.empty()) {
    co_await write("HTTP/1.1 100 Continue\r\n\r\n");
  }
  const Clock::time_point begin = Clock::now();
  ChunkDecoder decoder(limits.body_bytes_max);
  for (uint64_t received = 0;;) {
    const size_t before = input_.size();
    if (head.is_chunked) {
      auto used = decoder.push(input_, request.body);
      if (const auto* wrong = std::get_if<Malformed>(&used)) {
        co_return refuse(wrong->status, wrong->message);
      }
      if (!room.grow_to(request.body.size())) co_return refuse(503, kBusy);
      input_.erase(0, std::get<size_t>(used));
      if (decoder.is_done()) co_return nullptr;
    } else {
      const size_t count = size_t(std::min<uint64_t>(length - request.body.size(), before));
      request.body.append(input_, 0, count);
      input_.erase(0, count);
      if (request.body.size() == length) co_return nullptr;
    }
    received += before - input_.size();
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    arm(std::max(limits.body_seconds + double(received) / limits.body_bytes_per_second - taken,
                 0.0));
    if (!co_await read_more()) co_return nullptr;
  }
}

asio::awaitable<std::unique_ptr<Reply>> Connection::answer(Request& request) {
  Handler* const handler = shared_->handler;
  const auto run = [handler, &request]() -> std::unique_ptr<Reply> {
    try {
      return handler->answer(request);
    } catch (const std::exception&) {
      log::error("request {}: {}", request.id, exception_text());
      return handler->refuse(request.head, 500, "the server could not answer");
    }
  };
  if (handler->is_quick(request)) co_return run();
  co_return co_await asio::co_spawn(
      *shared_->workers, [&run]() -> asio::awaitable<std::unique_ptr<Reply>> { co_return run(); },
      asio::use_awaitable);
}

asio::awaitable<bool> Connection::serve_one() {
  Request request;
  sent_status_ = 0;
  sent_bytes_ = 0;
  is_sent_ = false;
  std::unique_ptr<Reply> reply = co_await read_head(request);
  if (is_cut_) co_return false;
  if (reply == nullptr && lacks_tls_) {
    reply = shared_->handler->refuse(request.head, 400, "scheme: expected https, found http");
  }
  BodyRoom room(shared_);
  if (reply != nullptr) {
    closes_ = true;
  } else {
    closes_ = !request.head.keeps_alive;
    request.phase = shared_->phase;
    reply = shared_->handler->admit(request);
    if (reply == nullptr) reply = co_await read_body(request, room);
    if (reply != nullptr && request.head.has_body()) closes_ = true;
  }
  disarm();
  if (is_cut_) co_return false;
  if (reply == nullptr) {
    reply = co_await answer(request);
    std::string().swap(request.body);
    room.release();
  }
  co_await send(request, *reply);
  is_endless_ = false;
  disarm();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  shared_->handler->ended(
      request, *reply,
      {.status = is_sent_ ? sent_status_ : 499, .bytes = sent_bytes_, .seconds = seconds});
  reply.reset();
  if (closes_ && !is_cut_) co_await linger();
  co_return !closes_ && !is_cut_;
}

std::function<void()> Connection::waker() {
  struct Bell {
    std::weak_ptr<Connection> connection;
    asio::io_context* io;
    std::atomic<bool> is_posted = false;
  };
  const auto bell = std::make_shared<Bell>();
  bell->connection = weak_from_this();
  bell->io = shared_->io;
  return [bell] {
    if (bell->is_posted.exchange(true)) return;
    asio::post(*bell->io, [bell] {
      bell->is_posted = false;
      const std::shared_ptr<Connection> self = bell->connection.lock();
      if (self == nullptr) return;
      self->is_rung_ = true;
      self->bell_.cancel();
    });
  };
}

// What is there at once needs nobody who watches.
asio::awaitable<void> Connection::send(const Request& request, Reply& reply) {
  using asio::experimental::awaitable_operators::operator||;
  reply.listen(waker());
  is_endless_ = reply.is_endless();
  if (is_endless_ && shared_->phase != ServerPhase::serving) is_cut_ = true;
  if (is_cut_) co_return;
  Pieces pieces;
  if (reply.head() != nullptr && !reply.head()->is_stream) {
    co_await send_rest(request, reply, pieces);
    co_return;
  }
  const auto first = co_await (send_or_cut(request, reply, pieces) || watch());
  if (first.index() == 1) is_cut_ = true;
}

// An exception of its own would wait for watch() to end, and so for the client to go away.
asio::awaitable<void> Connection::send_or_cut(const Request& request, Reply& reply,
                                              Pieces& pieces) {
  try {
    co_await send_rest(request, reply, pieces);
  } catch (const boost::system::system_error&) {
    is_cut_ = true;  // The client went away before.
  } catch (const std::exception&) {
    log::error("request {}: {}", request.id, exception_text());
    is_cut_ = true;
  }
}

asio::awaitable<void> Connection::send_rest(const Request& request, Reply& reply, Pieces& pieces) {
  const bool wants_body = request.head.method != Method::head;
  for (;;) {
    pieces.body.clear();
    pieces.wire.clear();
    is_rung_ = false;
    const Reply::State state = reply.read(pieces.body);
    const ReplyHead* const head = reply.head();
    if (head != nullptr && !pieces.has_head) {
      pieces.has_head = true;
      pieces.is_chunked = wants_body && head->is_stream && !request.head.is_1_0;
      // The end of the connection is that of the reply.
      if (head->is_stream && request.head.is_1_0) stream_.reset_on_close(true);
      closes_ = closes_ || shared_->phase != ServerPhase::serving ||
                (head->is_stream && request.head.is_1_0);
      const auto length = head->is_stream ? std::nullopt : std::optional(pieces.body.size());
      pieces.wire = head_text(request, *head, length);
      sent_status_ = head->status;
    }
    if (state == Reply::State::waiting && pieces.body.empty() && pieces.wire.empty()) {
      const bool has_comment = pieces.has_head && !reply.idle_text().empty();
      const bool is_due = co_await wait_for_bell(has_comment);
      if (is_cut_) co_return;
      if (!is_due) continue;
      pieces.body = reply.idle_text();
    }
    sent_bytes_ += pieces.body.size();
    // What is large is not copied behind its head.
    const bool is_apart = wants_body && !pieces.is_chunked && pieces.body.size() > kReadBytes;
    if (wants_body && !is_apart && !pieces.body.empty()) {
      if (pieces.is_chunked) pieces.wire += fmt::format("{:x}\r\n", pieces.body.size());
      pieces.wire += pieces.body;
      if (pieces.is_chunked) pieces.wire += "\r\n";
    }
    // Of what was asked for by HEAD, the head is all.
    const bool has_ended = state == Reply::State::ended || (pieces.has_head && !wants_body);
    if (has_ended && pieces.is_chunked) pieces.wire += "0\r\n\r\n";
    bool is_written = co_await write(pieces.wire);
    if (is_written && is_apart) is_written = co_await write(pieces.body);
    is_sent_ = is_written && has_ended;
    if (is_sent_) stream_.reset_on_close(false);
    if (!is_written || has_ended) co_return;
    if (state == Reply::State::broken) {
      closes_ = true;
      if (!pieces.is_chunked) close();
      co_return;
    }
  }
}

// True where a comment is due: so long after the last byte, however often the bell has rung since
// then for nothing.
asio::awaitable<bool> Connection::wait_for_bell(bool has_comment) {
  const Clock::time_point due = has_comment
                                    ? last_sent_ + std::chrono::duration_cast<Clock::duration>(
                                                       seconds_of(shared_->limits.comment_seconds))
                                    : Clock::now() + std::chrono::hours(24 * 365);
  if (Clock::now() >= due) co_return true;
  if (is_rung_) co_return false;
  bell_.expires_at(due);
  const auto [error] = co_await bell_.async_wait(kAwait);
  co_return !error && has_comment && !is_rung_;
}

asio::awaitable<bool> Connection::write(std::string_view bytes) {
  arm(shared_->limits.write_seconds);
  while (!bytes.empty()) {
    // Piece by piece: time counts from the last byte that was taken.
    const auto [error, count] =
        co_await stream_.write_some(asio::buffer(bytes.data(), bytes.size()));
    if (error) {
      is_cut_ = true;
      co_return false;
    }
    bytes.remove_prefix(count);
    if (!bytes.empty()) arm(shared_->limits.write_seconds);
  }
  last_sent_ = Clock::now();
  disarm();
  co_return true;
}

// What the client sends meanwhile is the beginning of its next request; more of that than a little
// is left to the system, and then nobody can see whether the client is still there.
asio::awaitable<void> Connection::watch() {
  // Not into the input: where the reply ends first, this ends at any co_await, by an exception.
  std::array<char, 4096> bytes;
  while (input_.size() < kAheadBytesMax) {
    const auto [error, count] = co_await stream_.read_some(asio::buffer(bytes));
    input_.append(bytes.data(), count);
    if (error) co_return;
  }
  asio::steady_timer never(*shared_->io, std::chrono::hours(24 * 365));
  co_await never.async_wait(kAwait);
}

asio::awaitable<void> Connection::linger() {
  arm(shared_->limits.linger_seconds);
  co_await stream_.end_sending();
  boost::system::error_code error;
  while (!error && !is_cut_) {
    input_.resize(kReadBytes);
    std::tie(error, std::ignore) = co_await stream_.read_raw(asio::buffer(input_));
  }
  is_cut_ = true;
}

std::string Connection::head_text(const Request& request, const ReplyHead& head,
                                  std::optional<size_t> length) const {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", head.status, reason_of(head.status));
  if (!head.content_type.empty()) text += fmt::format("content-type: {}\r\n", head.content_type);
  const bool may_have_body = head.status != 204 && head.status != 304;
  if (may_have_body && length) text += fmt::format("content-length: {}\r\n", *length);
  if (!length && !request.head.is_1_0) text += "transfer-encoding: chunked\r\n";
  text += "x-content-type-options: nosniff\r\n";
  if (!request.id.empty()) text += fmt::format("x-request-id: {}\r\n", request.id);
  if (closes_) text += "connection: close\r\n";
  if (!closes_ && request.head.is_1_0) text += "connection: keep-alive\r\n";
  for (const Header& header : head.headers) {
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  for (const Header& header : request.reply_headers) {
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  return text + "\r\n";
}

}  // namespace cairn::serve::http
