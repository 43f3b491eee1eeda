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
#include "client/server_trust.h"
#include "tier/tier_options.h"

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
  std::shared_ptr<const client::ServerTrust> trust;  // Null where it is not secure.
  std::string key;  // By which records are known to come from those who share it.

  // Errors: invalid_argument, not_found (a name that nobody knows), those of reading files.
  static Result<TierAddress> find(const TierOptions& options);
};

// Of a server that another one speaks of, by numbers: nobody waits for a name. An empty host is
// that of `home`. None: it is a name, or nothing that could be an address.
std::optional<SocketAddress> numeric_address(const TierAddress& home, const std::string& host,
                                             const std::string& port);

// HMAC-SHA-256 (RFC 2104) of two texts, one behind the other.
Sha256Digest keyed_digest(std::string_view key, std::span<const std::byte> first,
                          std::span<const std::byte> second);

}  // namespace cairn::tier
