// Attempts, and what they would have to wait for.
#include "tier/peers/peer_socket.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "base/check.h"

namespace cairn::tier {
namespace {

// A record of TLS is taken whole: what OpenSSL held back would wake nobody.
constexpr size_t kTlsRecordBytes = 16384;

bool is_later() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int part_of(size_t bytes) {
  return int(std::min<size_t>(bytes, INT_MAX));
}

}  // namespace

PeerSocket::PeerSocket(Descriptor socket, const tls::ServerIdentity* identity)
    : socket_(std::move(socket)), receiving_(POLLIN), sending_(POLLOUT) {
  if (identity == nullptr) return;
  session_ = identity->new_session();
  if (session_ == nullptr || SSL_set_fd(session_, socket_.number()) != 1) {
    close();
    return;
  }
  SSL_set_accept_state(session_);
  // What is sent later lies elsewhere then, and some of it goes at a time.
  SSL_set_mode(session_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

PeerSocket::~PeerSocket() {
  SSL_free(session_);
}

void PeerSocket::close() {
  socket_ = Descriptor();
}

bool PeerSocket::has_begun() const {
  return session_ == nullptr || SSL_is_init_finished(session_) == 1;
}

std::optional<size_t> PeerSocket::moved(int code, short& waits_for) {
  if (code > 0) return size_t(code);
  switch (SSL_get_error(session_, code)) {
    case SSL_ERROR_WANT_READ:
      waits_for = POLLIN;
      return 0;
    case SSL_ERROR_WANT_WRITE:
      waits_for = POLLOUT;
      return 0;
    default:
      ERR_clear_error();
      return std::nullopt;
  }
}

std::optional<size_t> PeerSocket::receive(std::span<std::byte> bytes) {
  if (session_ != nullptr) {
    receiving_ = POLLIN;
    ERR_clear_error();
    CHECK(bytes.size() >= kTlsRecordBytes);
    return moved(SSL_read(session_, bytes.data(), part_of(bytes.size())), receiving_);
  }
  const ssize_t count = ::recv(socket_.number(), bytes.data(), bytes.size(), 0);
  if (count > 0) return size_t(count);
  if (count < 0 && is_later()) return 0;
  return std::nullopt;
}

std::optional<size_t> PeerSocket::send(std::span<const std::byte> bytes) {
  if (session_ != nullptr) {
    sending_ = POLLOUT;
    ERR_clear_error();
    return moved(SSL_write(session_, bytes.data(), part_of(bytes.size())), sending_);
  }
  const ssize_t count =
      ::send(socket_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count > 0) return size_t(count);
  if (count < 0 && is_later()) return 0;
  return std::nullopt;
}

short PeerSocket::events(bool receives, bool sends) const {
  return short((receives ? receiving_ : 0) | (sends ? sending_ : 0));
}

bool PeerSocket::may_receive(short events) const {
  return (events & (receiving_ | POLLHUP)) != 0;
}

bool PeerSocket::may_send(short events) const {
  return (events & sending_) != 0;
}

}  // namespace cairn::tier
