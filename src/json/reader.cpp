// What is open, what is expected next, and the keys of open objects in one piece of memory.
#include "json/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include "unicode/place.h"
#include "unicode/unicode.h"

namespace cairn::json {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
// Of so many keys each is compared with each; more are sorted.
constexpr size_t kComparedMax = 8;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

bool is_digit(char c) {
  return '0' <= c && c <= '9';
}

// Of a string, where it is one byte that stands for itself.
bool is_plain(char c) {
  return uint8_t(c) >= 0x20 && uint8_t(c) < 0x80 && c != '"' && c != '\\';
}

// Four hexadecimal digits at the beginning of `text`.
std::optional<uint32_t> hex4(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (error != std::errc() || end != text.data() + 4) return std::nullopt;
  return value;
}

}  // namespace

Reader::Reader(std::string_view name, std::string_view text, const Limits& limits)
    : name_(name), source_(text), limits_(limits) {}

Error Reader::refuse(ErrorCode code, std::string_view what) const {
  return unicode::fail_at(code, name_, source_, offset_, "{}", what);
}

Error Reader::expected(std::string_view what) const {
  return unicode::fail_at(ErrorCode::invalid_data, name_, source_, at_, "expected {}, found {}",
                          what, unicode::found_at(source_, at_));
}

Error Reader::no_room(size_t offset, std::string_view what, size_t limit) const {
  return unicode::fail_at(ErrorCode::no_room, name_, source_, offset,
                          "{}: expected at most {}, found more", what, limit);
}

void Reader::skip_blanks() {
  while (at_ < source_.size() && is_blank(source_[at_])) ++at_;
}

bool Reader::skip_digits() {
  const size_t begin = at_;
  while (is_digit(peek())) ++at_;
  return at_ > begin;
}

Result<Event> Reader::next() {
  if (!has_begun_) {
    has_begun_ = true;
    if (source_.size() > limits_.bytes) {
      return fail(ErrorCode::no_room, "{}: expected at most {} bytes, found {}", name_,
                  limits_.bytes, source_.size());
    }
    if (source_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
    skip_blanks();
    return next_value();
  }
  skip_blanks();
  if (!open_.empty()) return next_in_container();
  if (at_ < source_.size()) return expected("the end");
  offset_ = at_;
  return Event::end;
}

Result<Event> Reader::next_in_container() {
  if (has_key_) {
    if (peek() != ':') return expected("\":\"");
    ++at_;
    has_key_ = false;
    skip_blanks();
    return next_value();
  }
  Open& open = open_.back();
  if (at_ < source_.size() && source_[at_] == (open.is_object ? '}' : ']')) return close();
  if (open.item_count > 0) {
    if (peek() != ',') return expected(open.is_object ? "\",\" or \"}\"" : "\",\" or \"]\"");
    ++at_;
    skip_blanks();
  }
  ++open.item_count;
  return open.is_object ? next_key() : next_value();
}

Result<Event> Reader::next_key() {
  offset_ = at_;
  if (peek() != '"') return expected("a key in quotes");
  if (open_.back().item_count > limits_.members) {
    return no_room(offset_, "members of an object", limits_.members);
  }
  CAIRN_TRY(read_string());
  if (!limits_.may_repeat_keys) {
    keys_.push_back({.begin = key_bytes_.size(), .size = text_.size(), .offset = offset_});
    key_bytes_ += text_;
  }
  has_key_ = true;
  return Event::key;
}

Result<Event> Reader::close() {
  const Open open = open_.back();
  CAIRN_TRY(check_keys());
  key_bytes_.resize(open.first_byte);
  keys_.resize(open.first_key);
  open_.pop_back();
  offset_ = at_++;
  return open.is_object ? Event::end_object : Event::end_array;
}

// The first key of the innermost object that came before.
Status Reader::check_keys() {
  const std::span<Key> keys = std::span(keys_).subspan(open_.back().first_key);
  const auto bytes = [&](const Key& key) {
    return std::string_view(key_bytes_).substr(key.begin, key.size);
  };
  const Key* again = nullptr;
  const auto compare = [&](const Key& first, const Key& second) {
    if (bytes(first) != bytes(second)) return;
    if (again == nullptr || second.offset < again->offset) again = &second;
  };
  if (keys.size() <= kComparedMax) {
    for (size_t i = 0; i < keys.size(); ++i) {
      for (size_t j = i + 1; j < keys.size(); ++j) compare(keys[i], keys[j]);
    }
  } else {
    std::sort(keys.begin(), keys.end(), [&](const Key& a, const Key& b) {
      const int order = bytes(a).compare(bytes(b));
      return order != 0 ? order < 0 : a.offset < b.offset;
    });
    for (size_t i = 1; i < keys.size(); ++i) compare(keys[i - 1], keys[i]);
  }
  if (again == nullptr) return Ok{};
  return unicode::fail_at(ErrorCode::invalid_data, name_, source_, again->offset,
                          "the key {} comes twice", unicode::quote(bytes(*again)));
}

Result<Event> Reader::next_value() {
  offset_ = at_;
  if (++value_count_ > limits_.values) return no_room(at_, "values", limits_.values);
  const char c = peek();
  if (c == '{' || c == '[') {
    if (open_.size() >= limits_.depth) {
      return no_room(at_, "containers in each other", limits_.depth);
    }
    open_.push_back(
        {.is_object = c == '{', .first_key = keys_.size(), .first_byte = key_bytes_.size()});
    ++at_;
    return c == '{' ? Event::begin_object : Event::begin_array;
  }
  if (c == '"') {
    CAIRN_TRY(read_string());
    return Event::string;
  }
  if (c == '-' || is_digit(c)) {
    CAIRN_TRY(read_number());
    return Event::number;
  }
  for (const std::string_view word : {"true", "false", "null"}) {
    if (!source_.substr(at_).starts_with(word)) continue;
    at_ += word.size();
    return word == "null" ? Event::null : Event::boolean;
  }
  return expected("a JSON value");
}

Status Reader::read_number() {
  if (peek() == '-') ++at_;
  if (peek() == '0') {
    ++at_;
  } else if (!skip_digits()) {
    return expected("a digit");
  }
  if (peek() == '.') {
    ++at_;
    if (!skip_digits()) return expected("a digit");
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (peek() == '+' || peek() == '-') ++at_;
    if (!skip_digits()) return expected("a digit");
  }
  return Ok{};
}

Status Reader::read_string() {
  ++at_;
  text_.clear();
  while (peek() != '"') {
    const size_t begin = at_;
    while (at_ < source_.size() && is_plain(source_[at_])) ++at_;
    text_ += source_.substr(begin, at_ - begin);
    const char c = peek();
    if (c == '\\') {
      CAIRN_TRY(read_escape());
    } else if (uint8_t(c) >= 0x80) {
      const unicode::Character character = unicode::first_character(source_.substr(at_));
      if (character.length == 0) return expected("UTF-8");
      text_ += source_.substr(at_, character.length);
      at_ += character.length;
    } else if (c != '"') {
      return expected("a character of a string or its end");
    }
    if (text_.size() > limits_.string_bytes) {
      return no_room(offset_, "bytes of a string", limits_.string_bytes);
    }
  }
  ++at_;
  return Ok{};
}

Status Reader::read_escape() {
  ++at_;
  const size_t letter = at_ < source_.size() ? kLetters.find(peek()) : std::string::npos;
  if (letter != std::string::npos) {
    text_ += kMeant[letter];
    ++at_;
    return Ok{};
  }
  if (peek() != 'u') return expected("an escape");
  std::optional<uint32_t> unit = hex4(source_.substr(at_ + 1));
  if (!unit) return expected("four hexadecimal digits");
  at_ += 5;
  if (0xD800 <= *unit && *unit <= 0xDFFF) {
    const bool has_low = source_.substr(at_).starts_with("\\u");
    const uint32_t low = has_low ? hex4(source_.substr(at_ + 2)).value_or(0) : 0;
    if (*unit >= 0xDC00 || low < 0xDC00 || low > 0xDFFF) return expected("a whole surrogate pair");
    unit = 0x10000 + ((*unit - 0xD800) << 10) + (low - 0xDC00);
    at_ += 6;
  }
  unicode::append_utf8(char32_t(*unit), text_);
  return Ok{};
}

std::optional<int64_t> integer_of(std::string_view spelling) {
  int64_t value = 0;
  const char* const end = spelling.data() + spelling.size();
  const auto [stop, error] = std::from_chars(spelling.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

double real_of(std::string_view spelling) {
  double value = 0;
  const auto [stop, error] =
      std::from_chars(spelling.data(), spelling.data() + spelling.size(), value);
  if (error == std::errc()) return value;
  // Too large, or nearer to 0 than any double: what the first digit that is not 0 stands for.
  const size_t mark = std::min(spelling.find_first_of("eE"), spelling.size());
  const std::string_view digits = spelling.substr(0, mark);
  const auto point = int64_t(std::min(digits.find('.'), digits.size()));
  const size_t first = digits.find_first_of("123456789");
  if (first == std::string_view::npos) return 0;
  std::string_view exponent = spelling.substr(std::min(mark + 1, spelling.size()));
  const bool is_small = exponent.starts_with('-');
  if (is_small || exponent.starts_with('+')) exponent.remove_prefix(1);
  // Beyond the length of any text, more digits change nothing.
  int64_t power = 0;
  for (const char digit : exponent) power = std::min(power * 10 + (digit - '0'), int64_t(1) << 50);
  const int64_t place = point - int64_t(first) + (is_small ? -power : power);
  const double limit = place > 0 ? std::numeric_limits<double>::infinity() : 0;
  return spelling.starts_with('-') ? -limit : limit;
}

bool is_json(std::string_view text, const Limits& limits) {
  Reader reader("JSON", text, limits);
  while (true) {
    Result<Event> event = reader.next();
    if (!event) return false;
    if (*event == Event::end) return true;
    if (*event == Event::number && !std::isfinite(real_of(reader.spelling()))) return false;
  }
}

void append_escaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    constexpr std::string_view kShort = "\"\\\b\f\n\r\t", kNamed = "\"\\bfnrt";
    if (const size_t at = kShort.find(c); at != std::string_view::npos) {
      out += '\\';
      out += kNamed[at];
    } else if (uint8_t(c) < 0x20) {
      out += fmt::format("\\u{:04x}", uint32_t(uint8_t(c)));
    } else {
      out += c;
    }
  }
}

std::string escaped(std::string_view text) {
  std::string out;
  append_escaped(text, out);
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  append_escaped(text, out);
  return out + '"';
}

}  // namespace cairn::json
