// One pass over the text. A newline ends a rule unless parentheses are open, or "|" or "::=" stands
// before it. Rules that are called before they are there are declared by the call.
#include "grammar/gbnf.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "grammar/groups.h"
#include "unicode/place.h"

namespace cairn::grammar {

namespace {

constexpr std::string_view kName = "grammar";

bool is_name_character(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' ||
         c == '_';
}

class Reader {
 public:
  Reader(std::string_view source, const Limits& limits, Expressions& expressions)
      : source_(source), limits_(limits), expressions_(expressions) {}

  Result<Rule> read() {
    if (source_.size() > limits_.source_bytes) {
      return fail(ErrorCode::no_room, "grammar: expected at most {} bytes, found {}",
                  limits_.source_bytes, source_.size());
    }
    if (source_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    skip(true);
    while (at_ < source_.size()) CAIRN_TRY(read_rule());
    CAIRN_TRY(check_calls());
    const auto root = rules_.find("root");
    if (root == rules_.end()) return error(0, "expected a rule named \"root\", found none");
    return root->second.rule;
  }

 private:
  struct Called {
    Rule rule;
    size_t offset;
  };

  template <class... Args>
  Error error(size_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    return unicode::fail_at(ErrorCode::invalid_argument, kName, source_, offset, format,
                            std::forward<Args>(args)...);
  }
  template <class... Args>
  Error over_limit(fmt::format_string<Args...> format, Args&&... args) const {
    return unicode::fail_at(ErrorCode::no_room, kName, source_, at_, format,
                            std::forward<Args>(args)...);
  }
  Error expected(std::string_view what) const {
    return error(at_, "expected {}, found {}", what, unicode::found_at(source_, at_));
  }

  char peek() const { return at_ < source_.size() ? source_[at_] : '\0'; }
  bool take(std::string_view text) {
    if (!source_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  // Blanks and comments; line ends too where the rule goes on behind them.
  void skip(bool over_lines) {
    while (at_ < source_.size()) {
      const char c = source_[at_];
      if (c == '#') {
        while (at_ < source_.size() && source_[at_] != '\n' && source_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  std::string_view take_name() {
    const size_t begin = at_;
    while (is_name_character(peek())) ++at_;
    return source_.substr(begin, at_ - begin);
  }

  Result<Rule> rule_of(std::string_view name, size_t offset) {
    const auto known = rules_.find(name);
    if (known != rules_.end()) return known->second.rule;
    if (int64_t(rules_.size()) >= limits_.rule_count) {
      return over_limit("expected at most {} rules, found more", limits_.rule_count);
    }
    const Rule rule = expressions_.declare(std::string(name));
    rules_.emplace(name, Called{rule, offset});
    return rule;
  }

  Status check_calls() const {
    const Called* missing = nullptr;
    for (const auto& [name, called] : rules_) {
      if (expressions_.is_defined(called.rule)) continue;
      if (missing == nullptr || called.offset < missing->offset) missing = &called;
    }
    if (missing == nullptr) return Ok{};
    return error(missing->offset, "rule {} is called and not defined",
                 unicode::quote(expressions_.name(missing->rule)));
  }

  Status read_rule() {
    const size_t begin = at_;
    const std::string_view name = take_name();
    if (name.empty()) return expected("a rule's name");
    skip(false);
    if (!take("::=")) return expected("\"::=\"");
    skip(true);
    CAIRN_TRY(const Rule rule, rule_of(name, begin));
    if (expressions_.is_defined(rule))
      return error(begin, "rule {} is there twice", unicode::quote(name));
    CAIRN_TRY(const Node body, read_body());
    expressions_.define(rule, body);
    skip(false);
    if (at_ < source_.size() && peek() != '\n' && peek() != '\r') {
      return expected("the end of the line");
    }
    skip(true);
    return Ok{};
  }

  Result<Node> read_body() {
    Groups groups(expressions_);
    while (true) {
      skip(groups.depth() > 0);
      const char c = peek();
      if (c == '|') {
        ++at_;
        skip(true);
        groups.alternate();
        if (int64_t(++alternative_count_) > limits_.alternative_count) {
          return over_limit("expected at most {} alternatives, found more",
                            limits_.alternative_count);
        }
      } else if (c == '(') {
        if (int64_t(groups.depth()) >= limits_.nesting) {
          return over_limit("expected at most {} open parentheses, found more", limits_.nesting);
        }
        groups.open(at_++);
      } else if (c == ')' && groups.depth() > 0) {
        ++at_;
        const Node group = groups.close();
        groups.append(group);
      } else if (c == '*' || c == '+' || c == '?' || c == '{') {
        CAIRN_TRY(read_repetition(groups));
      } else if (begins_element()) {
        CAIRN_TRY(const Node element, read_element());
        groups.append(element);
      } else {
        break;
      }
    }
    if (groups.depth() > 0) return error(groups.offset(), "this parenthesis is never closed");
    return groups.close();
  }

  Status read_repetition(Groups& groups) {
    const size_t begin = at_;
    if (!groups.has_last()) {
      return error(begin, "expected something before {}", unicode::found_at(source_, begin));
    }
    CountText count{.min = 0, .max = kUnbounded, .bytes = 0};
    const char sign = source_[at_++];
    if (sign == '+') count.min = 1;
    if (sign == '?') count.max = 1;
    if (sign == '{') {
      count = read_count(source_.substr(at_), true);
      if (count.bytes == 0) return expected("a count such as {2}, {2,} or {2,5}");
      at_ += count.bytes;
    }
    const bool is_unbounded = count.max == kUnbounded;
    if (count.min > limits_.repeat_count || (!is_unbounded && count.max > limits_.repeat_count)) {
      return unicode::fail_at(ErrorCode::no_room, kName, source_, begin,
                              "expected at most {} repetitions, found more", limits_.repeat_count);
    }
    if (count.max < count.min) return error(begin, "expected a maximum not below the minimum");
    groups.last() = expressions_.repeat(groups.last(), int32_t(count.min), int32_t(count.max));
    if (int64_t(expressions_.item(groups.last()).depth) > 2 * limits_.nesting + 2) {
      return over_limit("expected at most {} nested repetitions, found more", limits_.nesting);
    }
    return Ok{};
  }

  bool begins_element() const {
    const char c = peek();
    return at_ < source_.size() && (c == '"' || c == '[' || c == '.' || c == '<' || c == '!' ||
                                    (is_name_character(c) && !begins_rule()));
  }
  // A name and "::=" is the next rule: reported where it stands on the same line.
  bool begins_rule() const {
    size_t at = at_;
    while (at < source_.size() && is_name_character(source_[at])) ++at;
    while (at < source_.size() && (source_[at] == ' ' || source_[at] == '\t')) ++at;
    return source_.substr(at).starts_with("::=");
  }

  Result<Node> read_element() {
    const size_t begin = at_;
    switch (peek()) {
      case '"':
        return read_text();
      case '[':
        return read_class();
      case '.':
        ++at_;
        return expressions_.characters(CharacterSet::all());
      case '<':
      case '!':
        return read_token();
      default:
        CAIRN_TRY(const Rule rule, rule_of(take_name(), begin));
        return expressions_.call(rule);
    }
  }

  Result<char32_t> read_character() {
    if (peek() != '\\') {
      const auto character = decode_character(source_.substr(at_));
      if (!character)
        return error(at_, "expected UTF-8, found {}", unicode::found_at(source_, at_));
      at_ += character->bytes;
      return character->value;
    }
    const size_t begin = at_;
    const char escape = at_ + 1 < source_.size() ? source_[at_ + 1] : '\0';
    at_ += 2;
    constexpr std::string_view kLetters = "trn\\\"[]-^", kValues = "\t\r\n\\\"[]-^";
    if (const size_t letter = kLetters.find(escape); letter != std::string_view::npos) {
      return char32_t(kValues[letter]);
    }
    const size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    if (digits == 0) {
      return error(begin, "expected an escape such as \\n, \\\", \\x0A or \\u000A, found {}",
                   unicode::quote(source_.substr(begin, 2)));
    }
    const int64_t value = read_hex(source_.substr(std::min(at_, source_.size())), digits);
    if (value < 0) return error(begin, "expected {} hexadecimal digits", digits);
    at_ += digits;
    if (value > int64_t(kCharacterMax) || (0xD800 <= value && value <= 0xDFFF)) {
      return error(begin, "expected a character, found U+{:X}", value);
    }
    return char32_t(value);
  }

  Result<Node> read_text() {
    const size_t begin = at_++;
    std::string bytes;
    while (peek() != '"') {
      if (at_ >= source_.size() || peek() == '\n') {
        return error(begin, "this text is never closed");
      }
      CAIRN_TRY(const char32_t character, read_character());
      append_character(character, bytes);
    }
    ++at_;
    return expressions_.text(bytes);
  }

  Result<Node> read_class() {
    const size_t begin = at_++;
    CharacterSet set;
    const bool is_inverse = take("^");
    while (peek() != ']') {
      if (at_ >= source_.size()) return error(begin, "this class is never closed");
      const size_t range_begin = at_;
      CAIRN_TRY(const char32_t first, read_character());
      char32_t last = first;
      if (peek() == '-' && at_ + 1 < source_.size() && source_[at_ + 1] != ']') {
        ++at_;
        CAIRN_TRY(last, read_character());
      }
      if (last < first) {
        return error(range_begin, "expected a range's last character not before its first");
      }
      set.add(first, last);
    }
    ++at_;
    return expressions_.characters(is_inverse ? set.inverse() : set);
  }

  Result<Node> read_token() {
    const size_t begin = at_;
    TokenPattern pattern;
    pattern.is_inverse = take("!");
    if (!take("<")) return expected("a token such as <[7]> or <name>");
    const size_t end = source_.find_first_of(">\n", at_);
    if (end == std::string_view::npos || source_[end] != '>') {
      return error(begin, "this token is never closed");
    }
    const std::string_view name = source_.substr(at_, end - at_);
    at_ = end + 1;
    if (name.starts_with('[')) {
      const char* last = name.data() + name.size() - 1;
      const auto [behind, trouble] = std::from_chars(name.data() + 1, last, pattern.id);
      if (*last != ']' || trouble != std::errc() || behind != last || pattern.id < 0) {
        return error(begin, "expected a token's number, found {}", unicode::quote(name));
      }
    } else {
      pattern.text = source_.substr(end - name.size() - 1, name.size() + 2);
    }
    if (int64_t(expressions_.patterns().size()) >= limits_.token_count) {
      return over_limit("expected at most {} tokens, found more", limits_.token_count);
    }
    return expressions_.token(std::move(pattern));
  }

  std::string_view source_;
  const Limits& limits_;
  Expressions& expressions_;
  size_t at_ = 0;
  size_t alternative_count_ = 0;
  std::unordered_map<std::string_view, Called> rules_;
};

}  // namespace

Result<Rule> read_gbnf(std::string_view source, const Limits& limits, Expressions& expressions) {
  return Reader(source, limits, expressions).read();
}

}  // namespace cairn::grammar
