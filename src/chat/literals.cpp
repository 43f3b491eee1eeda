// Small recursive readers over complete texts.
#include "chat/literals.h"

#include <algorithm>
#include <vector>

#include "chat/loose_match.h"
#include "json/reader.h"
#include "unicode/unicode.h"

namespace cairn::chat {

namespace {

// What is no JSON is a text: nothing is lost. Models may say a key twice.
constexpr json::Limits kJsonLimits{.depth = kLiteralDepthMax, .may_repeat_keys = true};

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

bool is_word(char letter) {
  return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         letter == '_';
}

// Reads literals of Python, of JSON, and of Gemma's braces, which differ little: there keys are
// bare and strings stand between marks.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text, std::string_view quote = {})
      : text_(text), quote_(quote) {}

  bool value(std::string& json, int depth) {
    skip_space();
    if (at_ == text_.size() || depth > kLiteralDepthMax) return false;
    if (starts_string()) return string(json);
    switch (text_[at_]) {
      case '[':
        return list(']', json, depth);
      case '(':
        return list(')', json, depth);
      case '{':
        ++at_;
        return members('}', json, depth);
      default:
        return word(json);
    }
  }

  // `key: value` pairs up to `end`, which is taken; 0: up to the end of the text.
  bool members(char end, std::string& json, int depth) {
    json += '{';
    for (bool is_first = true;; is_first = false) {
      skip_space();
      if (take_end(end)) break;
      if (!is_first && !take(',')) return false;
      skip_space();
      if (!is_first && take_end(end)) break;
      if (!is_first) json += ", ";
      if (!key(json)) return false;
      skip_space();
      if (!take(':')) return false;
      json += ": ";
      if (!value(json, depth + 1)) return false;
    }
    json += '}';
    return true;
  }

  // `name=value` pairs up to the end of the text.
  bool arguments(const Tool* tool, std::string& json) {
    json += '{';
    for (size_t position = 0;; ++position) {
      skip_space();
      if (at_ == text_.size()) break;
      if (position != 0 && !take(',')) return false;
      skip_space();
      if (at_ == text_.size()) break;
      if (position != 0) json += ", ";
      size_t end = at_;
      while (end < text_.size() && is_word(text_[end])) ++end;
      size_t equals = end;
      while (equals < text_.size() && is_space(text_[equals])) ++equals;
      const bool is_named = end > at_ && equals < text_.size() && text_[equals] == '=';
      if (is_named) {
        json += json::quoted(text_.substr(at_, end - at_));
        at_ = equals + 1;
      } else if (tool != nullptr && position < tool->types.size()) {
        json += json::quoted(tool->types[position].first);
      } else {
        return false;
      }
      json += ": ";
      if (!value(json, 0)) return false;
    }
    json += '}';
    return true;
  }

  bool is_at_end() {
    skip_space();
    return at_ == text_.size();
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  bool take(char letter) {
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  bool take_end(char end) { return end == 0 ? at_ == text_.size() : take(end); }
  bool starts_string() const {
    if (!quote_.empty() && text_.substr(at_).starts_with(quote_)) return true;
    return text_[at_] == '"' || text_[at_] == '\'';
  }

  bool list(char end, std::string& json, int depth) {
    ++at_;
    json += '[';
    for (bool is_first = true;; is_first = false) {
      skip_space();
      if (take(end)) break;
      if (!is_first && !take(',')) return false;
      skip_space();
      if (!is_first && take(end)) break;
      if (!is_first) json += ", ";
      if (!value(json, depth + 1)) return false;
    }
    json += ']';
    return true;
  }

  bool key(std::string& json) {
    if (at_ == text_.size()) return false;
    if (starts_string()) return string(json);
    const size_t end = std::min(text_.find(':', at_), text_.size());
    std::string_view name = trimmed(text_.substr(at_, end - at_));
    if (name.empty()) return false;
    at_ = end;
    json += json::quoted(name);
    return true;
  }

  bool string(std::string& json) {
    if (!quote_.empty() && text_.substr(at_).starts_with(quote_)) {
      at_ += quote_.size();
      const size_t end = text_.find(quote_, at_);
      if (end == std::string_view::npos) return false;
      json += json::quoted(text_.substr(at_, end - at_));
      at_ = end + quote_.size();
      return true;
    }
    const char end = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != end) {
      if (text_[at_] != '\\') {
        value += text_[at_++];
      } else if (!escape(value)) {
        return false;
      }
    }
    if (!take(end)) return false;
    json += json::quoted(value);
    return true;
  }

  bool escape(std::string& value) {
    if (at_ + 1 >= text_.size()) return false;
    const char letter = text_[at_ + 1];
    at_ += 2;
    switch (letter) {
      case 'n':
        value += '\n';
        return true;
      case 't':
        value += '\t';
        return true;
      case 'r':
        value += '\r';
        return true;
      case 'b':
        value += '\b';
        return true;
      case 'f':
        value += '\f';
        return true;
      case 'x':
        return code(2, value);
      case 'u':
        return code(4, value);
      case 'U':
        return code(8, value);
      case '\n':
        return true;
      case '\\':
      case '\'':
      case '"':
      case '/':
        value += letter;
        return true;
      default:  // Python keeps a backslash that means nothing.
        value += '\\';
        value += letter;
        return true;
    }
  }

  bool hex(size_t digit_count, uint32_t& point) {
    point = 0;
    if (text_.size() - at_ < digit_count) return false;
    for (size_t digit = 0; digit < digit_count; ++digit) {
      const char letter = text_[at_++];
      const char lower = letter >= 'A' && letter <= 'F' ? char(letter + ('a' - 'A')) : letter;
      const size_t found = std::string_view("0123456789abcdef").find(lower);
      if (found == std::string_view::npos) return false;
      point = point * 16 + uint32_t(found);
    }
    return true;
  }

  bool code(size_t digit_count, std::string& value) {
    uint32_t point = 0;
    if (!hex(digit_count, point)) return false;
    const bool is_high = point >= 0xd800 && point < 0xdc00;
    if (is_high && text_.substr(at_).starts_with("\\u")) {
      uint32_t low = 0;
      at_ += 2;
      if (!hex(4, low) || low < 0xdc00 || low > 0xdfff) return false;
      point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return false;
    unicode::append_utf8(point, value);
    return true;
  }

  // A number or one of the few names.
  bool word(std::string& json) {
    size_t end = at_;
    while (end < text_.size() &&
           (is_word(text_[end]) || text_[end] == '.' || text_[end] == '+' || text_[end] == '-')) {
      ++end;
    }
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end;
    if (name == "True" || name == "true") return json += "true", true;
    if (name == "False" || name == "false") return json += "false", true;
    if (name == "None" || name == "null") return json += "null", true;
    const bool is_number = !name.empty() && (is_digit(name[0]) || name[0] == '-');
    if (!is_number || !json::is_json(name, kJsonLimits)) return false;
    json += name;
    return true;
  }

  std::string_view text_;
  std::string_view quote_;
  size_t at_ = 0;
};

class ElementReader {
 public:
  ElementReader(std::string_view text, std::string_view mark, const Tool* tool)
      : text_(text), mark_(mark), tool_(tool) {}

  bool children(std::string_view parent, std::string& json, int depth) {
    if (depth > kLiteralDepthMax) return false;
    std::string items, members;
    bool is_list = true, is_first = true;
    while (true) {
      skip_space();
      if (at_ == text_.size() || closes(parent)) break;
      std::string name, value;
      if (!element(name, value, depth)) return false;
      is_list = is_list && name == "item";
      const char* separator = is_first ? "" : ", ";
      items += separator + value;
      members += separator + json::quoted(name) + ": " + value;
      is_first = false;
    }
    json += is_list && !is_first ? "[" + items + "]" : "{" + members + "}";
    return true;
  }

  bool is_at_end() const { return at_ == text_.size(); }

 private:
  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }
  std::string closing(std::string_view name) const {
    return std::string(mark_) + "</" + std::string(name) + ">";
  }
  bool closes(std::string_view name) const {
    return !name.empty() && text_.substr(at_).starts_with(closing(name));
  }

  bool element(std::string& name, std::string& value, int depth) {
    const std::string open = std::string(mark_) + "<";
    if (!text_.substr(at_).starts_with(open)) return false;
    const size_t begin = at_ + open.size();
    const size_t end = text_.find('>', begin);
    if (end == std::string_view::npos) return false;
    name = text_.substr(begin, end - begin);
    if (name.empty() || name.front() == '/') return false;
    at_ = end + 1;
    const std::string close = closing(name);
    const size_t stop = text_.find(close, at_);
    if (stop == std::string_view::npos) return false;
    const std::string_view inside = trimmed_left(text_.substr(at_, stop - at_));
    path_.push_back(name);
    if (inside.starts_with(open)) {
      if (!children(name, value, depth + 1) || !closes(name)) return false;
    } else {
      value = scalar_json(text_.substr(at_, stop - at_),
                          tool_ == nullptr ? ParameterType::any : tool_->type_at(path_));
      at_ = stop;
    }
    path_.pop_back();
    at_ += close.size();
    return true;
  }

  std::string_view text_, mark_;
  const Tool* tool_;
  std::vector<std::string> path_;  // The elements that are open.
  size_t at_ = 0;
};

}  // namespace

std::optional<std::string> python_literal_json(std::string_view text) {
  LiteralReader reader(text);
  std::string json;
  if (!reader.value(json, 0) || !reader.is_at_end()) return std::nullopt;
  return json;
}

std::optional<std::string> python_arguments_json(std::string_view text, const Tool* tool) {
  LiteralReader reader(text);
  std::string json;
  if (!reader.arguments(tool, json)) return std::nullopt;
  return json;
}

std::string scalar_json(std::string_view text, ParameterType type) {
  if (type == ParameterType::string) return json::quoted(text);
  const std::string_view value = trimmed(text);
  if (json::is_json(value, kJsonLimits)) return std::string(value);
  if (std::optional<std::string> json = python_literal_json(value)) return *json;
  return json::quoted(text);
}

std::optional<std::string> braces_json(std::string_view text, std::string_view quote) {
  LiteralReader reader(text, quote);
  std::string json;
  if (!reader.members(0, json, 0)) return std::nullopt;
  return json;
}

std::optional<std::string> elements_json(std::string_view text, std::string_view mark,
                                         const Tool* tool) {
  ElementReader reader(text, mark, tool);
  std::string json;
  if (!reader.children({}, json, 0) || !reader.is_at_end()) return std::nullopt;
  return json;
}

}  // namespace cairn::chat
