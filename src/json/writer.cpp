// JSON text out of a tree. A tree is as deep as the reader's limit, or as the code that made it.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "json/value.h"
#include "unicode/unicode.h"

namespace cairn::json {

namespace {

// Reals with so many digits before the point, or zeros behind it, are written without exponent.
constexpr int kWholeDigitsMax = 15, kZerosMax = 4;

// The shortest digits that read back as the same double: 1.0, 0.001, 1e+16.
std::string spelling_of(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  std::array<char, 40> buffer;
  const auto made = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(value),
                                  std::chars_format::scientific);
  const std::string_view all(buffer.data(), size_t(made.ptr - buffer.data()));
  const size_t mark = all.find('e');
  std::string digits(1, all[0]);
  if (mark > 2) digits += all.substr(2, mark - 2);
  int exponent = 0;
  const size_t sign = mark + 1;
  std::from_chars(all.data() + sign + (all[sign] == '+'), all.data() + all.size(), exponent);
  // value = 0.digits * 10^point.
  const int point = exponent + 1, count = int(digits.size());
  std::string text = value < 0 ? "-" : "";
  if (count <= point && point <= kWholeDigitsMax) {
    return text + digits + std::string(size_t(point - count), '0') + ".0";
  }
  if (0 < point && point <= kWholeDigitsMax) {
    return text + digits.substr(0, size_t(point)) + "." + digits.substr(size_t(point));
  }
  if (-kZerosMax < point && point <= 0) {
    return text + "0." + std::string(size_t(-point), '0') + digits;
  }
  text += digits[0];
  if (count > 1) text += "." + digits.substr(1);
  return text + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
}

// Bytes at the beginning that belong to one character of which some are missing or wrong.
size_t broken_bytes(std::string_view text) {
  for (size_t count = std::min<size_t>(3, text.size()); count > 1; --count) {
    if (unicode::unfinished_utf8_bytes(text.substr(0, count)) == count) return count;
  }
  return 1;
}

// Bytes at the beginning that are written as they are, whatever the style.
size_t plain_bytes(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c < 0x7F && c != '"' && c != '\\'; };
  return size_t(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
}

void append_coded(char32_t code, std::string& out) {
  const auto number = uint32_t(code);
  if (number < 0x10000) {
    out += fmt::format("\\u{:04x}", number);
  } else {
    out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (number >> 10), 0xDC00 + (number & 0x3FF));
  }
}

}  // namespace

class Writer {
 public:
  explicit Writer(const TextStyle& style) : style_(style) {}

  void write(const Value& value, int level) {
    switch (value.kind()) {
      case Value::Kind::null:
        out_ += "null";
        break;
      case Value::Kind::boolean:
        out_ += std::get<bool>(value.content_) ? "true" : "false";
        break;
      case Value::Kind::integer:
        out_ += fmt::format("{}", std::get<int64_t>(value.content_));
        break;
      case Value::Kind::real:
        real(std::get<Value::Real>(value.content_));
        break;
      case Value::Kind::string:
        string(*value.as_text());
        break;
      case Value::Kind::array:
        list('[', ']', value.items().size(), level,
             [&](size_t i) { write(value.items()[i], level + 1); });
        break;
      case Value::Kind::object:
        list('{', '}', value.members().size(), level, [&](size_t i) {
          string(value.members()[i].key);
          out_ += style_.indent < 0 ? ":" : ": ";
          write(value.members()[i].value, level + 1);
        });
        break;
    }
  }

  std::string text() && { return std::move(out_); }

 private:
  template <class Item>
  void list(char open, char close, size_t count, int level, const Item& item) {
    out_ += open;
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += ',';
      new_line(level + 1);
      item(i);
    }
    if (count > 0) new_line(level);
    out_ += close;
  }

  void new_line(int level) {
    if (style_.indent < 0) return;
    out_ += '\n';
    out_.append(size_t(level * style_.indent), ' ');
  }

  void real(const Value::Real& real) {
    out_ += real.spelling.empty() ? spelling_of(real.value) : real.spelling;
  }

  void string(std::string_view text) {
    out_ += '"';
    while (!text.empty()) {
      const size_t plain = plain_bytes(text);
      out_ += text.substr(0, plain);
      text.remove_prefix(plain);
      if (text.empty()) break;
      const unicode::Character character = unicode::first_character(text);
      const size_t bytes = character.length == 0 ? broken_bytes(text) : character.length;
      const char32_t code = character.length == 0 ? 0xFFFD : character.code;
      if (style_.is_ascii && code >= 0x7F) {
        append_coded(code, out_);
      } else if (character.length == 0) {
        unicode::append_utf8(code, out_);
      } else {
        append_escaped(text.substr(0, bytes), out_);
      }
      text.remove_prefix(bytes);
    }
    out_ += '"';
  }

  TextStyle style_;
  std::string out_;
};

std::string to_text(const Value& value, const TextStyle& style) {
  Writer writer(style);
  writer.write(value, 0);
  return std::move(writer).text();
}

}  // namespace cairn::json
