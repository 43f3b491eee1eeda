// Which headers go on from a client to a node, and back. Thread-safe: pure.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

namespace cairn::route {

// What is about one connection (RFC 9110, 7.6.1), or about how a body is sent on it.
inline constexpr std::string_view kConnectionHeaders[] = {"connection",
                                                          "keep-alive",
                                                          "proxy-connection",
                                                          "proxy-authenticate",
                                                          "proxy-authorization",
                                                          "te",
                                                          "trailer",
                                                          "transfer-encoding",
                                                          "upgrade",
                                                          "content-length"};

// Neither is one of these, nor one that the router says anew. Names are in small letters.
inline bool is_passed_on(std::string_view name, std::span<const std::string_view> said_anew) {
  return std::ranges::find(kConnectionHeaders, name) == std::end(kConnectionHeaders) &&
         std::ranges::find(said_anew, name) == said_anew.end();
}

}  // namespace cairn::route
