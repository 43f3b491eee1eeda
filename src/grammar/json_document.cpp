// A reader with its own stack: containers that are open, and what is expected next.
#include "grammar/json_document.h"

#include <algorithm>
#include <unordered_set>

#include "grammar/characters.h"
#include "grammar/groups.h"
#include "grammar/source.h"

namespace cairn::grammar {

using Kind = JsonDocument::Kind;

class JsonReader {
 public:
  JsonReader(std::string_view name, std::string_view source, size_t depth_max)
      : name_(name), depth_max_(depth_max) {
    document_.source_ = source;
    source_ = document_.source_;
  }

  Result<JsonDocument> read() {
    skip();
    CAIRN_TRY(read_value());
    while (!open_.empty()) CAIRN_TRY(read_next());
    skip();
    if (at_ < source_.size()) return expected("the end");
    return std::move(document_);
  }

 private:
  struct Open {
    uint32_t value;
    std::unordered_set<std::string> keys = {};
  };

  Error expected(std::string_view what) const {
    return fail_at(ErrorCode::invalid_data, name_, source_, at_, "expected {}, found {}", what,
                   found_at(source_, at_));
  }
  char peek() const { return at_ < source_.size() ? source_[at_] : '\0'; }
  void skip() {
    while (at_ < source_.size() && std::string_view(" \t\n\r").find(peek()) != std::string::npos) {
      ++at_;
    }
  }
  JsonDocument::Value& value(uint32_t number) { return document_.values_[number]; }

  // What stands next in the innermost open container: a member or item, or its end.
  Status read_next() {
    const uint32_t container = open_.back().value;
    const bool is_object = value(container).kind == Kind::object;
    const bool is_first = value(container).items.empty() && value(container).members.empty();
    skip();
    if (peek() == (is_object ? '}' : ']') && at_ < source_.size()) {
      ++at_;
      value(container).size = at_ - value(container).offset;
      open_.pop_back();
      return Ok{};
    }
    if (!is_first) {
      if (peek() != ',') return expected(is_object ? "\",\" or \"}\"" : "\",\" or \"]\"");
      ++at_;
      skip();
    }
    if (!is_object) {
      value(container).items.push_back(uint32_t(document_.values_.size()));
      return read_value();
    }
    const size_t offset = at_;
    if (peek() != '"') return expected("a key in quotes");
    std::string key;
    CAIRN_TRY(read_string(key));
    if (!open_.back().keys.insert(key).second) {
      return fail_at(ErrorCode::invalid_data, name_, source_, offset, "the key {} comes twice",
                     quote(key));
    }
    skip();
    if (peek() != ':') return expected("\":\"");
    ++at_;
    skip();
    value(container).members.push_back(
        {std::move(key), uint32_t(document_.values_.size()), offset});
    return read_value();
  }

  Status read_value() {
    const auto number = uint32_t(document_.values_.size());
    document_.values_.push_back({.offset = at_});
    const char c = peek();
    if (c == '{' || c == '[') {
      if (open_.size() >= depth_max_) {
        return fail_at(ErrorCode::no_room, name_, source_, at_,
                       "expected at most {} containers in each other, found more", depth_max_);
      }
      value(number).kind = c == '{' ? Kind::object : Kind::array;
      open_.push_back({number});
      ++at_;
      return Ok{};
    }
    if (c == '"') {
      std::string text;
      CAIRN_TRY(read_string(text));
      value(number).kind = Kind::string;
      value(number).text = std::move(text);
    } else if (c == '-' || ('0' <= c && c <= '9')) {
      value(number).kind = Kind::number;
      CAIRN_TRY(read_number());
    } else {
      CAIRN_TRY(read_word(value(number)));
    }
    value(number).size = at_ - value(number).offset;
    return Ok{};
  }

  Status read_word(JsonDocument::Value& found) {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!source_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      found.kind = word == "null" ? Kind::null : Kind::boolean;
      return Ok{};
    }
    return expected("a JSON value");
  }

  bool skip_digits() {
    const size_t begin = at_;
    while ('0' <= peek() && peek() <= '9') ++at_;
    return at_ > begin;
  }

  Status read_number() {
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

  Status read_string(std::string& text) {
    ++at_;
    while (peek() != '"') {
      if (uint8_t(peek()) < 0x20) return expected("a character of a string or its end");
      if (peek() == '\\') {
        CAIRN_TRY(read_escape(text));
        continue;
      }
      const auto character = decode_character(source_.substr(at_));
      if (!character) return expected("UTF-8");
      text += source_.substr(at_, character->bytes);
      at_ += character->bytes;
    }
    ++at_;
    return Ok{};
  }

  Status read_escape(std::string& text) {
    ++at_;
    constexpr std::string_view kLetters = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
    const size_t letter = at_ < source_.size() ? kLetters.find(peek()) : std::string::npos;
    if (letter != std::string::npos) {
      text += kValues[letter];
      ++at_;
      return Ok{};
    }
    if (peek() != 'u') return expected("an escape");
    int64_t unit = read_hex(source_.substr(at_ + 1), 4);
    if (unit < 0) return expected("four hexadecimal digits");
    at_ += 5;
    if (0xD800 <= unit && unit <= 0xDFFF) {
      const bool has_low = source_.substr(at_).starts_with("\\u");
      const int64_t low = has_low ? read_hex(source_.substr(at_ + 2), 4) : -1;
      if (unit >= 0xDC00 || low < 0xDC00 || low > 0xDFFF) return expected("a whole surrogate pair");
      unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
      at_ += 6;
    }
    append_character(char32_t(unit), text);
    return Ok{};
  }

  std::string_view name_;
  size_t depth_max_;
  std::string_view source_;
  JsonDocument document_;
  std::vector<Open> open_;
  size_t at_ = 0;
};

Result<JsonDocument> JsonDocument::read(std::string_view name, std::string_view source,
                                        size_t depth_max) {
  return JsonReader(name, source, depth_max).read();
}

const JsonDocument::Member* JsonDocument::find(uint32_t object, std::string_view key) const {
  const std::vector<Member>& members = values_[object].members;
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const Member& member) { return member.key == key; });
  return found == members.end() ? nullptr : &*found;
}

std::string json_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    if (const size_t at = kSpecial.find(c); at != std::string_view::npos) {
      escaped += '\\';
      escaped += kLetters[at];
    } else if (uint8_t(c) < 0x20) {
      escaped += fmt::format("\\u{:04x}", uint32_t(uint8_t(c)));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string JsonDocument::compact(uint32_t number) const {
  // Blanks outside of strings go; a string alone is escaped no more than it must be.
  const Value& root = values_[number];
  std::string out;
  const std::string_view text = spelling(number);
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '"') {
      if (std::string_view(" \t\n\r").find(text[at]) == std::string_view::npos) out += text[at];
      ++at;
      continue;
    }
    size_t end = at + 1;
    while (text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    out += text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return root.kind == Kind::string ? "\"" + json_escaped(root.text) + "\"" : out;
}

}  // namespace cairn::grammar
