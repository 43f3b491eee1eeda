// Line by line, each with CR LF.
#include "serve/http/head.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "serve/http/ascii.h"

namespace cairn::serve::http {

namespace {

constexpr std::string_view kEnd = "\r\n\r\n";

// No controls but tabs; bytes above 0x7f are allowed, and mean nothing.
bool is_value_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7f);
}

Malformed malformed(std::string message) {
  return {400, std::move(message)};
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  const char small = lower(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// False where an escape is none, or hides a NUL.
bool undo_escapes(std::string_view text, std::string& out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return false;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return false;
    out += char(high * 16 + low);
    i += 2;
  }
  return true;
}

Method method_of(std::string_view name) {
  if (name == "GET") return Method::get;
  if (name == "HEAD") return Method::head;
  if (name == "POST") return Method::post;
  if (name == "DELETE") return Method::delete_;
  if (name == "OPTIONS") return Method::options;
  return Method::other;
}

// "GET /path?query HTTP/1.1".
std::variant<RequestHead, Malformed> parse_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == line.npos || first == last) {
    return malformed("request line: expected a method, a target and a version");
  }
  RequestHead head;
  head.method_name = line.substr(0, first);
  head.method = method_of(head.method_name);
  if (!is_token(head.method_name)) return malformed("method: expected letters");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool is_other = version.starts_with("HTTP/");
    return Malformed{is_other ? 505 : 400, "version: expected HTTP/1.1"};
  }
  head.is_1_0 = version == "HTTP/1.0";
  std::string_view target = line.substr(first + 1, last - first - 1);
  // The absolute form is for proxies; "*" is for OPTIONS of a whole server.
  if (!target.starts_with('/')) return malformed("target: expected a path that begins with /");
  const bool is_visible = std::all_of(target.begin(), target.end(), [](char c) {
    return static_cast<unsigned char>(c) > 0x20 && static_cast<unsigned char>(c) < 0x7f;
  });
  if (!is_visible) return malformed("target: expected ASCII without blanks and controls");
  target = target.substr(0, target.find('#'));
  const size_t question = target.find('?');
  if (question != target.npos) head.query = target.substr(question + 1);
  if (!undo_escapes(target.substr(0, question), head.path)) {
    return malformed("target: expected % and two hexadecimal digits");
  }
  return head;
}

// Decimal digits alone; a list of equal numbers is as malformed as one of different ones.
std::variant<uint64_t, Malformed> parse_length(std::string_view text) {
  const bool is_number =
      !text.empty() && text.size() <= 18 && std::all_of(text.begin(), text.end(), is_digit);
  if (!is_number) return malformed("content-length: expected decimal digits");
  uint64_t length = 0;
  for (const char c : text) length = length * 10 + uint64_t(c - '0');
  return length;
}

std::variant<Header, Malformed> parse_header(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {
    return malformed("header: expected no folded lines");
  }
  const size_t colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) {
    return malformed("header: expected a name and a colon");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!std::all_of(value.begin(), value.end(), is_value_character)) {
    return malformed("header: expected a value without controls");
  }
  return Header{lower(line.substr(0, colon)), std::string(value)};
}

size_t count_of(const RequestHead& head, std::string_view name) {
  return size_t(std::count_if(head.headers.begin(), head.headers.end(),
                              [&](const Header& header) { return header.name == name; }));
}

// How long the body is, and what becomes of the connection.
std::variant<RequestHead, Malformed> with_framing(RequestHead head) {
  for (const std::string_view name :
       {"host", "content-length", "transfer-encoding", "authorization", "x-api-key", "origin",
        "content-type", "content-encoding", "expect"}) {
    if (count_of(head, name) > 1) return malformed(fmt::format("{}: expected once", name));
  }
  const std::string* const host = head.find("host");
  // The check of a load balancer may be that old.
  if (host == nullptr && !head.is_1_0) return malformed("host: expected one, found none");
  const std::string* const coding = head.find("transfer-encoding");
  const std::string* const length = head.find("content-length");
  if (coding != nullptr) {
    if (length != nullptr) {
      return malformed("expected content-length or transfer-encoding, found both");
    }
    if (lower(*coding) != "chunked" || head.is_1_0) {
      return malformed("transfer-encoding: expected chunked, in HTTP/1.1");
    }
    head.is_chunked = true;
  }
  if (length != nullptr) {
    auto read = parse_length(*length);
    if (auto* wrong = std::get_if<Malformed>(&read)) return std::move(*wrong);
    head.content_length = std::get<uint64_t>(read);
  }
  if (const std::string* const expect = head.find("expect")) {
    if (lower(*expect) != "100-continue") return Malformed{417, "expect: expected 100-continue"};
    head.expects_continue = !head.is_1_0;
  }
  const std::string* const connection = head.find("connection");
  const std::string_view wish = connection == nullptr ? "" : std::string_view(*connection);
  head.keeps_alive = head.is_1_0 ? has_item(wish, "keep-alive") : !has_item(wish, "close");
  return head;
}

}  // namespace

std::variant<size_t, Malformed> head_size(std::string_view input, size_t seen) {
  const std::string_view text = input.substr(0, kHeadBytesMax);
  // The last bytes may be the beginning of the end.
  const size_t begin = seen - std::min(seen, kEnd.size() - 1);
  const size_t end = text.find(kEnd, begin);
  const std::string_view head = text.substr(0, end == text.npos ? text.size() : end + kEnd.size());
  for (size_t i = begin; i < head.size(); ++i) {
    const bool has_feed = i + 1 == head.size() || head[i + 1] == '\n';
    const bool is_break =
        head[i] == '\n' ? i > 0 && head[i - 1] == '\r' : head[i] != '\r' || has_feed;
    if (!is_break) return malformed("expected lines that end with CR LF, found CR or LF alone");
    if (head[i] == '\0') return malformed("expected text, found a NUL");
  }
  if (std::min(head.find("\r\n"), head.size()) > kRequestLineBytesMax) {
    return Malformed{414, "request line: expected at most 8 KiB"};
  }
  if (end != text.npos) return head.size();
  if (input.size() >= kHeadBytesMax) return Malformed{431, "header: expected at most 32 KiB"};
  return size_t(0);
}

std::variant<RequestHead, Malformed> parse_head(std::string_view text) {
  // The empty line's line break.
  text.remove_suffix(2);
  const size_t line_end = text.find("\r\n");
  auto parsed = parse_line(text.substr(0, line_end));
  auto* const head = std::get_if<RequestHead>(&parsed);
  if (head == nullptr) return parsed;
  text.remove_prefix(line_end + 2);
  while (!text.empty()) {
    const size_t end = text.find("\r\n");
    auto header = parse_header(text.substr(0, end));
    if (auto* wrong = std::get_if<Malformed>(&header)) return std::move(*wrong);
    head->headers.push_back(std::get<Header>(std::move(header)));
    if (head->headers.size() > kHeaderCountMax) {
      return Malformed{431, "header: expected at most 100 fields"};
    }
    text.remove_prefix(end + 2);
  }
  return with_framing(std::move(*head));
}

std::string_view reason_of(int status) {
  constexpr std::pair<int, std::string_view> kReasons[] = {
      {200, "OK"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  };
  for (const auto& [number, reason] : kReasons) {
    if (number == status) return reason;
  }
  return "";
}

std::optional<std::string> query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const size_t equals = std::min(pair.find('='), pair.size());
    if (pair.substr(0, equals) != name) continue;
    std::string value;
    if (!undo_escapes(pair.substr(std::min(equals + 1, pair.size())), value)) return std::nullopt;
    return value;
  }
  return std::nullopt;
}

// RFC 9110, 11.4: a scheme in letters of any size, and blanks behind it.
std::string_view bearer_of(const RequestHead& head) {
  const std::string* const found = head.find("authorization");
  if (found == nullptr) return {};
  const std::string_view text = *found;
  const size_t blank = std::min(text.find(' '), text.size());
  return lower(text.substr(0, blank)) == "bearer" ? trimmed(text.substr(blank)) : "";
}

}  // namespace cairn::serve::http
