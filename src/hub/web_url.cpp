// libcurl's URL interface.
#include "hub/web_url.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/printable.h"

namespace cairn::hub {

namespace {

using Handle = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

std::string part_of(CURLU* handle, CURLUPart part, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(handle, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

std::string shown(std::string_view text) {
  constexpr size_t kShown = 200;
  return printable(text.substr(0, std::min(text.find('?'), kShown)));
}

bool is_own_address(std::string_view host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.");
}

Result<WebUrl> read(CURLU* handle, std::string_view text) {
  if (!part_of(handle, CURLUPART_USER).empty() || !part_of(handle, CURLUPART_PASSWORD).empty()) {
    return fail(ErrorCode::invalid_argument,
                "URL: expected none with a user's name or password, found one");
  }
  (void)curl_url_set(handle, CURLUPART_FRAGMENT, nullptr, 0);
  const std::string scheme = part_of(handle, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") {
    return fail(ErrorCode::invalid_argument, "{}: expected http or https, found \"{}\"",
                shown(text), shown(scheme));
  }
  WebUrl url{.text = part_of(handle, CURLUPART_URL),
             .origin = {},
             .host = part_of(handle, CURLUPART_HOST),
             .path = part_of(handle, CURLUPART_PATH),
             .is_secure = scheme == "https"};
  for (char& c : url.host) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  }
  url.origin = fmt::format("{}://{}:{}", scheme, url.host,
                           part_of(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT));
  url.is_here = is_own_address(url.host);
  return url;
}

Error no_url(std::string_view text, CURLUcode code) {
  return fail(ErrorCode::invalid_argument, "{}: expected a URL: {}", shown(text),
              curl_url_strerror(code));
}

}  // namespace

Result<WebUrl> parse_url(std::string_view text) {
  const Handle handle(curl_url(), curl_url_cleanup);
  CHECK(handle != nullptr);
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, std::string(text).c_str(), 0);
  if (code != CURLUE_OK || text.find('\0') != text.npos) return no_url(text, code);
  return read(handle.get(), text);
}

Result<WebUrl> follow_url(const WebUrl& base, std::string_view location) {
  const Handle handle(curl_url(), curl_url_cleanup);
  CHECK(handle != nullptr);
  CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, base.text.c_str(), 0);
  if (code == CURLUE_OK) {
    code =
        curl_url_set(handle.get(), CURLUPART_URL, std::string(location).c_str(), CURLU_URLENCODE);
  }
  if (code != CURLUE_OK) return no_url(location, code);
  CAIRN_TRY(WebUrl url, read(handle.get(), location));
  if (base.is_secure && !url.is_secure) {
    return fail(ErrorCode::invalid_argument, "{}: expected to stay under TLS, found a way to {}",
                base.origin, url.origin);
  }
  return url;
}

std::string escape_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                          c == '/';
    if (is_plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", uint8_t(c));
    }
  }
  return out;
}

std::string without_query(const WebUrl& url) {
  return url.text.substr(0, url.text.find('?'));
}

}  // namespace cairn::hub
