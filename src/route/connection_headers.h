// Which headers go on from a client to a node, and back. Thread-safe: pure.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "serve/http/ascii.h"

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

// Neither is one of these, nor one that the router says anew, nor named by `connection`, which is
// what the message's header of this name says. Names are in small letters.
inline bool is_passed_on(std::string_view name, std::span<const std::string_view> said_anew,
                         std::string_view connection) {
  return std::ranges::find(kConnectionHeaders, name) == std::end(kConnectionHeaders) &&
         std::ranges::find(said_anew, name) == said_anew.end() &&
         !serve::http::has_item(connection, name);
}

}  // namespace cairn::route
