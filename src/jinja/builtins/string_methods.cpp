// The methods of Python's str.
#include <algorithm>

#include "jinja/builtins/methods.h"
#include "jinja/builtins/percent_format.h"
#include "jinja/builtins/string_functions.h"
#include "jinja/characters.h"
#include "jinja/operations.h"
#include "jinja/values/number_format.h"

namespace cairn::jinja {
namespace {

using Args = std::span<const Value>;
constexpr size_t npos = std::string_view::npos;

// A string made from `self`: what was safe stays safe.
Result<Value> made(Runtime& runtime, const Value& self, Result<MarkedText> text) {
  if (!text) return std::move(text).error();
  CAIRN_TRY(Value value, runtime.string(std::move(*text)));
  value.set_markup(self.is_markup());
  return value;
}

Result<Value> made_list(Runtime& runtime, const Value& self, Result<std::vector<MarkedText>> pieces,
                        Kind kind = Kind::list) {
  if (!pieces) return std::move(pieces).error();
  std::vector<Value> values;
  values.reserve(pieces->size());
  for (MarkedText& piece : *pieces) {
    CAIRN_TRY(Value value, made(runtime, self, std::move(piece)));
    values.push_back(std::move(value));
  }
  return runtime.list(std::move(values), kind);
}

template <Case wanted>
Result<Value> change_case(Runtime& runtime, const Value& self, Args) {
  return made(runtime, self, with_case(runtime, self.marked(), wanted));
}

template <Side side>
Result<Value> strip(Runtime& runtime, const Value& self, Args args) {
  return made(runtime, self, stripped(runtime, self.marked(), args[0], side));
}

template <bool from_right>
Result<Value> split_method(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const int64_t most, integer_or(args[1], -1, "split"));
  return made_list(runtime, self, split(runtime, self.marked(), args[0], most, from_right));
}

Result<Value> splitlines(Runtime& runtime, const Value& self, Args args) {
  return made_list(runtime, self, split_lines(runtime, self.marked(), truth_or(args[0], false)));
}

template <bool from_right>
Result<Value> partition(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::string_view mark, text_of(args[0], "partition"));
  if (mark.empty()) return fail(kRunFailed, "partition: expected a separator, found an empty one");
  const MarkedText& text = self.marked();
  CAIRN_TRY(runtime.prepare_string(text.size()));
  CAIRN_TRY(runtime.work(text.size() * kSearchWork));
  size_t at = find_bytes(text.bytes(), mark);
  if (from_right) {
    CAIRN_TRY(at, find_bytes_from_right(runtime, text.bytes(), mark));
  }
  std::vector<MarkedText> pieces;
  if (at == npos) {
    pieces =
        from_right ? std::vector<MarkedText>{{}, {}, text} : std::vector<MarkedText>{text, {}, {}};
  } else {
    pieces = {text.slice(0, at), text.slice(at, at + mark.size()),
              text.slice(at + mark.size(), text.size())};
  }
  return made_list(runtime, self, std::move(pieces), Kind::tuple);
}

Result<Value> replace(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(text_of(args[0], "replace"));
  CAIRN_TRY(text_of(args[1], "replace"));
  CAIRN_TRY(const int64_t most, integer_or(args[2], -1, "replace"));
  return made(runtime, self,
              replaced(runtime, self.marked(), args[0].marked(), args[1].marked(), most));
}

Result<Value> join(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::vector<Value> parts, items_of(runtime, args[0]));
  for (const Value& part : parts) CAIRN_TRY(text_of(part, "join"));
  return made(runtime, self, joined_by(runtime, self.marked(), parts));
}

// The bytes [begin, end) that start and end arguments (in characters) select; nothing where the
// start lies beyond the end.
struct Window {
  size_t begin;
  size_t end;
  bool is_valid;
};

Result<Window> window_of(Runtime& runtime, const Value& self, const Value& start,
                         const Value& stop) {
  const StringObject& string = self.as<StringObject>();
  const int64_t size = int64_t(string.character_count);
  if (start.is(Kind::absent) && stop.is(Kind::absent)) return Window{0, string.text.size(), true};
  CAIRN_TRY(runtime.work(string.text.size() * kCharacterWork));
  const auto bound = [&](const Value& value, int64_t fallback) -> Result<int64_t> {
    if (value.is(Kind::absent) || value.is(Kind::none)) return fallback;
    CAIRN_TRY(int64_t number, integer_argument("a position", value));
    return number < 0 ? std::max<int64_t>(number + size, 0) : number;
  };
  CAIRN_TRY(const int64_t first, bound(start, 0));
  CAIRN_TRY(int64_t last, bound(stop, size));
  last = std::min(last, size);
  if (first > last) return Window{0, 0, false};
  const std::string_view bytes = string.text.bytes();
  const size_t begin = offset_of_character(bytes, size_t(first));
  return Window{begin, begin + offset_of_character(bytes.substr(begin), size_t(last - first)),
                true};
}

enum class Find : uint8_t { first, last, first_or_error, last_or_error };

template <Find how>
Result<Value> find(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::string_view wanted, text_of(args[0], "find"));
  CAIRN_TRY(const Window window, window_of(runtime, self, args[1], args[2]));
  const std::string_view part = self.text().substr(window.begin, window.end - window.begin);
  const bool from_right = how == Find::last || how == Find::last_or_error;
  CAIRN_TRY(runtime.work(part.size() * kSearchWork));
  size_t at = window.is_valid ? find_bytes(part, wanted) : npos;
  if (from_right && at != npos) {
    CAIRN_TRY(at, find_bytes_from_right(runtime, part, wanted));
  }
  if (at != npos) {
    return Value::integer(int64_t(count_characters(self.text().substr(0, window.begin + at))));
  }
  if (how == Find::first || how == Find::last) return Value::integer(-1);
  return fail(kRunFailed, "index: expected the substring in the string, found none");
}

Result<Value> count(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::string_view wanted, text_of(args[0], "count"));
  CAIRN_TRY(const Window window, window_of(runtime, self, args[1], args[2]));
  const std::string_view part = self.text().substr(window.begin, window.end - window.begin);
  CAIRN_TRY(runtime.work(part.size() * kSearchWork));
  if (!window.is_valid) return Value::integer(0);
  if (wanted.empty()) return Value::integer(int64_t(count_characters(part)) + 1);
  int64_t total = 0;
  for (size_t at = find_bytes(part, wanted); at != npos;
       at = find_bytes(part, wanted, at + wanted.size())) {
    CAIRN_TRY(runtime.work(wanted.size() + 2 * kCharacterWork));
    ++total;
  }
  return Value::integer(total);
}

template <bool at_start>
Result<Value> has_affix(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const Window window, window_of(runtime, self, args[1], args[2]));
  const std::string_view part = self.text().substr(window.begin, window.end - window.begin);
  const auto fits = [&](const Value& value) -> Result<bool> {
    CAIRN_TRY(const std::string_view affix, text_of(value, at_start ? "startswith" : "endswith"));
    CAIRN_TRY(runtime.work(std::min(affix.size(), part.size())));
    return window.is_valid && (at_start ? part.starts_with(affix) : part.ends_with(affix));
  };
  if (!args[0].is(Kind::tuple)) {
    CAIRN_TRY(const bool fit, fits(args[0]));
    return Value::boolean(fit);
  }
  CAIRN_TRY(runtime.work(args[0].items().size() * 16));
  for (const Value& affix : args[0].items()) {
    CAIRN_TRY(const bool fit, fits(affix));
    if (fit) return Value::boolean(true);
  }
  return Value::boolean(false);
}

template <bool prefix>
Result<Value> remove_affix(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const std::string_view affix, text_of(args[0], "removeprefix"));
  const MarkedText& text = self.marked();
  CAIRN_TRY(runtime.prepare_string(text.size()));
  const bool fits = prefix ? text.bytes().starts_with(affix) : text.bytes().ends_with(affix);
  if (!fits) return self;
  return made(
      runtime, self,
      prefix ? text.slice(affix.size(), text.size()) : text.slice(0, text.size() - affix.size()));
}

template <char align>
Result<Value> justify(Runtime& runtime, const Value& self, Args args) {
  FieldSpec spec;
  spec.align = align;
  CAIRN_TRY(spec.width, integer_argument("a width", args[0]));
  if (!args[1].is(Kind::absent)) {
    CAIRN_TRY(const std::string_view fill, text_of(args[1], "a fill character"));
    CAIRN_TRY(runtime.work(fill.size()));
    if (count_characters(fill) != 1) {
      return fail(kRunFailed, "a fill: expected one character, found {}", count_characters(fill));
    }
    spec.fill = std::string(fill);
  }
  const size_t width = size_t(std::clamp<int64_t>(spec.width, 0, kStringBytesMax + 1));
  CAIRN_TRY(runtime.prepare_string(std::max(width * spec.fill.size(), self.text().size())));
  CAIRN_TRY(runtime.work(width * kCharacterWork));
  if (align != '^' || spec.width <= 0) {
    return made(runtime, self, padded(self.marked(), spec, align));
  }
  // str.center puts the odd character left only where the width is odd.
  const int64_t size = int64_t(self.as<StringObject>().character_count);
  const int64_t missing = spec.width - size;
  if (missing <= 0) return self;
  FieldSpec left = spec;
  left.align = '>';
  left.width = size + missing / 2 + (missing & spec.width & 1);
  FieldSpec right = spec;
  right.align = '<';
  return made(runtime, self, padded(padded(self.marked(), left, '>'), right, '<'));
}

Result<Value> zfill(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const int64_t width, integer_argument("zfill", args[0]));
  const size_t size = self.as<StringObject>().character_count;
  const size_t wanted = size_t(std::clamp<int64_t>(width, 0, kStringBytesMax + 1));
  CAIRN_TRY(runtime.prepare_string(std::max(wanted, self.text().size())));
  const MarkedText& text = self.marked();
  const bool has_sign = size > 0 && (text.bytes()[0] == '-' || text.bytes()[0] == '+');
  MarkedText out = text.slice(0, has_sign);
  if (wanted > size) out.append(std::string(wanted - size, '0'), true);
  out.append(text, has_sign, text.size());
  return made(runtime, self, std::move(out));
}

Result<Value> expandtabs(Runtime& runtime, const Value& self, Args args) {
  CAIRN_TRY(const int64_t asked, integer_or(args[0], 8, "expandtabs"));
  const size_t stop = size_t(std::clamp<int64_t>(asked, 0, 1000));
  const MarkedText& text = self.marked();
  CAIRN_TRY(runtime.work(text.size() * kPropertyWork));
  MarkedText out;
  OriginWalk origin(text);
  size_t column = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = next_character(text.bytes(), at);
    const char byte = text.bytes()[at];
    if (byte == '\t') {
      const size_t spaces = stop == 0 ? 0 : stop - column % stop;
      CAIRN_TRY(runtime.work(3 * spaces));
      CAIRN_TRY(runtime.check_string(out.size() + spaces));
      out.append(std::string(spaces, ' '), origin.is_trusted_at(at));
      column += spaces;
    } else {
      out.append(text, at, end);
      column = byte == '\n' || byte == '\r' ? 0 : column + 1;
    }
    at = end;
  }
  return made(runtime, self, std::move(out));
}

using Class = bool (*)(char32_t);

template <Class is_member>
Result<Value> all_are(Runtime& runtime, const Value& self, Args) {
  const std::string_view text = self.text();
  CAIRN_TRY(runtime.work(text.size() * kPropertyWork));
  for (size_t at = 0; at < text.size(); at = next_character(text, at)) {
    if (!is_member(character_at(text, at))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

bool is_ascii_character(char32_t code) {
  return code < 0x80;
}
bool is_alphanumeric(char32_t code) {
  return is_alphabetic(code) || is_numeric(code);
}

// isascii and isprintable hold for the empty string too.
template <Class is_member>
Result<Value> none_is_not(Runtime& runtime, const Value& self, Args args) {
  if (self.text().empty()) return Value::boolean(true);
  return all_are<is_member>(runtime, self, args);
}

// At least one character has a case, and all that have one have this.
template <bool upper>
Result<Value> is_cased_as(Runtime& runtime, const Value& self, Args) {
  const std::string_view text = self.text();
  CAIRN_TRY(runtime.work(text.size() * kPropertyWork));
  bool found = false;
  for (size_t at = 0; at < text.size(); at = next_character(text, at)) {
    const char32_t code = character_at(text, at);
    if (is_title(code) || (upper ? is_lower(code) : is_upper(code))) return Value::boolean(false);
    found = found || (upper ? is_upper(code) : is_lower(code));
  }
  return Value::boolean(found);
}

Result<Value> istitle(Runtime& runtime, const Value& self, Args) {
  const std::string_view text = self.text();
  CAIRN_TRY(runtime.work(text.size() * kPropertyWork));
  bool found = false;
  bool inside_word = false;
  for (size_t at = 0; at < text.size(); at = next_character(text, at)) {
    const char32_t code = character_at(text, at);
    const bool is_big = is_upper(code) || is_title(code);
    if (is_big ? inside_word : is_lower(code) && !inside_word) return Value::boolean(false);
    inside_word = is_big || is_lower(code);
    found = found || inside_word;
  }
  return Value::boolean(found);
}

Result<Value> isidentifier(Runtime& runtime, const Value& self, Args args) {
  if (self.text().empty() || !is_identifier_start(character_at(self.text(), 0))) {
    return Value::boolean(false);
  }
  return all_are<is_identifier_part>(runtime, self, args);
}

Result<Value> format(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return brace_format(runtime, self, arguments);
}

constexpr Callable kMethods[] = {
    {"capitalize", "", change_case<Case::capitalize>},
    {"center", "width fillchar=", justify<'^'>},
    {"count", "sub start= end=", count},
    {"endswith", "suffix start= end=", has_affix<false>},
    {"expandtabs", "tabsize=", expandtabs},
    {"find", "sub start= end=", find<Find::first>},
    {"format", "", nullptr, format},
    {"index", "sub start= end=", find<Find::first_or_error>},
    {"isalnum", "", all_are<is_alphanumeric>},
    {"isalpha", "", all_are<is_alphabetic>},
    {"isascii", "", none_is_not<is_ascii_character>},
    {"isdecimal", "", all_are<is_decimal>},
    {"isdigit", "", all_are<is_digit>},
    {"isidentifier", "", isidentifier},
    {"islower", "", is_cased_as<false>},
    {"isnumeric", "", all_are<is_numeric>},
    {"isprintable", "", none_is_not<is_printable>},
    {"isspace", "", all_are<is_python_space>},
    {"istitle", "", istitle},
    {"isupper", "", is_cased_as<true>},
    {"join", "iterable", join},
    {"ljust", "width fillchar=", justify<'<'>},
    {"lower", "", change_case<Case::lower>},
    {"lstrip", "chars=", strip<Side::left>},
    {"partition", "sep", partition<false>},
    {"removeprefix", "prefix", remove_affix<true>},
    {"removesuffix", "suffix", remove_affix<false>},
    {"replace", "old new count=", replace},
    {"rfind", "sub start= end=", find<Find::last>},
    {"rindex", "sub start= end=", find<Find::last_or_error>},
    {"rjust", "width fillchar=", justify<'>'>},
    {"rpartition", "sep", partition<true>},
    {"rsplit", "sep= maxsplit=", split_method<true>},
    {"rstrip", "chars=", strip<Side::right>},
    {"split", "sep= maxsplit=", split_method<false>},
    {"splitlines", "keepends=", splitlines},
    {"startswith", "prefix start= end=", has_affix<true>},
    {"strip", "chars=", strip<Side::both>},
    {"swapcase", "", change_case<Case::swap>},
    {"title", "", change_case<Case::title>},
    {"upper", "", change_case<Case::upper>},
    {"zfill", "width", zfill},
};

}  // namespace

std::span<const Callable> string_methods() {
  return kMethods;
}

}  // namespace cairn::jinja
