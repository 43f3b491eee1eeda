// Where a tier is, and with which words it lets one in. Names are looked up once, at the start: the
// threads that use a tier never wait for a name. Thread-safe: constant.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "tier/tier_options.h"
#include "tls/server_trust.h"

namespace cairn::tier {

struct TierUrl {
  std::string host;  // A name or an address; empty: a Unix socket.
  std::string port = "6379";
  std::string unix_path;
  bool is_secure = false;

  // Errors: invalid_argument. A password in a URL is refused: everybody on the machine sees it.
  static Result<TierUrl> parse(std::string_view text);
};

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

struct TierAddress {
  TierUrl url;
  std::vector<SocketAddress> sockets;  // To be tried in this order.
  std::string user, password;
  std::shared_ptr<const tls::ServerTrust> trust;  // Null where it is not secure.
  std::string certificate_name;                   // What the certificate has to be for.
  std::string key;       // By which records are known to come from those who share it.
  bool is_peer = false;  // A machine that lends records: both prove that they know the key.
  // Of machines that are found by this tier: whom to believe, null where they speak no TLS; and by
  // which name, empty: the address.
  std::shared_ptr<const tls::ServerTrust> peer_trust;
  std::string peer_name;

  // Errors: invalid_argument, not_found (a name that nobody knows), those of reading files.
  static Result<TierAddress> find(const TierOptions& options);
};

// Of those who share a tier. Errors: invalid_argument: others can read it, or it is short.
Result<std::string> read_tier_key(const std::string& path);

// Of a server that another one speaks of, by numbers: nobody waits for a name. An empty host is
// that of `home`. None: it is a name, or nothing that could be an address.
std::optional<SocketAddress> numeric_address(const TierAddress& home, const std::string& host,
                                             const std::string& port);

// Of a machine that lends records, by numbers (10.0.0.5:7400, [::1]:7400), as `home` says that it
// is found. Without a key only this one's own address is believed. None: it is nothing of the kind.
std::optional<TierAddress> peer_address(const TierAddress& home, const std::string& text);

// "HOST:PORT", "[HOST]:PORT", by numbers; port 0: any. Errors: invalid_argument.
Result<SocketAddress> parse_socket_address(std::string_view option, const std::string& text);
bool is_loopback(const SocketAddress& address);
bool is_any(const SocketAddress& address);  // 0.0.0.0, ::
// The other way round.
std::string text_of(const SocketAddress& address);
uint16_t port_of(const SocketAddress& address);
void set_port(SocketAddress& address, uint16_t port);

}  // namespace cairn::tier
