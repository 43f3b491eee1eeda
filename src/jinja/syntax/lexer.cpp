// One pass over the source. Between tags: text until the next `{{`, `{%` or `{#`. Inside a tag:
// tokens until its end, which counts only where all brackets are closed.
#include "jinja/syntax/lexer.h"

#include <algorithm>
#include <charconv>

#include "jinja/characters.h"
#include "jinja/syntax/string_literal.h"
#include "unicode/unicode.h"

namespace cairn::jinja {
namespace {

constexpr size_t npos = std::string_view::npos;

// Jinja reads \r\n and \r as \n and drops one newline at the very end.
std::string normalised(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      text += '\n';
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<LexerToken>> run() {
    while (at_ < source_.size()) CAIRN_TRY(read_text());
    push(TokenKind::end, at_);
    return std::move(tokens_);
  }

 private:
  struct Opening {
    size_t begin = npos;  // Of the tag; npos: there is none.
    size_t end = 0;       // After its sign.
    char sort = 0;        // '{', '%', '#', or 'r' for raw.
    char sign = 0;
  };

  Place place_of(size_t offset) {
    while (placed_ < offset) {
      if (source_[placed_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else {
        ++place_.column;
      }
      placed_ = next_character(source_, placed_);
    }
    return place_;
  }

  LexerToken& push(TokenKind kind, size_t offset, std::string text = {}) {
    tokens_.push_back({kind, place_of(offset), std::move(text)});
    return tokens_.back();
  }

  char char_at(size_t offset) const { return offset < source_.size() ? source_[offset] : '\0'; }

  size_t skip_spaces(size_t offset) const {
    while (offset < source_.size() && is_python_space(character_at(source_, offset))) {
      offset = next_character(source_, offset);
    }
    return offset;
  }

  // After `-%}`, `+%}` or `%}` at the offset (and, for a plain end, the newline that trim_blocks
  // takes); npos where no such end stands there.
  size_t end_of_tag(size_t offset, std::string_view closing, bool trims, bool allows_plus) const {
    const char sign = char_at(offset);
    if (sign == '-' && source_.substr(offset + 1, 2) == closing) return skip_spaces(offset + 3);
    if (sign == '+' && allows_plus && source_.substr(offset + 1, 2) == closing) return offset + 3;
    if (source_.substr(offset, 2) != closing) return npos;
    return offset + 2 + (trims && char_at(offset + 2) == '\n');
  }

  // `{% raw %}` as one piece; the offset is after the sign. Its end takes no newline.
  size_t end_of_raw_opening(size_t offset) const {
    offset = skip_spaces(offset);
    if (source_.substr(offset, 3) != "raw") return npos;
    return end_of_tag(skip_spaces(offset + 3), "%}", false, false);
  }

  Opening find_opening(size_t offset) const {
    for (size_t i = source_.find('{', offset); i != npos; i = source_.find('{', i + 1)) {
      const char sort = char_at(i + 1);
      if (sort != '{' && sort != '%' && sort != '#') continue;
      const char sign = char_at(i + 2) == '-' || char_at(i + 2) == '+' ? source_[i + 2] : '\0';
      Opening opening{i, i + 2 + (sign != 0), sort, sign};
      if (sort == '%') {
        const size_t raw_end = end_of_raw_opening(opening.end);
        if (raw_end != npos) {
          opening.end = raw_end;
          opening.sort = 'r';
        }
      }
      return opening;
    }
    return {};
  }

  // What white space before a tag leaves of the text [begin, end).
  size_t trimmed_end(size_t begin, size_t end, char sign, bool is_print) const {
    if (sign == '-') {
      while (end > begin) {
        const size_t before = previous_character(source_, end);
        if (!is_python_space(character_at(source_, before))) break;
        end = before;
      }
      return end;
    }
    if (sign == '+' || is_print) return end;
    size_t line = end;
    while (line > begin && source_[line - 1] != '\n') --line;
    if (line == begin && !line_starting_) return end;
    return skip_spaces(line) >= end ? line : end;
  }

  void push_text(size_t begin, size_t end) {
    if (begin < end) push(TokenKind::text, begin, std::string(source_.substr(begin, end - begin)));
  }

  void go_to(size_t offset) {
    line_starting_ = offset > 0 && source_[offset - 1] == '\n';
    at_ = offset;
  }

  Status read_text() {
    const Opening opening = find_opening(at_);
    if (opening.begin == npos) {
      push_text(at_, source_.size());
      at_ = source_.size();
      return Ok{};
    }
    push_text(at_, trimmed_end(at_, opening.begin, opening.sign, opening.sort == '{'));
    go_to(opening.end);
    if (opening.sort == '#') return skip_comment(opening.begin);
    if (opening.sort == 'r') return read_raw(opening.begin);
    return read_tag(opening);
  }

  Status skip_comment(size_t opened) {
    const size_t hash = source_.find("#}", at_);
    if (hash == npos) {
      return syntax_error(place_of(opened), "a comment: expected '#}}', found the end");
    }
    const bool has_sign = hash > at_ && (source_[hash - 1] == '-' || source_[hash - 1] == '+');
    go_to(end_of_tag(hash - has_sign, "#}", true, true));
    return Ok{};
  }

  Status read_raw(size_t opened) {
    for (size_t i = source_.find("{%", at_); i != npos; i = source_.find("{%", i + 1)) {
      const char sign = char_at(i + 2) == '-' || char_at(i + 2) == '+' ? source_[i + 2] : '\0';
      const size_t word = skip_spaces(i + 2 + (sign != 0));
      if (source_.substr(word, 6) != "endraw") continue;
      const size_t end = end_of_tag(skip_spaces(word + 6), "%}", true, true);
      if (end == npos) continue;
      push_text(at_, trimmed_end(at_, i, sign, false));
      go_to(end);
      return Ok{};
    }
    return syntax_error(place_of(opened), "a raw block: expected 'endraw', found the end");
  }

  Status read_tag(const Opening& opening) {
    const bool is_print = opening.sort == '{';
    push(is_print ? TokenKind::print_begin : TokenKind::block_begin, opening.begin);
    const std::string_view closing = is_print ? "}}" : "%}";
    std::string brackets;
    while (true) {
      at_ = skip_spaces(at_);
      if (at_ >= source_.size()) {
        return syntax_error(place_of(at_), "expected '{}', found the end of the template", closing);
      }
      if (brackets.empty()) {
        const size_t end = end_of_tag(at_, closing, !is_print, !is_print);
        if (end != npos) {
          push(is_print ? TokenKind::print_end : TokenKind::block_end, at_);
          go_to(end);
          return Ok{};
        }
      }
      CAIRN_TRY(read_token(brackets));
    }
  }

  Status read_token(std::string& brackets) {
    const char first = source_[at_];
    if (first == '\'' || first == '"') return read_string();
    if (first >= '0' && first <= '9') return read_number();
    if (is_identifier_start(character_at(source_, at_))) {
      const size_t begin = at_;
      while (at_ < source_.size() && is_identifier_part(character_at(source_, at_))) {
        at_ = next_character(source_, at_);
      }
      push(TokenKind::name, begin, std::string(source_.substr(begin, at_ - begin)));
      return Ok{};
    }
    return read_sign(brackets);
  }

  Status read_string() {
    const size_t begin = at_;
    size_t end = begin + 1;
    while (end < source_.size() && source_[end] != source_[begin]) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) {
      return syntax_error(place_of(begin), "a string: expected {} at its end, found the end",
                          source_[begin] == '"' ? "'\"'" : "\"'\"");
    }
    auto text = unescaped(source_.substr(begin + 1, end - begin - 1));
    if (!text) return syntax_error(place_of(begin), "{}", text.error().message);
    push(TokenKind::string, begin, std::move(*text));
    at_ = end + 1;
    return Ok{};
  }

  Status read_number() {
    const NumberLiteral number = number_literal(source_.substr(at_));
    // `a.0.1` is two subscripts, so what follows a dot is never a real.
    const bool after_dot = !tokens_.empty() && tokens_.back().kind == TokenKind::sign &&
                           tokens_.back().text == "." && at_ > 0 && source_[at_ - 1] == '.';
    if (number.is_real && !after_dot) {
      push(TokenKind::real, at_).real = number.real;
      at_ += number.size;
      return Ok{};
    }
    if (!number.fits) {
      return syntax_error(place_of(at_), "an integer: expected at most 64 bits, found '{}'",
                          source_.substr(at_, std::min<size_t>(number.integer_size, 60)));
    }
    push(TokenKind::integer, at_, std::string(source_.substr(at_, number.integer_size))).integer =
        number.integer;
    at_ += number.integer_size;
    return Ok{};
  }

  Status read_sign(std::string& brackets) {
    static constexpr std::string_view kPairs[] = {"//", "**", "==", "!=", ">=", "<="};
    static constexpr std::string_view kSingles = "+-/*%~[](){}><=.:|,;";
    const std::string_view two = source_.substr(at_, 2);
    const bool is_pair = std::find(std::begin(kPairs), std::end(kPairs), two) != std::end(kPairs);
    const char sign = source_[at_];
    if (!is_pair && kSingles.find(sign) == npos) {
      const size_t end = next_character(source_, at_);
      return syntax_error(place_of(at_), "expected an expression, found the character '{}'",
                          source_.substr(at_, end - at_));
    }
    if (!is_pair && (sign == '(' || sign == '[' || sign == '{')) {
      brackets += sign == '(' ? ')' : sign == '[' ? ']' : '}';
    } else if (!is_pair && (sign == ')' || sign == ']' || sign == '}')) {
      if (brackets.empty() || brackets.back() != sign) {
        return syntax_error(
            place_of(at_), "expected '{}', found '{}'",
            brackets.empty() ? std::string("an expression") : std::string(1, brackets.back()),
            sign);
      }
      brackets.pop_back();
    }
    push(TokenKind::sign, at_, std::string(is_pair ? two : source_.substr(at_, 1)));
    at_ += is_pair ? 2 : 1;
    return Ok{};
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starting_ = true;  // Whether what was read last ended a line.
  size_t placed_ = 0;
  Place place_;
  std::vector<LexerToken> tokens_;
};

}  // namespace

Result<std::vector<LexerToken>> tokenize(std::string_view source) {
  if (source.size() > kSourceBytesMax) {
    return fail(ErrorCode::no_room, "template: expected at most {} bytes, found {}",
                kSourceBytesMax, source.size());
  }
  const size_t valid = unicode::valid_utf8_bytes(source);
  if (valid != source.size()) {
    return fail(ErrorCode::invalid_data, "template: expected UTF-8, found byte 0x{:02x} at {}",
                unsigned(uint8_t(source[valid])), valid);
  }
  const std::string text = normalised(source);
  return Lexer(text).run();
}

std::string describe(const LexerToken& token) {
  switch (token.kind) {
    case TokenKind::text:
      return "text";
    case TokenKind::print_begin:
      return "'{{'";
    case TokenKind::print_end:
      return "'}}'";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    case TokenKind::string:
      return "a string";
    case TokenKind::real:
      return "a number";
    case TokenKind::end:
      return "the end of the template";
    default:
      return "'" + token.text.substr(0, 60) + "'";
  }
}

}  // namespace cairn::jinja
