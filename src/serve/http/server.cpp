// Listening, accepting, signals.
#include "serve/http/server.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/process.h"
#include "base/threads/blocked_signals.h"
#include "serve/http/connection.h"

namespace cairn::serve::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using Local = asio::local::stream_protocol;
using boost::system::error_code;

namespace {

// Where the system has no more descriptors or memory.
constexpr std::chrono::milliseconds kAcceptAgain(100);

Result<asio::ip::address> parse_address(const std::string& host) {
  error_code error;
  const asio::ip::address address =
      asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (!error) return address;
  return fail(ErrorCode::invalid_argument,
              "host: expected an address such as 127.0.0.1 or ::1, or localhost, found \"{}\"",
              host);
}

}  // namespace

Result<bool> is_loopback(const std::string& host) {
  CAIRN_TRY(const asio::ip::address address, parse_address(host));
  return address.is_loopback();
}

struct Server::State {
  explicit State(const Limits& limits)
      : signals(io), hangups(io), leave_timer(io), workers(size_t(limits.worker_count)) {
    shared.limits = limits;
    shared.io = &io;
    shared.workers = &workers;
  }
  // Nobody waits for the last connection any more.
  ~State() { shared.phase = ServerPhase::serving; }

  asio::awaitable<void> accept_all();
  asio::awaitable<error_code> accept_tcp();
  asio::awaitable<error_code> accept_local();
  asio::awaitable<void> keep(Connection::Socket socket, std::string address, bool is_local);
  bool is_listening() const { return acceptor ? acceptor->is_open() : local_acceptor->is_open(); }
  bool has_room(const std::string& address, bool is_local) const;
  void wait_for_signal();
  void wait_for_hangup();
  void stop();
  void finish();
  void close_listening();
  void end_if_finished();
  void run_to_the_end();

  // A connection while it is served, among those that are counted and told to end.
  class Listed {
   public:
    Listed(State* state, const std::shared_ptr<Connection>& connection, const std::string& address)
        : state_(state),
          key_(connection.get()),
          is_late_(state->shared.phase == ServerPhase::finishing),
          count_(state->address_counts.try_emplace(address).first) {
      state->connections.emplace(key_, connection);
      if (!is_late_) ++state->timely_count;
      ++count_->second;
    }
    ~Listed() {
      state_->connections.erase(key_);
      if (--count_->second == 0) state_->address_counts.erase(count_);
      if (!is_late_) --state_->timely_count;
      state_->end_if_finished();
    }
    Listed(const Listed&) = delete;
    Listed& operator=(const Listed&) = delete;

   private:
    State* state_;
    Connection* key_;
    bool is_late_;
    std::map<std::string, int32_t>::iterator count_;
  };

  // Connections that end with `io` use these.
  Shared shared{};
  std::map<Connection*, std::weak_ptr<Connection>> connections;
  std::map<std::string, int32_t> address_counts;
  int64_t timely_count = 0;  // Connections that are waited for: none that came while finishing.
  asio::io_context io{1};
  asio::signal_set signals, hangups;
  asio::steady_timer leave_timer;
  std::function<void()> reload;
  asio::thread_pool workers;
  std::optional<tcp::acceptor> acceptor;
  std::optional<Local::acceptor> local_acceptor;
  std::string url, unix_path;
  uint16_t port = 0;
  bool is_aborted = false;
};

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() {
  if (!state_->unix_path.empty()) ::unlink(state_->unix_path.c_str());
}

const std::string& Server::url() const {
  return state_->url;
}

uint16_t Server::port() const {
  return state_->port;
}

namespace {

// The socket of a server that is gone may be replaced; nothing else.
Status clear_path(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a path of at most {} bytes, found {}",
                path, sizeof(sockaddr_un::sun_path) - 1, path.size());
  }
  struct stat found = {};
  if (::lstat(path.c_str(), &found) != 0) return Ok{};
  if (!S_ISSOCK(found.st_mode)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a socket or nothing, found a file",
                path);
  }
  asio::io_context io;
  Local::socket probe(io);
  error_code error;
  probe.connect(Local::endpoint(path), error);
  if (!error) return fail(ErrorCode::io, "{}: another server listens there", path);
  if (::unlink(path.c_str()) != 0) return fail(ErrorCode::io, "{}: cannot be replaced", path);
  return Ok{};
}

template <class Acceptor, class Endpoint>
Status open(Acceptor& acceptor, const Endpoint& endpoint, const std::string& where) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail(ErrorCode::io, "{}: cannot listen there: {}", where, error.message());
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const Address& address, const Limits& limits,
                                               Handler* handler) {
  std::unique_ptr<State> state;
  {
    const BlockedSignals blocked;
    state = std::make_unique<State>(limits);
  }
  state->shared.handler = handler;
  state->shared.tls = address.tls;
  if (!address.unix_path.empty()) {
    CAIRN_TRY(clear_path(address.unix_path));
    state->url = "unix:" + address.unix_path;
    state->local_acceptor.emplace(state->io);
    CAIRN_TRY(open(*state->local_acceptor, Local::endpoint(address.unix_path), state->url));
    state->unix_path = address.unix_path;
    // For its owner alone, whatever the umask is.
    if (::chmod(address.unix_path.c_str(), 0600) != 0) {
      return fail(ErrorCode::io, "{}: its permissions cannot be set", address.unix_path);
    }
    return std::unique_ptr<Server>(new Server(std::move(state)));
  }
  CAIRN_TRY(const asio::ip::address ip, parse_address(address.host));
  state->acceptor.emplace(state->io);
  const std::string name = ip.is_v6() ? fmt::format("[{}]", ip.to_string()) : ip.to_string();
  CAIRN_TRY(open(*state->acceptor, tcp::endpoint(ip, address.port),
                 fmt::format("{}:{}", name, address.port)));
  state->port = state->acceptor->local_endpoint().port();
  state->url = fmt::format("{}://{}:{}", address.tls ? "https" : "http", name, state->port);
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

// A connection that cannot be taken, for lack of descriptors or of memory, is no reason to take no
// others: those that are there go on meanwhile, and give some back. Even waiting takes memory.
asio::awaitable<void> Server::State::accept_all() {
  asio::steady_timer timer(io);
  bool is_told = false;
  while (is_listening()) {
    error_code error = asio::error::no_memory;
    try {
      // Not by ?:, of which g++ 12 destroys the coroutine twice.
      if (acceptor) {
        error = co_await accept_tcp();
      } else {
        error = co_await accept_local();
      }
    } catch (const std::exception&) {
    }
    if (!error || error == asio::error::operation_aborted) {
      is_told = false;
      continue;
    }
    try {
      if (!std::exchange(is_told, true)) {
        log::error("connections wait: {}", error.message());
      }
      timer.expires_after(kAcceptAgain);
      co_await timer.async_wait(kAwait);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kAcceptAgain);
    }
  }
}

asio::awaitable<error_code> Server::State::accept_tcp() {
  auto [error, socket] = co_await acceptor->async_accept(kAwait);
  if (error) co_return error;
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const asio::ip::address address = socket.remote_endpoint(ignored).address();
  const bool is_mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  const bool is_local =
      is_mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback()
                : address.is_loopback();
  asio::co_spawn(io, keep(std::move(socket), address.to_string(), is_local), asio::detached);
  co_return error_code();
}

asio::awaitable<error_code> Server::State::accept_local() {
  auto [error, socket] = co_await local_acceptor->async_accept(kAwait);
  if (!error) asio::co_spawn(io, keep(std::move(socket), "unix", true), asio::detached);
  co_return error;
}

bool Server::State::has_room(const std::string& address, bool is_local) const {
  if (!is_listening() || int64_t(connections.size()) >= shared.limits.connections_max) return false;
  const auto found = address_counts.find(address);
  const std::vector<std::string>& proxies = shared.limits.proxies;
  const bool is_proxy = std::find(proxies.begin(), proxies.end(), address) != proxies.end();
  return is_local || is_proxy || found == address_counts.end() ||
         found->second < shared.limits.connections_per_address_max;
}

// A connection from its beginning to its end. One too many is closed at once.
asio::awaitable<void> Server::State::keep(Connection::Socket socket, std::string address,
                                          bool is_local) {
  if (!has_room(address, is_local)) co_return;
  const auto connection =
      std::make_shared<Connection>(std::move(socket), &shared, address, is_local);
  const Listed listed(this, connection, address);
  co_await connection->serve();
}

// A handler that finds no memory ends what it was for, and nothing else.
void Server::State::run_to_the_end() {
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception&) {
      log::error("a connection: {}", exception_text());
    }
  }
}

void Server::State::close_listening() {
  error_code ignored;
  if (acceptor) acceptor->close(ignored);
  if (local_acceptor) local_acceptor->close(ignored);
}

// Whoever came while it was finishing has only looked, and is not waited for.
void Server::State::end_if_finished() {
  if (shared.phase != ServerPhase::finishing || timely_count > 0) return;
  close_listening();
  error_code ignored;
  leave_timer.cancel();
  for (const auto& [key, weak] : connections) {
    if (const std::shared_ptr<Connection> connection = weak.lock()) connection->close();
  }
  signals.cancel(ignored);
  hangups.cancel(ignored);
}

void Server::State::wait_for_signal() {
  signals.async_wait([this](const error_code& error, int) {
    if (error) return;
    stop();
    if (!is_aborted) wait_for_signal();
    end_if_finished();
  });
}

void Server::State::wait_for_hangup() {
  hangups.async_wait([this](const error_code& error, int) {
    if (error || shared.phase != ServerPhase::serving) return;
    reload();
    // Who may see what has changed, and these would never ask again.
    for (const auto& [key, weak] : connections) {
      if (const std::shared_ptr<Connection> connection = weak.lock()) connection->close_endless();
    }
    wait_for_hangup();
  });
}

void Server::State::stop() {
  is_aborted = shared.phase != ServerPhase::serving;
  if (is_aborted || shared.limits.drain_seconds <= 0) {
    finish();
    return;
  }
  shared.phase = ServerPhase::leaving;
  for (const auto& [key, weak] : connections) {
    if (const std::shared_ptr<Connection> connection = weak.lock()) connection->close_endless();
  }
  leave_timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(shared.limits.drain_seconds)));
  leave_timer.async_wait([this](const error_code& error) {
    if (!error) finish();
  });
}

// First the idle connections, then all.
void Server::State::finish() {
  shared.phase = ServerPhase::finishing;
  if (is_aborted) close_listening();
  for (const auto& [key, weak] : connections) {
    const std::shared_ptr<Connection> connection = weak.lock();
    if (connection == nullptr) continue;
    if (is_aborted) {
      connection->close();
    } else {
      connection->drain();
    }
  }
  end_if_finished();
}

void Server::stop() {
  asio::post(state_->io, [state = state_.get()] { state->stop(); });
}

// One that comes before run() waits for it.
void Server::catch_signals() {
  error_code ignored;
  state_->signals.add(SIGTERM, ignored);
  state_->signals.add(SIGINT, ignored);
  state_->wait_for_signal();
}

void Server::catch_hangups(std::function<void()> reload) {
  state_->reload = std::move(reload);
  error_code ignored;
  state_->hangups.add(SIGHUP, ignored);
  state_->wait_for_hangup();
}

void Server::set_tls(std::shared_ptr<const tls::ServerIdentity> tls) {
  CHECK(state_->shared.tls != nullptr);
  state_->shared.tls = std::move(tls);
}

bool Server::run() {
  State& state = *state_;
  asio::co_spawn(state.io, state.accept_all(), asio::detached);
  state.run_to_the_end();
  state.workers.join();
  return !state.is_aborted;
}

}  // namespace cairn::serve::http
