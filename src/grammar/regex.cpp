// One pass; groups on an explicit stack. Greedy or not makes no difference to which texts fit.
#include "grammar/regex.h"

#include <algorithm>

#include "grammar/groups.h"
#include "unicode/place.h"

namespace cairn::grammar {

namespace {

constexpr std::string_view kName = "regex";

// What \d, \w and \s stand for, as in ECMAScript. Of blanks there are more in some dialects: what
// is surely one, and what may be one, so that \S fits everywhere.
CharacterSet class_of_letter(char letter, bool may_be) {
  switch (letter) {
    case 'd':
      return {{'0', '9'}};
    case 'w':
      return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    default:
      break;
  }
  if (!may_be) return {{'\t', '\r'}, {' ', ' '}};
  return {{'\t', '\r'},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
          {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
          {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

// How JSON writes the characters that may not stand for themselves in a string.
constexpr std::pair<char32_t, std::string_view> kEscapes[] = {
    {'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
    {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};

class Reader {
 public:
  Reader(std::string_view source, RegexStyle style, const Limits& limits, Expressions& expressions)
      : source_(source),
        style_(style),
        limits_(limits),
        expressions_(expressions),
        groups_(expressions) {}

  Result<Node> read() {
    if (source_.size() > limits_.regex_bytes) {
      return fail(ErrorCode::no_room, "regex: expected at most {} bytes, found {}",
                  limits_.regex_bytes, source_.size());
    }
    begin_alternative();
    while (at_ < source_.size()) CAIRN_TRY(read_one());
    if (groups_.depth() > 0) {
      return error(groups_.offset(), "this parenthesis is never closed");
    }
    end_alternative();
    const Node whole = groups_.close();
    if (style_.length.min <= 0 && style_.length.max >= kUnbounded) return whole;
    return Lengths(expressions_, units_).only(whole, style_.length);
  }

 private:
  template <class... Args>
  Error error(size_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    return unicode::fail_at(ErrorCode::invalid_argument, kName, source_, offset, format,
                            std::forward<Args>(args)...);
  }
  Error unsupported(size_t offset, std::string_view what) const {
    return unicode::fail_at(ErrorCode::unsupported, kName, source_, offset, "{} cannot be followed",
                            what);
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  bool take(std::string_view text) {
    if (!source_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  // ^ and $ stand only around whole alternatives; where they do not, anything may stand there.
  void begin_alternative() {
    is_open_ = false;
    is_repeatable_ = false;
    if (groups_.depth() > 0) return;
    bool is_anchored = false;
    while (take("^")) is_anchored = true;
    if (style_.is_search && !is_anchored) append_any();
    is_open_ = style_.is_search;
  }
  void end_alternative() {
    if (groups_.depth() == 0 && is_open_) append_any();
  }
  void append_any() {
    groups_.append(expressions_.repeat(characters(CharacterSet::all()), 0, kUnbounded));
  }

  Status read_one() {
    const size_t begin = at_;
    switch (const char c = peek()) {
      case '|':
        ++at_;
        end_alternative();
        groups_.alternate();
        begin_alternative();
        if (int64_t(groups_.alternative_count()) > limits_.alternative_count) {
          return unicode::fail_at(ErrorCode::no_room, kName, source_, begin,
                                  "expected at most {} alternatives, found more",
                                  limits_.alternative_count);
        }
        return Ok{};
      case '(':
        return open_group();
      case ')': {
        if (groups_.depth() == 0) return error(begin, "this parenthesis was never opened");
        ++at_;
        const bool was_open = opened_.back();
        opened_.pop_back();
        const Node group = groups_.close();
        groups_.append(group);
        is_open_ = was_open;
        is_repeatable_ = true;
        return Ok{};
      }
      case '^':
        return unsupported(begin, "^ inside an expression");
      case '$':
        ++at_;
        if (groups_.depth() > 0 || (at_ < source_.size() && peek() != '|' && peek() != '$')) {
          return unsupported(begin, "$ inside an expression");
        }
        is_open_ = false;
        is_repeatable_ = false;
        return Ok{};
      case '*':
      case '+':
      case '?':
        return read_repetition({.min = c == '+', .max = c == '?' ? 1 : kUnbounded, .bytes = 0});
      case '{':
        if (const CountText count = read_count(source_.substr(at_ + 1), false); count.bytes > 0) {
          return read_repetition(count);
        }
        break;
      default:
        break;
    }
    CAIRN_TRY(const Node atom, read_atom());
    groups_.append(atom);
    is_repeatable_ = true;
    return Ok{};
  }

  Status open_group() {
    const size_t begin = at_++;
    if (int64_t(groups_.depth()) >= limits_.nesting) {
      return unicode::fail_at(ErrorCode::no_room, kName, source_, begin,
                              "expected at most {} open parentheses, found more", limits_.nesting);
    }
    if (peek() == '?' && !take("?:")) {
      const bool is_named =
          take("?P<") || (peek(1) == '<' && peek(2) != '=' && peek(2) != '!' && take("?<"));
      if (!is_named) return unsupported(begin, "looking around, flags and other (?…) groups");
      const size_t end = source_.find('>', at_);
      if (end == std::string_view::npos) return error(begin, "this group's name is never closed");
      at_ = end + 1;
    }
    groups_.open(begin);
    opened_.push_back(is_open_);
    is_repeatable_ = false;
    return Ok{};
  }

  Status read_repetition(CountText count) {
    const size_t begin = at_;
    at_ += 1 + count.bytes;
    if (!is_repeatable_) {
      return error(begin, "expected something before {}", unicode::found_at(source_, begin));
    }
    const bool is_unbounded = count.max == kUnbounded;
    if (count.min > limits_.repeat_count || (!is_unbounded && count.max > limits_.repeat_count)) {
      return unicode::fail_at(ErrorCode::no_room, kName, source_, begin,
                              "expected at most {} repetitions, found more", limits_.repeat_count);
    }
    if (count.max < count.min) return error(begin, "expected a maximum not below the minimum");
    if (peek() == '+') return unsupported(begin, "a possessive repetition");
    take("?");
    groups_.last() = expressions_.repeat(groups_.last(), int32_t(count.min), int32_t(count.max));
    is_repeatable_ = false;
    return Ok{};
  }

  Result<Node> read_atom() {
    if (peek() == '.') {
      ++at_;
      const CharacterSet line_ends = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
      return characters(line_ends.inverse());
    }
    if (peek() == '[') return read_class();
    CharacterSet set;
    CAIRN_TRY(read_member(set, false, false));
    return characters(set);
  }

  Result<Node> read_class() {
    const size_t begin = at_++;
    CharacterSet set;
    const bool is_inverse = take("^");
    if (peek() == ']') return unsupported(begin, "a class that begins with ]");
    while (peek() != ']' || at_ >= source_.size()) {
      if (at_ >= source_.size()) return error(begin, "this class is never closed");
      const size_t range_begin = at_;
      CAIRN_TRY(const std::optional<char32_t> first, read_member(set, true, is_inverse));
      if (peek() != '-' || peek(1) == ']' || at_ + 1 >= source_.size()) continue;
      ++at_;
      CAIRN_TRY(const std::optional<char32_t> last, read_member(set, true, is_inverse));
      if (!first || !last || *last < *first) {
        return error(range_begin, "expected a range of characters, the first not behind the last");
      }
      set.add(*first, *last);
    }
    ++at_;
    return characters(is_inverse ? set.inverse() : set);
  }

  // One character or class escape, added to the set; the character if it was one.
  Result<std::optional<char32_t>> read_member(CharacterSet& set, bool in_class, bool is_inverse) {
    if (peek() == '\\') return read_escape(set, in_class, is_inverse);
    const auto character = decode_character(source_.substr(at_));
    if (!character) return error(at_, "expected UTF-8, found {}", unicode::found_at(source_, at_));
    at_ += character->bytes;
    set.add(character->value);
    return std::optional(character->value);
  }

  Result<std::optional<char32_t>> read_escape(CharacterSet& set, bool in_class, bool is_inverse) {
    const size_t begin = at_++;
    if (at_ >= source_.size()) return error(begin, "expected a character behind \\");
    const char letter = source_[at_++];
    const auto only = [&](char32_t character) {
      set.add(character);
      return std::optional(character);
    };
    constexpr std::string_view kLetters = "tnrfv", kValues = "\t\n\r\f\v";
    if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
      return only(char32_t(kValues[known]));
    }
    switch (letter) {
      case 'd':
      case 'w':
      case 's':
        set.add(class_of_letter(letter, is_inverse));
        return std::optional<char32_t>();
      case 'D':
      case 'W':
      case 'S':
        set.add(class_of_letter(char(letter - 'A' + 'a'), !is_inverse).inverse());
        return std::optional<char32_t>();
      case 'x':
      case 'u':
        return read_coded(begin, letter == 'x' ? 2 : 4, set);
      case '0':
        if ('0' <= peek() && peek() <= '9') return unsupported(begin, "an octal escape");
        return only(0);
      case 'b':
        if (in_class) return only('\b');
        [[fallthrough]];
      default:
        break;
    }
    if ('1' <= letter && letter <= '9') return unsupported(begin, "a back reference");
    if (('a' <= letter && letter <= 'z') || ('A' <= letter && letter <= 'Z')) {
      return unsupported(begin, unicode::quote(source_.substr(begin, 2)));
    }
    if (uint8_t(letter) >= 0x80) return error(begin, "expected an escape of ASCII");
    return only(char32_t(letter));
  }

  Result<std::optional<char32_t>> read_coded(size_t begin, size_t digits, CharacterSet& set) {
    int64_t value = -1;
    if (digits == 4 && peek() == '{') {
      const size_t end = source_.find('}', at_);
      const size_t count = end == std::string_view::npos ? 0 : end - at_ - 1;
      if (1 <= count && count <= 6) value = read_hex(source_.substr(at_ + 1), count);
      at_ += count + 2;
    } else {
      value = read_hex(source_.substr(at_), digits);
      at_ += digits;
    }
    if (0xD800 <= value && value <= 0xDBFF &&
        source_.substr(std::min(at_, source_.size())).starts_with("\\u")) {
      const int64_t low = read_hex(source_.substr(at_ + 2), 4);
      if (0xDC00 <= low && low <= 0xDFFF) {
        value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
        at_ += 6;
      }
    }
    if (value < 0) return error(begin, "expected hexadecimal digits");
    if (value > int64_t(kCharacterMax) || (0xD800 <= value && value <= 0xDFFF)) {
      return error(begin, "expected a character, found U+{:X}", value);
    }
    set.add(char32_t(value));
    return std::optional(char32_t(value));
  }

  Node characters(const CharacterSet& set) {
    if (!style_.is_json) return expressions_.characters(set);
    std::vector<Node> forms;
    CharacterSet plain = set;
    plain.remove({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
    const bool has_plain = !plain.ranges().empty();
    if (has_plain) forms.push_back(expressions_.characters(plain));
    for (const auto& [character, escape] : kEscapes) {
      if (set.contains(character)) forms.push_back(expressions_.text(escape));
    }
    // The other control characters only where they are asked for.
    for (char32_t c = 0; forms.empty() && c < 0x20; ++c) {
      if (set.contains(c))
        forms.push_back(expressions_.text(fmt::format("\\u{:04x}", uint32_t(c))));
    }
    units_.push_back(expressions_.choice(forms));
    return units_.back();
  }

  std::string_view source_;
  RegexStyle style_;
  const Limits& limits_;
  Expressions& expressions_;
  Groups groups_;
  size_t at_ = 0;
  bool is_repeatable_ = false;
  bool is_open_ = false;  // More text may follow the alternative that is being read.
  std::vector<bool> opened_;
  std::vector<Node> units_;  // What stands for one character each.
};

}  // namespace

Result<Node> read_regex(std::string_view source, RegexStyle style, const Limits& limits,
                        Expressions& expressions) {
  return Reader(source, style, limits, expressions).read();
}

}  // namespace cairn::grammar
