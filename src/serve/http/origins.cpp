// Hosts and origins, parsed strictly.
#include "serve/http/origins.h"

#include <arpa/inet.h>

#include <algorithm>

#include "serve/http/ascii.h"

namespace cairn::serve::http {

namespace {

bool is_port(std::string_view text) {
  return text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// The host without its port, in small letters; empty where it is none.
std::string name_of(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == host.npos) return {};
    const std::string_view behind = host.substr(end + 1);
    if (!behind.empty() && (behind.front() != ':' || !is_port(behind.substr(1)))) return {};
    return lower(host.substr(0, end + 1));
  }
  const size_t colon = host.find(':');
  if (colon != host.npos && !is_port(host.substr(colon + 1))) return {};
  return lower(host.substr(0, colon));
}

bool is_address(const std::string& name) {
  unsigned char place[sizeof(in6_addr)];
  if (name.starts_with('[') && name.size() > 2) {
    return ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), place) == 1;
  }
  return ::inet_pton(AF_INET, name.c_str(), place) == 1;
}

bool is_this_machine(std::string_view name) {
  return name == "localhost" || name == "127.0.0.1" || name == "[::1]";
}

// Schemes of desktop programs: no page of the web has one of these.
constexpr std::string_view kDesktopSchemes[] = {"app", "file", "tauri", "vscode-webview",
                                                "vscode-file"};

}  // namespace

bool is_host_allowed(std::string_view host, const OriginRules& rules) {
  const std::string name = name_of(host);
  if (name.empty()) return false;
  if (name == "localhost" || is_address(name)) return true;
  return std::any_of(rules.hosts.begin(), rules.hosts.end(),
                     [&](const std::string& allowed) { return lower(allowed) == name; });
}

bool is_origin_allowed(std::string_view origin, std::string_view own_host,
                       const OriginRules& rules) {
  if (std::find(rules.origins.begin(), rules.origins.end(), origin) != rules.origins.end()) {
    return true;
  }
  const size_t colon = origin.find("://");
  if (colon == origin.npos) return false;
  const std::string scheme = lower(origin.substr(0, colon));
  const std::string_view host = origin.substr(colon + 3);
  if (scheme == "http" || scheme == "https") {
    if (host.find_first_of("/@?#") != host.npos) return false;
    if (!own_host.empty() && lower(host) == lower(own_host)) return true;
    return rules.allows_local_origins && is_this_machine(name_of(host));
  }
  return rules.allows_local_origins &&
         std::find(std::begin(kDesktopSchemes), std::end(kDesktopSchemes), scheme) !=
             std::end(kDesktopSchemes);
}

std::string_view refuse_origin(const RequestHead& head, const OriginRules& rules) {
  const std::string* const host = head.find("host");
  if (host != nullptr && !is_host_allowed(*host, rules)) {
    return "host: expected localhost, an address, or a name that the server allows";
  }
  const std::string* const origin = head.find("origin");
  if (origin != nullptr) {
    const std::string_view own = host == nullptr ? "" : std::string_view(*host);
    if (is_origin_allowed(*origin, own, rules)) return {};
    return "origin: expected this server's own, or one that the server allows";
  }
  const std::string* const site = head.find("sec-fetch-site");
  if (site != nullptr && *site == "cross-site") {
    return "sec-fetch-site: expected no page of another site";
  }
  return {};
}

std::string sendable_headers(const RequestHead& head, std::string_view otherwise) {
  constexpr size_t kBytesMax = 4096;  // Libraries ask for some hundred.
  const std::string* const asked = head.find("access-control-request-headers");
  std::string names;
  for (std::string_view list = asked == nullptr ? "" : std::string_view(*asked); !list.empty();) {
    const std::string_view name = take_item(list);
    if (!is_token(name) || names.size() + name.size() + 2 > kBytesMax) continue;
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names.empty() ? std::string(otherwise) : names;
}

bool is_type_allowed(const RequestHead& head) {
  if (head.find("origin") == nullptr && head.find("sec-fetch-site") == nullptr) return true;
  const std::string* const type = head.find("content-type");
  if (type == nullptr) return false;
  std::string_view name = std::string_view(*type).substr(0, type->find(';'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  return lower(name) == "application/json";
}

}  // namespace cairn::serve::http
