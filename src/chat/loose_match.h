// Matches text that arrives in pieces with markers: yes, no, or undecided until more text comes.
// White space in a marker, or at its ends, matches any white space. Thread-safe: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cairn::chat {

constexpr bool is_space(char letter) {
  return letter == ' ' || letter == '\n' || letter == '\t' || letter == '\r';
}

constexpr std::string_view trimmed_left(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  return text;
}

constexpr std::string_view trimmed_right(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

constexpr std::string_view trimmed(std::string_view text) {
  return trimmed_left(trimmed_right(text));
}

// The text up to its first white space.
constexpr std::string_view first_word(std::string_view text) {
  text = trimmed_left(text);
  size_t end = 0;
  while (end < text.size() && !is_space(text[end])) ++end;
  return text.substr(0, end);
}

enum class Match : uint8_t { no, more, yes };

// Whether `text` begins with the marker; `bytes` then says how much of it the marker is, without
// white space behind. `is_all`: nothing follows `text`, so there is nothing to wait for.
constexpr Match match_loose(std::string_view marker, std::string_view text, bool is_all,
                            size_t& bytes) {
  size_t at = 0;
  marker = trimmed_right(marker);
  for (size_t letter = 0; letter < marker.size(); ++letter) {
    if (is_space(marker[letter])) {
      while (at < text.size() && is_space(text[at])) ++at;
      continue;
    }
    if (at == text.size()) return is_all ? Match::no : Match::more;
    if (text[at] != marker[letter]) return Match::no;
    ++at;
  }
  bytes = at;
  return Match::yes;
}

}  // namespace cairn::chat
