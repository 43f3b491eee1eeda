// Brackets, quotes and escapes.
#include "chat/json_scanner.h"

#include <optional>

#include "chat/loose_match.h"
#include "unicode/unicode.h"

namespace cairn::chat {

namespace {

std::optional<uint32_t> hex4(std::string_view digits) {
  uint32_t value = 0;
  for (const char digit : digits) {
    const char lower = digit >= 'A' && digit <= 'F' ? char(digit + ('a' - 'A')) : digit;
    const size_t found = std::string_view("0123456789abcdef").find(lower);
    if (found == std::string_view::npos) return std::nullopt;
    value = value * 16 + uint32_t(found);
  }
  return value;
}

constexpr char kEscaped[] = "\"\\/bfnrt";
constexpr char kMeant[] = "\"\\/\b\f\n\r\t";

}  // namespace

void JsonScanner::reset(bool unwraps) {
  *this = {};
  unwraps_ = unwraps;
}

JsonScanner::State JsonScanner::feed(std::string_view& text, bool is_all, std::string& out) {
  if (kind_ == Kind::unknown) {
    text = trimmed_left(text);
    if (text.empty()) return State::more;
    if (text.front() == '{' || text.front() == '[') {
      kind_ = Kind::nested;
    } else if (text.front() == '"') {
      kind_ = unwraps_ ? Kind::wrapped : Kind::string;
      if (unwraps_) text.remove_prefix(1);
    } else {
      kind_ = Kind::scalar;
    }
  }
  if (kind_ == Kind::wrapped) return feed_wrapped(text, is_all, out);
  size_t at = 0;
  State state = State::more;
  for (; at < text.size() && state == State::more; ++at) {
    const char letter = text[at];
    if (kind_ == Kind::scalar) {
      if (is_space(letter) || letter == ',' || letter == '}' || letter == ']') {
        state = State::done;
        break;
      }
    } else if (is_escaped_) {
      is_escaped_ = false;
    } else if (in_string_) {
      is_escaped_ = letter == '\\';
      if (letter == '"') {
        in_string_ = false;
        if (depth_ == 0) state = State::done;
      }
    } else if (letter == '"') {
      in_string_ = true;
    } else if (letter == '{' || letter == '[') {
      ++depth_;
    } else if (letter == '}' || letter == ']') {
      if (--depth_ == 0) state = State::done;
    }
  }
  out += text.substr(0, at);
  text.remove_prefix(at);
  return state;
}

JsonScanner::State JsonScanner::feed_wrapped(std::string_view& text, bool is_all,
                                             std::string& out) {
  while (!text.empty()) {
    if (text.front() == '\\') {
      bool is_broken = false;
      if (!unescape(text, is_all, out, is_broken)) return is_broken ? State::broken : State::more;
      continue;
    }
    if (high_surrogate_ != 0) return State::broken;
    const bool is_end = text.front() == '"';
    if (!is_end) out += text.front();
    text.remove_prefix(1);
    if (is_end) return State::done;
  }
  return State::more;
}

bool JsonScanner::unescape(std::string_view& text, bool is_all, std::string& out, bool& is_broken) {
  const size_t needed = text.size() > 1 && text[1] == 'u' ? 6 : 2;
  if (text.size() < needed) {
    is_broken = is_all;
    return false;
  }
  if (needed == 2) {
    const size_t found = std::string_view(kEscaped).find(text[1]);
    is_broken = found == std::string_view::npos || high_surrogate_ != 0;
    if (is_broken) return false;
    out += kMeant[found];
  } else {
    const std::optional<uint32_t> unit = hex4(text.substr(2, 4));
    const bool is_low = unit && *unit >= 0xdc00 && *unit <= 0xdfff;
    is_broken = !unit || is_low != (high_surrogate_ != 0);
    if (is_broken) return false;
    if (*unit >= 0xd800 && *unit < 0xdc00) {
      high_surrogate_ = *unit;
    } else if (is_low) {
      unicode::append_utf8(0x10000 + ((high_surrogate_ - 0xd800) << 10) + (*unit - 0xdc00), out);
      high_surrogate_ = 0;
    } else {
      unicode::append_utf8(*unit, out);
    }
  }
  text.remove_prefix(needed);
  return true;
}

}  // namespace cairn::chat
