// Any bytes as an HTTP request and as a chunked body: in one piece and in two they mean the same,
// what is taken for a request has one length, one host and no controls, and a host that is answered
// is an address or this machine.
#include <strings.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/check.h"
#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "serve/http/origins.h"

namespace http = cairn::serve::http;

namespace {

// Whom a server answers that knows no names: who asks it by an address or as localhost, which no
// page of the web can have others do.
void check_origin(const http::RequestHead& head) {
  (void)http::is_type_allowed(head);
  if (!http::refuse_origin(head, {}).empty()) return;
  const std::string* const host = head.find("host");
  if (host == nullptr) return;
  if (host->find_first_not_of("0123456789.:[]abcdefABCDEF") != host->npos) {
    CHECK(::strncasecmp(host->c_str(), "localhost", 9) == 0);
    CHECK(host->size() == 9 || (*host)[9] == ':');
  }
  const std::string* const origin = head.find("origin");
  CHECK(origin == nullptr || origin->find("://") != origin->npos);
}

void check_head(std::string_view text, size_t cut) {
  const auto size = http::head_size(text);
  const auto begin = http::head_size(text.substr(0, cut));
  if (const size_t* bytes = std::get_if<size_t>(&size); bytes != nullptr && *bytes > 0) {
    // What is whole was not refused before; and its first part is not whole.
    CHECK(std::holds_alternative<size_t>(begin));
    CHECK(std::get<size_t>(begin) == (cut >= *bytes ? *bytes : 0));
    CHECK(std::get<size_t>(http::head_size(text, cut < *bytes ? cut : 0)) == *bytes);
    const auto parsed = http::parse_head(text.substr(0, *bytes));
    if (const auto* head = std::get_if<http::RequestHead>(&parsed)) {
      CHECK(head->path.starts_with('/') && head->path.find('\0') == std::string::npos);
      CHECK(!(head->is_chunked && head->content_length));
      CHECK(head->is_1_0 || head->find("host") != nullptr);
      for (const http::Header& header : head->headers) {
        CHECK(header.value.find_first_of("\r\n") == std::string::npos);
      }
      check_origin(*head);
    }
  }
}

struct Decoded {
  std::string body;
  bool is_done = false, is_refused = false;
};

Decoded decode(std::string_view text, size_t cut) {
  http::ChunkDecoder decoder(1 << 16);
  Decoded decoded;
  std::string waiting;
  for (const std::string_view piece : {text.substr(0, cut), text.substr(cut)}) {
    waiting += piece;
    const auto used = decoder.push(waiting, decoded.body);
    decoded.is_refused = std::holds_alternative<http::Malformed>(used);
    if (decoded.is_refused) return decoded;
    waiting.erase(0, std::get<size_t>(used));
  }
  decoded.is_done = decoder.is_done();
  CHECK(decoded.body.size() <= 1 << 16);
  return decoded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = text.size() * data[0] / 256;
  check_head(text, cut);
  const Decoded whole = decode(text, text.size()), pieces = decode(text, cut);
  CHECK(whole.is_done == pieces.is_done && whole.is_refused == pieces.is_refused);
  if (whole.is_done) CHECK(whole.body == pieces.body);
  return 0;
}
