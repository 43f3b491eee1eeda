// Reads the head of an HTTP/1.1 request (RFC 9112), strictly: whatever others could read in another
// way is refused, so that nobody can hide a request in another one. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "serve/http/message.h"

namespace cairn::serve::http {

constexpr size_t kRequestLineBytesMax = 8 << 10;
constexpr size_t kHeadBytesMax = 32 << 10;
constexpr size_t kHeaderCountMax = 100;

// Why bytes are no request; the connection is closed behind the reply.
struct Malformed {
  int status;
  std::string message;
};

// How many bytes the head has, its empty line included; 0: it is not complete. `seen`: as many
// bytes of the input gave 0 before, and are not looked at again. Errors: bytes that no head can
// have, and too many of them.
std::variant<size_t, Malformed> head_size(std::string_view input, size_t seen = 0);

// `head`: as many bytes as head_size() said.
std::variant<RequestHead, Malformed> parse_head(std::string_view head);

// The value of a name in a query, its escapes undone; nothing where the name is not there, or its
// value has escapes that are none.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

// What `Authorization` shows in the scheme Bearer; empty where there is none, or another scheme's.
std::string_view bearer_of(const RequestHead& head);

}  // namespace cairn::serve::http
