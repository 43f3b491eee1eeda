// One thread, which waits for all sockets at once.
#include "tier/peers/peer_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/threads/background_thread.h"
#include "base/threads/start_thread.h"
#include "store/keys.h"
#include "tier/peers/directory.h"
#include "tier/tier_address.h"

namespace cairn::tier {

namespace {

constexpr size_t kReceivedMax = size_t(16) << 10, kSentMax = size_t(256) << 10;
// So much may be sent at once after a pause.
constexpr double kBurstSeconds = 0.05;
constexpr std::chrono::milliseconds kLookAgain(500), kRefillPause(5);
// Where the system has no more descriptors.
constexpr std::chrono::milliseconds kAcceptAgain(100);

Error system_error(std::string_view what, const std::string& where) {
  return fail(ErrorCode::io, "--peer-listen: {} {}: {}", what, where, std::strerror(errno));
}

}  // namespace

Result<std::shared_ptr<PeerServer>> PeerServer::listen(const TierOptions& options) {
  std::string key;
  if (!options.key_file.empty()) {
    CAIRN_TRY(key, read_tier_key(options.key_file));
  }
  std::shared_ptr<PeerServer> made(new PeerServer(options, std::move(key)));
  CAIRN_TRY(made->open());
  CAIRN_TRY(made->thread_, start_thread("the thread that lends records",
                                        [server = made.get()] { server->run(); }));
  return made;
}

PeerServer::PeerServer(const TierOptions& options, std::string key)
    : options_(options.peers), secret_(std::move(key)), node_(store::short_key(new_number())) {}

PeerServer::~PeerServer() {
  is_closing_ = true;
  const uint64_t one = 1;
  if (waker_) (void)!::write(waker_.number(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

// Who may reach it from elsewhere has to have the key.
Status PeerServer::open() {
  CAIRN_TRY(SocketAddress own, parse_socket_address("--peer-listen", options_.listen));
  const auto* const bytes = reinterpret_cast<const sockaddr*>(&own.bytes);
  if (secret_.is_empty() && !is_loopback(own)) {
    return fail(ErrorCode::invalid_argument,
                "--peer-listen: expected this machine's own address where there is no --tier-key, "
                "found {}",
                options_.listen);
  }
  listener_ = Descriptor(::socket(bytes->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  waker_ = Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!listener_ || !waker_) return system_error("cannot listen on", options_.listen);
  const int on = 1;
  (void)::setsockopt(listener_.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(listener_.number(), bytes, own.size) != 0 ||
      ::listen(listener_.number(), int(kConnectionsMax)) != 0) {
    return system_error("cannot listen on", options_.listen);
  }
  socklen_t size = sizeof own.bytes;
  if (::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&own.bytes), &size) != 0)
    return system_error("cannot listen on", options_.listen);
  listens_at_ = text_of(own);
  SocketAddress seen = own;
  if (!options_.address.empty()) {
    CAIRN_TRY(seen, parse_socket_address("--peer-address", options_.address));
    if (port_of(seen) == 0) set_port(seen, port_of(own));
  }
  if (is_any(seen)) {
    return fail(ErrorCode::invalid_argument,
                "--peer-address: expected the address at which others find this machine, since it "
                "listens on all of its addresses, found none");
  }
  address_ = text_of(seen);
  CHECK(address_.size() <= kNodeAddressBytesMax);
  return Ok{};
}

void PeerServer::lend(Shelf* shelf) {
  const std::lock_guard lock(mutex_);
  shelves_.push_back(shelf);
}

void PeerServer::take_away(Shelf* shelf) {
  const std::lock_guard lock(mutex_);
  std::erase(shelves_, shelf);
}

bool PeerServer::has(const Sha256Digest& name) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(shelves_, [&](Shelf* shelf) { return shelf->has(name); });
}

Result<std::vector<std::byte>> PeerServer::read(const Sha256Digest& name) {
  const std::lock_guard lock(mutex_);
  for (Shelf* const shelf : shelves_) {
    Result<std::vector<std::byte>> record = shelf->read(name);
    if (record) return record;
  }
  return fail(ErrorCode::not_found, "peers: nobody has the record");
}

bool PeerServer::admits(PeerSession& session) {
  const Clock::time_point now = Clock::now();
  size_t lent = 0;
  uint64_t bytes = 0;
  Client* own = nullptr;
  for (Client& client : clients_) {
    bytes += client.session.output_bytes();
    const bool is_lent =
        client.lent_until > now || client.session.output_bytes() > PeerSession::kWaitingMax;
    if (&client.session == &session) {
      own = &client;
    } else if (is_lent) {
      ++lent;
    }
  }
  CHECK(own != nullptr);
  const bool may = lent < kLentAtOnce && bytes < kLentBytesMax;
  if (may) {
    own->lent_until = now + kPlaceKept;
  } else {
    ++busy_;
  }
  return may;
}

void PeerServer::run() {
  run_anywhere();
  refilled_at_ = Clock::now();
  while (!is_closing_) {
    refill();
    wait();
    end_late_ones();
  }
}

void PeerServer::refill() {
  const Clock::time_point now = Clock::now();
  const std::chrono::duration<double> passed = now - refilled_at_;
  const double rate = double(options_.bytes_per_second);
  allowance_ = std::min(allowance_ + rate * passed.count(),
                        std::max(rate * kBurstSeconds, double(kSentMax)));
  refilled_at_ = now;
}

// What may not be sent yet is not waited for, but for a moment.
void PeerServer::wait() {
  std::vector<pollfd> wanted = {{.fd = waker_.number(), .events = POLLIN, .revents = 0}};
  const bool accepts = Clock::now() >= accepts_at_;
  wanted.push_back({.fd = accepts ? listener_.number() : -1, .events = POLLIN, .revents = 0});
  bool is_held_up = !accepts;
  for (Client& client : clients_) {
    short events = 0;
    if (client.session.output_bytes() > 0 && allowance_ >= 1) events |= POLLOUT;
    if (client.session.output_bytes() > 0 && allowance_ < 1) is_held_up = true;
    if (client.session.wants_bytes() && !client.is_ending) events |= POLLIN;
    wanted.push_back({.fd = client.socket.number(), .events = events, .revents = 0});
  }
  const auto longest = is_held_up ? kRefillPause : kLookAgain;
  if (::poll(wanted.data(), wanted.size(), int(longest.count())) <= 0) return;
  size_t index = 2;
  for (Client& client : clients_) serve(client, wanted[index++].revents);
  std::erase_if(clients_, [](const Client& client) { return !client.socket; });
  // Another one is the first to send next time.
  if (!clients_.empty()) clients_.splice(clients_.end(), clients_, clients_.begin());
  if (wanted[1].revents != 0) accept_all();
}

void PeerServer::accept_all() {
  for (;;) {
    Descriptor socket(
        ::accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      const bool is_full = errno == EMFILE || errno == ENFILE || errno == ENOBUFS;
      if (is_full) accepts_at_ = Clock::now() + kAcceptAgain;
      return;
    }
    const auto strangers = size_t(std::ranges::count_if(
        clients_, [](const Client& client) { return !client.session.is_let_in(); }));
    if (clients_.size() >= kConnectionsMax || strangers >= kStrangersMax) continue;
    const int on = 1;
    (void)::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    clients_.emplace_back(std::move(socket), &secret_, this);
  }
}

void PeerServer::serve(Client& client, short events) {
  if ((events & (POLLERR | POLLNVAL)) != 0) {
    client.socket = Descriptor();
    return;
  }
  if ((events & (POLLIN | POLLHUP)) != 0) receive(client);
  if (client.socket && client.session.output_bytes() > 0) send(client);
}

void PeerServer::receive(Client& client) {
  if (!client.session.wants_bytes() || client.is_ending) {
    // It has hung up, and waits for nothing.
    client.socket = Descriptor();
    return;
  }
  std::array<std::byte, kReceivedMax> bytes;
  const ssize_t count = ::recv(client.socket.number(), bytes.data(), bytes.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    client.socket = Descriptor();
    return;
  }
  if (client.session.take(std::span(bytes).first(size_t(count)))) {
    // A stranger's time goes on.
    if (client.session.is_let_in()) client.since = Clock::now();
    return;
  }
  ++strangers_;
  client.is_ending = true;
  if (client.session.output_bytes() == 0) client.socket = Descriptor();
}

void PeerServer::send(Client& client) {
  while (client.session.output_bytes() > 0 && allowance_ >= 1) {
    const size_t most = std::min({client.session.output_bytes(), kSentMax, size_t(allowance_)});
    const ssize_t count = ::send(client.socket.number(), client.session.output().data(), most,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      client.socket = Descriptor();
      return;
    }
    allowance_ -= double(count);
    if (client.session.is_let_in()) client.since = Clock::now();
    if (client.lent_until > Clock::time_point()) client.lent_until = Clock::now() + kPlaceKept;
    if (!client.session.note_sent(size_t(count))) client.is_ending = true;
    if (size_t(count) < most) return;
  }
  if (client.is_ending && client.session.output_bytes() == 0) client.socket = Descriptor();
}

void PeerServer::end_late_ones() {
  const Clock::time_point now = Clock::now();
  std::erase_if(clients_, [&](const Client& client) {
    const bool owes = client.session.output_bytes() > 0;
    const auto longest = !client.session.is_let_in() ? kProveWithin : owes ? kTakeWithin : kIdle;
    return now - client.since > longest;
  });
}

}  // namespace cairn::tier
