// URLs, names, files with a login or a key.
#include "tier/tier_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace cairn::tier {
namespace {

constexpr size_t kSecretBytesMax = 4096;
constexpr size_t kKeyBytesMin = 32;

Error no_url(std::string_view text) {
  return fail(ErrorCode::invalid_argument,
              "--tier: expected redis://HOST[:PORT], rediss://HOST[:PORT] or unix:PATH, found {}",
              text);
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port < 65536;
}

// Without its last line end. Who else can read it could use it.
Result<std::string> read_secret(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) == 0 && (about.st_mode & 077) != 0) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a file that its owner alone can read (chmod 600), found mode {:o}",
                path, about.st_mode & 0777);
  }
  CAIRN_TRY(std::string text, read_file(path, kSecretBytesMax));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Result<SocketAddress> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid_argument,
                "--tier: expected a path of 1 to {} bytes behind unix:, found {}",
                sizeof address.sun_path - 1, path.size());
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  SocketAddress made{.bytes = {}, .size = sizeof address};
  std::memcpy(&made.bytes, &address, sizeof address);
  return made;
}

// `flags`: of getaddrinfo(). Errors: not_found.
Result<std::vector<SocketAddress>> find_sockets(const std::string& host, const std::string& port,
                                                int flags) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = flags;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), port.c_str(), &wanted, &found); code != 0) {
    return fail(ErrorCode::not_found, "--tier: {}: {}", host, ::gai_strerror(code));
  }
  std::vector<SocketAddress> sockets;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    SocketAddress made{.bytes = {}, .size = one->ai_addrlen};
    std::memcpy(&made.bytes, one->ai_addr, one->ai_addrlen);
    sockets.push_back(made);
  }
  ::freeaddrinfo(found);
  return sockets;
}

// By numbers, without the port.
std::string host_of(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host{};
  const auto* const bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  const int code =
      ::getnameinfo(bytes, address.size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return code == 0 ? std::string(host.data()) : std::string();
}

Result<std::vector<SocketAddress>> look_up(const TierUrl& url) {
  if (!url.host.empty()) return find_sockets(url.host, url.port, 0);
  CAIRN_TRY(const SocketAddress address, unix_address(url.unix_path));
  return std::vector{address};
}

}  // namespace

Result<TierUrl> TierUrl::parse(std::string_view text) {
  TierUrl url;
  std::string_view rest = text;
  if (rest.starts_with("unix:")) {
    rest.remove_prefix(5);
    if (rest.starts_with("//")) rest.remove_prefix(2);
    if (!rest.starts_with('/')) return no_url(text);
    url.unix_path = rest;
    return url;
  }
  url.is_secure = rest.starts_with("rediss://");
  if (!url.is_secure && !rest.starts_with("redis://")) return no_url(text);
  rest.remove_prefix(rest.find("//") + 2);
  if (rest.find('@') != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument,
                "--tier: expected the user and the password in a file (--tier-login), found them "
                "in the URL, which everybody on this machine can see");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  const bool is_bracketed = rest.starts_with('[');
  const size_t host_end = is_bracketed ? rest.find(']') : rest.find(':');
  if (is_bracketed && host_end == std::string_view::npos) return no_url(text);
  url.host = is_bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  rest = host_end == std::string_view::npos ? "" : rest.substr(host_end + size_t(is_bracketed));
  if (!rest.empty()) {
    if (!rest.starts_with(':') || !is_port(rest.substr(1))) return no_url(text);
    url.port = rest.substr(1);
  }
  const auto is_wrong = [](char sign) { return sign <= ' ' || sign == '/' || sign == '?'; };
  if (url.host.empty() || std::ranges::any_of(url.host, is_wrong)) return no_url(text);
  return url;
}

Result<TierAddress> TierAddress::find(const TierOptions& options) {
  TierAddress address;
  CAIRN_TRY(address.url, TierUrl::parse(options.url));
  if (!options.login_file.empty()) {
    CAIRN_TRY(const std::string login, read_secret(options.login_file));
    const size_t colon = login.find(':');
    if (colon != std::string::npos) address.user = login.substr(0, colon);
    address.password = colon == std::string::npos ? login : login.substr(colon + 1);
    if (address.password.empty()) {
      return fail(ErrorCode::invalid_argument, "{}: expected USER:PASSWORD, found no password",
                  options.login_file);
    }
  }
  if (!options.key_file.empty()) {
    CAIRN_TRY(address.key, read_tier_key(options.key_file));
  }
  if (address.url.is_secure) {
    CAIRN_TRY(address.trust, tls::ServerTrust::read(options.authority_path));
    address.certificate_name = address.url.host;
  }
  if (!options.peers.certificate_path.empty()) {
    CAIRN_TRY(address.peer_trust, tls::ServerTrust::read(options.peers.authority_path));
    address.peer_name = options.peers.name;
  }
  CAIRN_TRY(address.sockets, look_up(address.url));
  return address;
}

Result<std::string> read_tier_key(const std::string& path) {
  CAIRN_TRY(std::string key, read_secret(path));
  if (key.size() >= kKeyBytesMin) return key;
  return fail(ErrorCode::invalid_argument, "{}: expected a key of {} bytes at least, found {}",
              path, kKeyBytesMin, key.size());
}

std::optional<SocketAddress> numeric_address(const TierAddress& home, const std::string& host,
                                             const std::string& port) {
  if (!is_port(port)) return std::nullopt;
  if (!host.empty()) {
    auto found = find_sockets(host, port, AI_NUMERICHOST | AI_NUMERICSERV);
    return found ? std::optional((*found).front()) : std::nullopt;
  }
  if (home.url.host.empty() || home.sockets.empty()) return std::nullopt;
  SocketAddress address = home.sockets.front();
  set_port(address, uint16_t(std::stoi(port)));
  return address;
}

Result<SocketAddress> parse_socket_address(std::string_view option, const std::string& text) {
  const auto refuse = [&] {
    return fail(ErrorCode::invalid_argument,
                "{}: expected an address and a port such as 10.0.0.5:7400 or [::1]:7400, found {}",
                option, text);
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return refuse();
  const std::string port = text.substr(colon + 1);
  std::string host = text.substr(0, colon);
  const bool is_bracketed = host.starts_with('[') && host.ends_with(']');
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  const bool is_numbers = !host.empty() && is_bracketed == (host.find(':') != host.npos);
  if (!is_numbers || (port != "0" && !is_port(port))) return refuse();
  auto found = find_sockets(host, port, AI_NUMERICHOST | AI_NUMERICSERV);
  if (!found) return refuse();
  return (*found).front();
}

bool is_loopback(const SocketAddress& address) {
  const auto* const bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (bytes->sa_family == AF_INET) {
    const auto* const four = reinterpret_cast<const sockaddr_in*>(bytes);
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(bytes);
  return bytes->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
}

bool is_any(const SocketAddress& address) {
  const auto* const bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  if (bytes->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(bytes)->sin_addr.s_addr == INADDR_ANY;
  }
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(bytes);
  return bytes->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr);
}

std::string text_of(const SocketAddress& address) {
  const std::string host = host_of(address);
  if (host.empty()) return {};
  const bool is_six = address.bytes.ss_family == AF_INET6;
  return fmt::format("{}{}{}:{}", is_six ? "[" : "", host, is_six ? "]" : "", port_of(address));
}

uint16_t port_of(const SocketAddress& address) {
  const auto* const bytes = reinterpret_cast<const sockaddr*>(&address.bytes);
  const bool is_four = bytes->sa_family == AF_INET;
  return ntohs(is_four ? reinterpret_cast<const sockaddr_in*>(bytes)->sin_port
                       : reinterpret_cast<const sockaddr_in6*>(bytes)->sin6_port);
}

void set_port(SocketAddress& address, uint16_t port) {
  auto* const bytes = reinterpret_cast<sockaddr*>(&address.bytes);
  if (bytes->sa_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(bytes)->sin_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in6*>(bytes)->sin6_port = htons(port);
  }
}

std::optional<TierAddress> peer_address(const TierAddress& home, const std::string& text) {
  Result<SocketAddress> socket = parse_socket_address("peer", text);
  if (!socket || port_of(*socket) == 0 || is_any(*socket)) return std::nullopt;
  if (home.key.empty() && !is_loopback(*socket)) return std::nullopt;
  TierAddress address;
  address.url.host = text;
  address.sockets = {*socket};
  address.key = home.key;
  address.is_peer = true;
  address.trust = home.peer_trust;
  address.certificate_name = home.peer_name.empty() ? host_of(*socket) : home.peer_name;
  return address;
}

}  // namespace cairn::tier
