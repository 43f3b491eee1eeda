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
#include <optional>
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
  CAIRN_TRY(made->read_again());
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

Status PeerServer::read_again() {
  if (options_.certificate_path.empty()) return Ok{};
  CAIRN_TRY(auto identity,
            tls::ServerIdentity::read(options_.certificate_path, options_.tls_key_path));
  const std::lock_guard lock(mutex_);
  identity_ = std::move(identity);
  return Ok{};
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
                        rate * std::chrono::duration<double>(kSavedUp).count());
  refilled_at_ = now;
}

// What may not be sent yet is not waited for, but for a moment.
void PeerServer::wait() {
  std::vector<pollfd> wanted = {{.fd = waker_.number(), .events = POLLIN, .revents = 0}};
  const bool accepts = Clock::now() >= accepts_at_;
  wanted.push_back({.fd = accepts ? listener_.number() : -1, .events = POLLIN, .revents = 0});
  bool is_held_up = !accepts;
  for (Client& client : clients_) {
    const bool sends = client.session.output_bytes() > 0;
    if (sends && allowance_ < 1) is_held_up = true;
    const bool receives = client.session.wants_bytes() && !client.is_ending;
    const short events = client.socket.events(receives, sends && allowance_ >= 1);
    wanted.push_back({.fd = client.socket.number(), .events = events, .revents = 0});
  }
  const auto longest = is_held_up ? kRefillPause : kLookAgain;
  if (::poll(wanted.data(), wanted.size(), int(longest.count())) <= 0) return;
  size_t index = 2;
  for (Client& client : clients_) serve(client, wanted[index++].revents);
  std::erase_if(clients_, [](const Client& client) { return !client.socket.is_open(); });
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
    const std::lock_guard lock(mutex_);
    clients_.emplace_back(std::move(socket), identity_.get(), &secret_, this);
  }
}

void PeerServer::serve(Client& client, short events) {
  if ((events & (POLLERR | POLLNVAL)) != 0) return hang_up(client);
  if (client.socket.may_receive(events)) receive(client);
  if (client.socket.is_open() && client.session.output_bytes() > 0) send(client);
}

// The other side has gone. One that does not believe this machine's certificate may leave with the
// connection reset, which poll() reports as an error before any byte can be read.
void PeerServer::hang_up(Client& client) {
  strangers_ += uint64_t(!client.socket.has_begun());
  client.socket.close();
}

void PeerServer::receive(Client& client) {
  if (!client.session.wants_bytes() || client.is_ending) return hang_up(client);
  std::array<std::byte, kReceivedMax> bytes;
  const std::optional<size_t> count = client.socket.receive(bytes);
  if (!count) return hang_up(client);
  if (*count == 0) return;
  if (client.session.take(std::span(bytes).first(*count))) {
    // A stranger's time goes on.
    if (client.session.is_let_in()) client.since = Clock::now();
    return;
  }
  ++strangers_;
  client.is_ending = true;
  if (client.session.output_bytes() == 0) client.socket.close();
}

// What TLS could not send all of has to be offered again, no less of it: so the allowance says when
// something is sent, and is paid afterwards.
void PeerServer::send(Client& client) {
  while (client.session.output_bytes() > 0 && allowance_ >= 1) {
    const std::span<const std::byte> output = client.session.output();
    const std::optional<size_t> count =
        client.socket.send(output.first(std::min(output.size(), kSentMax)));
    if (!count) return client.socket.close();
    if (*count == 0) return;
    allowance_ -= double(*count);
    if (client.session.is_let_in()) client.since = Clock::now();
    if (client.lent_until > Clock::time_point()) client.lent_until = Clock::now() + kPlaceKept;
    if (!client.session.note_sent(*count)) client.is_ending = true;
  }
  if (client.is_ending && client.session.output_bytes() == 0) client.socket.close();
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
