// Letters of ASCII, which is what HTTP compares, and lists of tokens in headers; the program's
// locale has no say in either. Thread-safe: pure.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace cairn::serve::http {

inline char lower(char c) {
  return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
}

inline std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// RFC 9110, 5.6.2.
inline bool is_token(std::string_view text) {
  const auto is_of_tokens = [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || is_digit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_of_tokens);
}

// Without the blanks and tabs around it.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The first of what stands between commas, which is taken off the list.
inline std::string_view take_item(std::string_view& list) {
  const size_t comma = std::min(list.find(','), list.size());
  const std::string_view item = trimmed(list.substr(0, comma));
  list.remove_prefix(std::min(comma + 1, list.size()));
  return item;
}

// Whether a list of tokens, with commas between them, has this one, in letters of any size.
// REQUIRES: `wanted` is in small letters.
inline bool has_item(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    if (lower(take_item(list)) == wanted) return true;
  }
  return false;
}

}  // namespace cairn::serve::http
