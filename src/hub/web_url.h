// Addresses on the web: where one leads, and where a redirect goes on. There is one reader of URLs,
// libcurl's, which also opens them, so that no two can disagree about a host. Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::hub {

struct WebUrl {
  std::string text;    // Normal: no dots in the path, no fragment.
  std::string origin;  // "https://host:443", in lower case: whom a token is shown to.
  std::string host, path;
  bool is_secure = false;  // Under TLS.
  bool is_here = false;    // This machine's own address: localhost, 127.x.x.x, ::1.
};

// Errors: invalid_argument: no URL, another scheme than http and https, or one with a user's name.
Result<WebUrl> parse_url(std::string_view text);

// Where a Location or a link leads that was read at `base`. Errors: as above; also where it goes
// from TLS to none.
Result<WebUrl> follow_url(const WebUrl& base, std::string_view location);

// As a part of a path or a query: everything but letters, digits, -, ., _, ~ and "/" as %XX.
std::string escape_path(std::string_view path);

// A URL for people and files: without its query, which may have a signature that opens it.
std::string without_query(const WebUrl& url);

}  // namespace cairn::hub
