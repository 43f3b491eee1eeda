// String operations over UTF-8, by byte where that is the same as by character.
#include "jinja/builtins/string_functions.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "jinja/characters.h"
#include "jinja/operations.h"
#include "unicode/unicode.h"

namespace cairn::jinja {
namespace {

constexpr size_t npos = std::string_view::npos;
// Changing a character by what Unicode says of it.
constexpr size_t kChangeWork = 2 * kPropertyWork;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x80; });
}

Status prepare_characters(Runtime& runtime, const MarkedText& text, size_t work) {
  CAIRN_TRY(runtime.work(text.size() * work));
  return runtime.prepare_string(text.size());
}

bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code) || is_title(code);
}

bool is_absent(const Value& value) {
  return value.is(Kind::absent) || value.is(Kind::none);
}

// Whether letters stand before, and none after.
bool ends_word(std::string_view text, size_t at) {
  bool follows_letter = false;
  for (size_t back = at; back > 0 && !follows_letter;) {
    back = previous_character(text, back);
    const char32_t code = character_at(text, back);
    if (is_case_ignorable(code)) continue;
    if (!is_cased(code)) return false;
    follows_letter = true;
  }
  if (!follows_letter) return false;
  for (size_t on = next_character(text, at); on < text.size(); on = next_character(text, on)) {
    const char32_t code = character_at(text, on);
    if (!is_case_ignorable(code)) return !is_cased(code);
  }
  return true;
}

// A capital sigma has two small ones, of which one ends words.
void append_lower_at(std::string_view text, size_t at, std::string& out) {
  const char32_t code = character_at(text, at);
  const bool is_final = code == U'\u03A3' && ends_word(text, at);
  is_final ? unicode::append_utf8(U'\u03C2', out) : append_lower(code, out);
}

void append_swapped(std::string_view text, size_t at, std::string& out) {
  const char32_t code = character_at(text, at);
  if (is_upper(code)) {
    append_lower_at(text, at, out);
  } else if (is_lower(code)) {
    append_upper(code, out);
  } else {
    unicode::append_utf8(code, out);
  }
}

Status keep_piece(Runtime& runtime, std::vector<MarkedText>& pieces, MarkedText piece) {
  CAIRN_TRY(runtime.work(piece.size() + 64));
  CAIRN_TRY(runtime.heap().check_room((pieces.size() + 1) * sizeof(MarkedText)));
  pieces.push_back(std::move(piece));
  return Ok{};
}

Result<std::vector<MarkedText>> split_at_spaces(Runtime& runtime, const MarkedText& text,
                                                int64_t count_max) {
  const std::string_view bytes = text.bytes();
  const auto is_space = [&](size_t at) { return is_python_space(character_at(bytes, at)); };
  std::vector<MarkedText> pieces;
  size_t at = 0;
  while (true) {
    while (at < bytes.size() && is_space(at)) at = next_character(bytes, at);
    if (at >= bytes.size()) return pieces;
    size_t end = at;
    if (count_max >= 0 && int64_t(pieces.size()) >= count_max) {
      end = bytes.size();
    } else {
      while (end < bytes.size() && !is_space(end)) end = next_character(bytes, end);
    }
    CAIRN_TRY(keep_piece(runtime, pieces, text.slice(at, end)));
    if (count_max >= 0 && int64_t(pieces.size()) > count_max) return pieces;
    at = end;
  }
}

Result<std::vector<MarkedText>> split_at_spaces_from_right(Runtime& runtime, const MarkedText& text,
                                                           int64_t count_max) {
  const std::string_view bytes = text.bytes();
  const auto space_before = [&](size_t at) {
    return is_python_space(character_at(bytes, previous_character(bytes, at)));
  };
  std::vector<MarkedText> pieces;
  size_t end = bytes.size();
  while (true) {
    while (end > 0 && space_before(end)) end = previous_character(bytes, end);
    if (end == 0) break;
    size_t begin = end;
    if (count_max >= 0 && int64_t(pieces.size()) >= count_max) {
      begin = 0;
    } else {
      while (begin > 0 && !space_before(begin)) begin = previous_character(bytes, begin);
    }
    CAIRN_TRY(keep_piece(runtime, pieces, text.slice(begin, end)));
    if (count_max >= 0 && int64_t(pieces.size()) > count_max) break;
    end = begin;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace

size_t find_bytes(std::string_view text, std::string_view wanted, size_t from) {
  if (from > text.size()) return npos;
  if (wanted.empty()) return from;
  // glibc's memmem is linear; std::string_view::find is so for short patterns only.
  if (wanted.size() <= 16) return text.find(wanted, from);
  const void* at = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return at == nullptr ? npos : size_t(static_cast<const char*>(at) - text.data());
}

Result<size_t> find_bytes_from_right(Runtime& runtime, std::string_view text,
                                     std::string_view wanted) {
  // Long patterns pay before each stretch, so that a hit near the end stays cheap.
  constexpr size_t kStretch = 4096;
  if (wanted.size() <= 64) {
    const size_t at = text.rfind(wanted);
    CAIRN_TRY(runtime.work((text.size() - (at == npos ? 0 : at)) * kSearchWork));
    return at;
  }
  for (size_t end = text.size(); end >= wanted.size();) {
    const size_t begin = end - wanted.size() > kStretch ? end - wanted.size() - kStretch : 0;
    CAIRN_TRY(runtime.work((end - wanted.size() - begin + 1) * (wanted.size() / 8)));
    const size_t at = text.substr(begin, end - begin).rfind(wanted);
    if (at != npos) return begin + at;
    if (begin == 0) break;
    end = begin + wanted.size() - 1;
  }
  return npos;
}

namespace {

// The characters of a string, in order.
Result<std::u32string> character_set(Runtime& runtime, const Value& characters) {
  if (!characters.is(Kind::string)) return wrong_type("strip", "a string", characters);
  const std::string_view bytes = characters.text();
  const size_t levels = size_t(std::bit_width(bytes.size()));
  CAIRN_TRY(runtime.prepare_string(bytes.size() * sizeof(char32_t)));
  CAIRN_TRY(runtime.work(bytes.size() * levels * kCharacterWork));
  std::u32string set;
  for (size_t i = 0; i < bytes.size(); i = next_character(bytes, i)) {
    set += character_at(bytes, i);
  }
  std::sort(set.begin(), set.end());
  return set;
}

}  // namespace

Result<MarkedText> stripped(Runtime& runtime, const MarkedText& text, const Value& characters,
                            Side side) {
  std::u32string set;
  if (!is_absent(characters)) {
    CAIRN_TRY(set, character_set(runtime, characters));
  }
  const size_t levels = 1 + size_t(std::bit_width(set.size()));
  const auto goes = [&](size_t at) -> Result<bool> {
    CAIRN_TRY(runtime.work(levels * kCharacterWork));
    const char32_t code = character_at(text.bytes(), at);
    if (is_absent(characters)) return is_python_space(code);
    return std::binary_search(set.begin(), set.end(), code);
  };
  const std::string_view bytes = text.bytes();
  CAIRN_TRY(runtime.prepare_string(bytes.size()));
  size_t begin = 0;
  size_t end = bytes.size();
  while (side != Side::right && begin < end) {
    CAIRN_TRY(const bool is_off, goes(begin));
    if (!is_off) break;
    begin = next_character(bytes, begin);
  }
  while (side != Side::left && end > begin) {
    const size_t before = previous_character(bytes, end);
    CAIRN_TRY(const bool is_off, goes(before));
    if (!is_off) break;
    end = before;
  }
  return text.slice(begin, end);
}

Result<MarkedText> with_case(Runtime& runtime, const MarkedText& text, Case wanted) {
  const std::string_view bytes = text.bytes();
  const bool is_bytewise = (wanted == Case::upper || wanted == Case::lower) && is_ascii(bytes);
  CAIRN_TRY(prepare_characters(runtime, text, is_bytewise ? kCharacterWork : kChangeWork));
  if (is_bytewise) {
    MarkedText out = text;
    out.change_bytes([wanted](char c) {
      const char first = wanted == Case::upper ? 'a' : 'A';
      return c >= first && c <= first + 25 ? char(c ^ 32) : c;
    });
    return out;
  }
  MarkedText out;
  OriginWalk origin(text);
  bool inside_word = false;
  for (size_t at = 0; at < bytes.size(); at = next_character(bytes, at)) {
    const char32_t code = character_at(bytes, at);
    std::string made;
    const bool is_start = wanted == Case::capitalize ? at == 0 : !inside_word;
    if (wanted == Case::upper) {
      append_upper(code, made);
    } else if (wanted == Case::lower) {
      append_lower_at(bytes, at, made);
    } else if (wanted == Case::swap) {
      append_swapped(bytes, at, made);
    } else if (is_start) {
      append_title(code, made);
    } else {
      append_lower_at(bytes, at, made);
    }
    inside_word = is_cased(code);
    out.append(made, origin.is_trusted_at(at));
  }
  return out;
}

Result<MarkedText> with_title_filter(Runtime& runtime, const MarkedText& text) {
  CAIRN_TRY(prepare_characters(runtime, text, kChangeWork));
  const std::string_view bytes = text.bytes();
  MarkedText out;
  OriginWalk origin(text);
  bool is_start = true;
  size_t rest = 0;  // Where the word goes on behind its first letter, which is looked at alone.
  for (size_t at = 0; at < bytes.size(); at = next_character(bytes, at)) {
    const char32_t code = character_at(bytes, at);
    std::string made;
    if (is_start) {
      append_upper(code, made);
      rest = next_character(bytes, at);
    } else {
      append_lower_at(bytes.substr(rest), at - rest, made);
    }
    is_start = is_python_space(code) || std::u32string_view(U"-({[<").find(code) != npos;
    out.append(made, origin.is_trusted_at(at));
  }
  return out;
}

Result<MarkedText> replaced(Runtime& runtime, const MarkedText& text, const MarkedText& from,
                            const MarkedText& to, int64_t count_max) {
  const std::string_view bytes = text.bytes();
  std::vector<size_t> places;
  const size_t most = count_max < 0 ? SIZE_MAX : size_t(count_max);
  CAIRN_TRY(runtime.work(bytes.size() * kSearchWork));
  size_t at = 0;
  while (places.size() < most) {
    if (!from.empty()) at = find_bytes(bytes, from.bytes(), at);
    if (at == npos || at > bytes.size()) break;
    places.push_back(at);
    if (places.size() % 65536 == 0) CAIRN_TRY(runtime.prepare_items(places.size()));
    if (from.empty() && at == bytes.size()) break;
    at = from.empty() ? next_character(bytes, at) : at + from.size();
  }
  if (!to.empty() && places.size() > kStringBytesMax / to.size()) {
    return fail(kOverBudget, "replace: expected a string of at most {} bytes, found {} times {}",
                kStringBytesMax, places.size(), to.size());
  }
  const size_t size = bytes.size() + places.size() * to.size() - places.size() * from.size();
  CAIRN_TRY(runtime.work(places.size() * 64));
  CAIRN_TRY(runtime.prepare_string(size));
  MarkedText out;
  out.reserve(size);
  size_t done = 0;
  for (const size_t place : places) {
    out.append(text, done, place);
    out.append(to);
    done = place + from.size();
  }
  out.append(text, done, bytes.size());
  return out;
}

Result<std::vector<MarkedText>> split(Runtime& runtime, const MarkedText& text,
                                      const Value& separator, int64_t count_max, bool from_right) {
  if (is_absent(separator)) {
    CAIRN_TRY(runtime.work(text.size() * kCharacterWork));
    return from_right ? split_at_spaces_from_right(runtime, text, count_max)
                      : split_at_spaces(runtime, text, count_max);
  }
  if (!separator.is(Kind::string)) return wrong_type("split", "a string", separator);
  const std::string_view mark = separator.text();
  if (mark.empty()) return fail(kRunFailed, "split: expected a separator, found an empty string");
  const std::string_view bytes = text.bytes();
  CAIRN_TRY(runtime.work(bytes.size() * kSearchWork));
  std::vector<MarkedText> pieces;
  if (!from_right) {
    size_t begin = 0;
    while (count_max < 0 || int64_t(pieces.size()) < count_max) {
      const size_t end = find_bytes(bytes, mark, begin);
      if (end == npos) break;
      CAIRN_TRY(keep_piece(runtime, pieces, text.slice(begin, end)));
      begin = end + mark.size();
    }
    CAIRN_TRY(keep_piece(runtime, pieces, text.slice(begin, bytes.size())));
    return pieces;
  }
  size_t end = bytes.size();
  while (end >= mark.size() && (count_max < 0 || int64_t(pieces.size()) < count_max)) {
    CAIRN_TRY(const size_t begin, find_bytes_from_right(runtime, bytes.substr(0, end), mark));
    if (begin == npos) break;
    CAIRN_TRY(keep_piece(runtime, pieces, text.slice(begin + mark.size(), end)));
    end = begin;
  }
  CAIRN_TRY(keep_piece(runtime, pieces, text.slice(0, end)));
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

Result<std::vector<MarkedText>> split_lines(Runtime& runtime, const MarkedText& text,
                                            bool keep_ends) {
  const std::string_view bytes = text.bytes();
  CAIRN_TRY(runtime.work(bytes.size() * kCharacterWork));
  std::vector<MarkedText> lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    if (!is_line_break(character_at(bytes, at))) {
      at = next_character(bytes, at);
      continue;
    }
    const bool is_pair = bytes.substr(at, 2) == "\r\n";
    const size_t after = is_pair ? at + 2 : next_character(bytes, at);
    CAIRN_TRY(keep_piece(runtime, lines, text.slice(begin, keep_ends ? after : at)));
    begin = at = after;
  }
  if (begin < bytes.size()) {
    CAIRN_TRY(keep_piece(runtime, lines, text.slice(begin, bytes.size())));
  }
  return lines;
}

Result<MarkedText> joined_by(Runtime& runtime, const MarkedText& separator,
                             const std::vector<Value>& parts) {
  size_t size = parts.empty() ? 0 : (parts.size() - 1) * separator.size();
  if (size > kStringBytesMax) CAIRN_TRY(runtime.prepare_string(size));
  for (const Value& part : parts) {
    size += part.text().size();
    if (size > kStringBytesMax) CAIRN_TRY(runtime.prepare_string(size));
  }
  CAIRN_TRY(runtime.work(parts.size() * 32));
  CAIRN_TRY(runtime.prepare_string(size));
  MarkedText out;
  out.reserve(size);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.append(separator);
    out.append(parts[i].marked());
  }
  return out;
}

}  // namespace cairn::jinja
