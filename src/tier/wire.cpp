// A socket that never blocks, and waits in slices.
#include "tier/wire.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace cairn::tier {
namespace {

// Who waits is asked so often whether it shall go on.
constexpr std::chrono::milliseconds kSlice(20);

Error system_error(std::string_view what) {
  return fail(ErrorCode::io, "tier: {}: {}", what, std::strerror(errno));
}

}  // namespace

Result<std::unique_ptr<Wire>> Wire::connect(const TierAddress& address, Clock::time_point deadline,
                                            const std::atomic<bool>* is_given_up) {
  Status opened = fail(ErrorCode::io, "tier: no address");
  for (const SocketAddress& socket : address.sockets) {
    std::unique_ptr<Wire> wire(new Wire(is_given_up));
    opened = wire->open(socket, deadline);
    if (opened && address.trust != nullptr) opened = wire->shake_hands(address, deadline);
    if (opened) return wire;
  }
  return std::move(opened).error();
}

Wire::~Wire() {
  SSL_free(session_);
}

Status Wire::open(const SocketAddress& address, Clock::time_point deadline) {
  const auto* const bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  socket_ = Descriptor(::socket(bytes->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket_) return system_error("socket");
  if (bytes->sa_family != AF_UNIX) {
    const int on = 1;
    (void)::setsockopt(socket_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  if (::connect(socket_.number(), bytes, address.size) == 0) return Ok{};
  if (errno != EINPROGRESS) return system_error("connect");
  CAIRN_TRY(wait_for(POLLOUT, deadline));
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket_.number(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return Ok{};
  errno = error;
  return system_error("connect");
}

Status Wire::shake_hands(const TierAddress& address, Clock::time_point deadline) {
  session_ = address.trust->new_session(address.certificate_name);
  if (session_ == nullptr || SSL_set_fd(session_, socket_.number()) != 1) {
    return fail(ErrorCode::io, "tier: no memory for TLS");
  }
  for (;;) {
    ERR_clear_error();
    const int code = SSL_connect(session_);
    if (code == 1) return Ok{};
    Status waited = wait_for_tls(code, deadline);
    if (waited) continue;
    CAIRN_TRY(address.trust->refusal(session_, address.certificate_name));
    return waited;
  }
}

Status Wire::wait_for(short events, Clock::time_point deadline) const {
  for (;;) {
    if (is_given_up_ != nullptr && *is_given_up_) {
      return fail(ErrorCode::cancelled, "tier: nobody waits for it any more");
    }
    const auto left = deadline - Clock::now();
    if (left <= left.zero()) return fail(ErrorCode::io, "tier: no answer in time");
    const auto slice = std::min<Clock::duration>(left, kSlice);
    pollfd wanted{.fd = socket_.number(), .events = events, .revents = 0};
    const int count =
        ::poll(&wanted, 1, int(std::chrono::ceil<std::chrono::milliseconds>(slice).count()));
    if (count > 0) return Ok{};
    if (count < 0 && errno != EINTR) return system_error("poll");
  }
}

Status Wire::wait_for_tls(int code, Clock::time_point deadline) const {
  switch (SSL_get_error(session_, code)) {
    case SSL_ERROR_WANT_READ:
      return wait_for(POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE:
      return wait_for(POLLOUT, deadline);
    default:
      return fail(ErrorCode::io, "tier: the connection under TLS broke off");
  }
}

// Under TLS either direction may have to wait for the other.
template <class Attempt>
Result<size_t> Wire::retry(Attempt attempt, short events, Clock::time_point deadline) {
  for (;;) {
    ERR_clear_error();
    const ssize_t moved = attempt();
    if (moved > 0) return size_t(moved);
    if (session_ != nullptr) {
      CAIRN_TRY(wait_for_tls(int(moved), deadline));
    } else if (moved == 0) {
      return fail(ErrorCode::io, "tier: the connection was closed");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      CAIRN_TRY(wait_for(events, deadline));
    } else {
      return system_error("the connection");
    }
  }
}

Status Wire::write(std::span<const std::byte> bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const int count = int(std::min<size_t>(bytes.size(), INT_MAX));
    const auto attempt = [&]() -> ssize_t {
      if (session_ != nullptr) return SSL_write(session_, bytes.data(), count);
      return ::send(socket_.number(), bytes.data(), size_t(count), MSG_NOSIGNAL);
    };
    CAIRN_TRY(const size_t moved, retry(attempt, POLLOUT, deadline));
    bytes = bytes.subspan(moved);
  }
  return Ok{};
}

// What never stops coming has no end either.
Result<size_t> Wire::read(std::span<std::byte> bytes, Clock::time_point deadline) {
  if (Clock::now() >= deadline) return fail(ErrorCode::io, "tier: no answer in time");
  const int count = int(std::min<size_t>(bytes.size(), INT_MAX));
  const auto attempt = [&]() -> ssize_t {
    if (session_ != nullptr) return SSL_read(session_, bytes.data(), count);
    return ::recv(socket_.number(), bytes.data(), size_t(count), 0);
  };
  return retry(attempt, POLLIN, deadline);
}

}  // namespace cairn::tier
