// One function for each shape; common to all: what stands before two calls is what opens a call.
#include "chat/call_shape.h"

#include <algorithm>
#include <optional>

#include "chat/json_scanner.h"
#include "chat/loose_match.h"
#include "chat/probe.h"

namespace cairn::chat {

namespace {

constexpr size_t kNone = std::string_view::npos;

// A call in a region: where its name and its first key stand.
struct Place {
  size_t name = kNone, name_end = kNone, key = kNone;
};

Place find_call(std::string_view region, int call, size_t from) {
  Place place;
  place.key = region.find(kProbeKeys[call == 0 ? 0 : 2], from);
  if (place.key == kNone) return place;
  place.name = region.substr(0, place.key).rfind(kProbeNames[call]);
  if (place.name == kNone || place.name < from) return {};
  place.name_end = place.name + kProbeNames[call].size();
  return place;
}

std::string_view between(std::string_view text, size_t begin, size_t end) {
  return text.substr(begin, end - begin);
}

bool ends_marker(char letter) {
  return letter == '>' || letter == ']' || letter == '}' || letter == '\n';
}

// Where the JSON value that begins at `begin` ends.
size_t json_end(std::string_view text, size_t begin) {
  JsonScanner scanner;
  scanner.reset(false);
  std::string_view rest = text.substr(begin);
  std::string value;
  if (scanner.feed(rest, true, value) != JsonScanner::State::done) return kNone;
  return text.size() - rest.size();
}

// The key of `"key": ` at the end of a text, without what stands before.
std::optional<std::string> last_key(std::string_view text) {
  text = trimmed_right(text);
  if (!text.ends_with(':')) return std::nullopt;
  text = trimmed_right(text.substr(0, text.size() - 1));
  if (!text.ends_with('"')) return std::nullopt;
  text.remove_suffix(1);
  const size_t quote = text.rfind('"');
  if (quote == kNone) return std::nullopt;
  return std::string(text.substr(quote + 1));
}

std::string_view without_last(std::string_view text, char letter) {
  text = trimmed_right(text);
  if (text.ends_with(letter)) text.remove_suffix(1);
  return trimmed_right(text);
}

std::string_view without_first(std::string_view text, char letter) {
  text = trimmed_left(text);
  if (text.starts_with(letter)) text.remove_prefix(1);
  return text;
}

// Of "</a><b>", what closes: "</a>". Behind it stands the end of the turn.
std::string_view first_tag(std::string_view text) {
  const size_t end = text.find('>');
  return text.starts_with("</") && end != kNone ? text.substr(0, end + 1) : text;
}

// A bracket before the first object is a list's; else what stands between two says how they stand.
CallGrouping find_grouping(const CallRegions& regions) {
  const std::string_view one = regions.one;
  const std::string_view before = one.substr(0, find_call(one, 0, 0).name);
  if (trimmed_right(before.substr(0, before.rfind('{'))).ends_with('[')) return CallGrouping::list;
  const std::string_view two = regions.two;
  const Place first = find_call(two, 0, 0);
  if (first.name == kNone) return CallGrouping::each;
  const size_t end = json_end(two, two.substr(0, first.name).rfind('{'));
  const Place second = end == kNone ? Place() : find_call(two, 1, end);
  if (second.name == kNone) return CallGrouping::each;
  const std::string_view gap = between(two, end, two.substr(0, second.name).rfind('{'));
  return trimmed(gap).empty() ? CallGrouping::lines : CallGrouping::each;
}

// {"name": "f", "arguments": {…}} or {"f": {…}}
bool read_object(const CallRegions& regions, CallFormat& format) {
  const std::string_view region = regions.one;
  const Place place = find_call(region, 0, 0);
  const std::string_view before = region.substr(0, place.name);
  if (!before.ends_with('"')) return false;
  const std::string_view mid = between(region, place.name_end, place.key);
  const size_t brace = before.rfind('{');
  const std::string_view arguments = without_last(without_last(mid, '"'), '{');
  const std::optional<std::string> arguments_key = last_key(arguments);
  if (brace == kNone || !mid.starts_with('"')) return false;
  const std::optional<std::string> name_key = last_key(before.substr(0, before.size() - 1));
  if (name_key && arguments_key) {
    format.name_key = *name_key;
    format.arguments_key = *arguments_key;
  } else if (trimmed_left(mid.substr(1)).starts_with(':')) {
    format.name_key.clear();  // The name itself is the key.
  } else {
    return false;
  }
  const size_t end = json_end(region, brace);
  if (end == kNone) return false;
  const std::string_view object = between(region, brace, end);
  if (const size_t id = object.find(kProbeIds[0]); id != kNone) {
    format.id_key = last_key(without_last(object.substr(0, id), '"')).value_or("");
  }
  if (const size_t first = object.find(':'); name_key && brace + first < place.name) {
    // Some templates count the calls instead of naming their ids.
    const std::string key = last_key(object.substr(0, first + 1)).value_or("");
    format.is_id_first = key != format.name_key && key.find("id") != std::string::npos;
    if (format.is_id_first) format.id_key = key;
  }
  format.grouping = find_grouping(regions);
  format.shape = CallShape::object;
  format.header = {
      {std::string(trimmed(without_last(before.substr(0, brace), '['))), CallField::name}};
  format.close = first_tag(trimmed(without_first(region.substr(end), ']')));
  return true;
}

// What stands before the name, and between two calls, told apart.
struct Frame {
  std::string_view section_open, open;  // Before the first name.
  std::string_view close;               // Behind a call.
  std::string_view section_close;
};

// `calls_end`: where the first call's arguments end.
Frame find_frame(const CallRegions& regions, const Place& first, size_t calls_end) {
  const std::string_view region = regions.two.empty() ? regions.one : regions.two;
  Frame frame;
  const std::string_view before = region.substr(0, first.name);
  if (regions.two.empty()) {
    frame.open = before;
    frame.close = region.substr(calls_end);
    return frame;
  }
  const Place second = find_call(region, 1, calls_end);
  if (second.name == kNone) return frame;
  const std::string_view gap = between(region, calls_end, second.name);
  const size_t shared = trimmed(before).empty() ? gap.size() : shared_back(before, gap);
  frame.open = gap.substr(gap.size() - shared);
  frame.section_open = before.substr(0, before.size() - std::min(shared, before.size()));
  frame.close = gap.substr(0, gap.size() - shared);
  return frame;
}

void set_frame(const Frame& frame, const CallRegions& regions, std::string_view tail,
               CallFormat& format) {
  format.section_open = trimmed(frame.section_open);
  format.header = {{std::string(frame.open), CallField::name}};
  std::string_view close = frame.close;
  if (regions.has_channels) {
    for (const std::string_view end : {"<|eom|>", "<|eot|>", "<|call|>", "<|end|>"}) {
      close = close.substr(0, std::min(close.find(end), close.size()));
    }
  }
  format.close = trimmed(close);
  // Behind the last call stands what closes it, and then what closes all of them.
  size_t bytes = 0;
  if (!format.section_open.empty() &&
      match_loose(format.close, trimmed_left(tail), true, bytes) == Match::yes) {
    format.section_close = first_tag(trimmed(trimmed_left(tail).substr(bytes)));
  }
}

// Takes an id or a count out of the text between name and arguments, or before the name.
void split_fields(std::string_view mid, std::string_view other_mid, CallFormat& format) {
  std::string& open = format.header[0].before;
  if (const size_t id = open.find(kProbeIds[0]); id != kNone) {
    const std::string behind = open.substr(id + kProbeIds[0].size());
    format.header = {{open.substr(0, id), CallField::id}, {behind, CallField::name}};
  } else if (const size_t at = mid.find(kProbeIds[0]); at != kNone) {
    format.header.push_back({std::string(mid.substr(0, at)), CallField::id});
    mid.remove_prefix(at + kProbeIds[0].size());
  } else if (!other_mid.empty() && mid != other_mid && mid.size() == other_mid.size()) {
    const size_t digit =
        size_t(std::mismatch(mid.begin(), mid.end(), other_mid.begin()).first - mid.begin());
    if (mid[digit] >= '0' && mid[digit] <= '9') {
      format.header.push_back({std::string(mid.substr(0, digit)), CallField::index});
      mid.remove_prefix(digit + 1);
    }
  }
  format.arguments_open = mid;
}

bool read_arguments(const CallRegions& regions, CallFormat& format) {
  const std::string_view region = regions.two.empty() ? regions.one : regions.two;
  const Place place = find_call(region, 0, 0);
  const size_t brace = region.substr(0, place.key).rfind('{');
  const size_t end = brace == kNone || brace < place.name_end ? kNone : json_end(region, brace);
  if (end == kNone || !trimmed(between(region, brace + 1, place.key)).starts_with('"')) {
    return false;
  }
  const Frame frame = find_frame(regions, place, end);
  std::string_view tail, other_mid;
  if (!regions.two.empty()) {
    const Place second = find_call(region, 1, end);
    if (second.name == kNone) return false;
    const size_t other_brace = region.substr(0, second.key).rfind('{');
    other_mid = between(region, second.name_end, other_brace);
    tail = region.substr(std::min(json_end(region, other_brace), region.size()));
  }
  set_frame(frame, regions, tail, format);
  format.shape = CallShape::arguments;
  split_fields(between(region, place.name_end, brace), other_mid, format);
  if (trimmed(region.substr(0, place.name)).empty() && !trimmed(regions.plain).empty()) {
    format.text_name = trimmed(regions.plain);  // Text has a name as calls have.
  }
  return true;
}

bool read_python(const CallRegions& regions, CallFormat& format) {
  const std::string_view region = regions.one;
  const Place place = find_call(region, 0, 0);
  if (between(region, place.name_end, place.key) != "(") return false;
  const size_t end = region.find(')', place.key);
  if (end == kNone) return false;
  format.shape = CallShape::python;
  format.header = {
      {std::string(trimmed(without_last(region.substr(0, place.name), '['))), CallField::name}};
  format.close = trimmed(without_first(region.substr(end + 1), ']'));
  return true;
}

bool read_braces(const CallRegions& regions, CallFormat& format) {
  const std::string_view region = regions.two.empty() ? regions.one : regions.two;
  const Place place = find_call(region, 0, 0);
  if (between(region, place.name_end, place.key) != "{") return false;
  const size_t key_end = place.key + kProbeKeys[0].size();
  const size_t value = region.find(kProbeValues[0], key_end);
  const size_t number = region.find(kProbeValues[1], key_end);
  if (value == kNone || number == kNone || region[key_end] != ':') return false;
  format.mark = between(region, key_end + 1, value);
  const size_t end = region.find('}', number);
  if (end == kNone || format.mark.empty()) return false;
  set_frame(find_frame(regions, place, end + 1), regions, {}, format);
  format.shape = CallShape::braces;
  format.arguments_open = "{";
  return true;
}

bool read_elements(const CallRegions& regions, CallFormat& format) {
  const std::string_view region = regions.two.empty() ? regions.one : regions.two;
  const Place place = find_call(region, 0, 0);
  const std::string tag = "</" + std::string(kProbeKeys[0]) + ">";
  const size_t value = region.find(kProbeValues[0], place.key);
  const size_t close = region.find(tag, place.key);
  if (value == kNone || close == kNone) return false;
  format.mark = between(region, value + kProbeValues[0].size(), close);
  const std::string opening = format.mark + "<";
  const std::string_view mid = between(region, place.name_end, place.key);
  if (!mid.ends_with(opening)) return false;
  const std::string last = "</" + std::string(kProbeKeys[1]) + ">";
  const size_t end = region.find(last, close);
  if (end == kNone) return false;
  const Frame frame = find_frame(regions, place, end + last.size());
  const size_t other = region.find("</" + std::string(kProbeKeys[2]) + ">", end);
  set_frame(frame, regions, other == kNone ? "" : region.substr(other + kProbeKeys[2].size() + 3),
            format);
  format.shape = CallShape::elements;
  format.arguments_open = trimmed(mid.substr(0, mid.size() - opening.size()));
  return true;
}

// Key ends that differ by the value's type have the type in their middle.
void read_key_ends(std::string_view of_string, std::string_view of_number, CallFormat& format) {
  format.key_end = of_string;
  if (of_string == of_number) return;
  size_t front = 0, back = 0;
  const size_t shorter = std::min(of_string.size(), of_number.size());
  while (front < shorter && of_string[front] == of_number[front]) ++front;
  while (back < shorter - front &&
         of_string[of_string.size() - 1 - back] == of_number[of_number.size() - 1 - back]) {
    ++back;
  }
  // "true" and "false" end alike: the type goes up to its quote.
  while (back > 0 && of_string[of_string.size() - back] != '"') --back;
  format.key_end = of_string.substr(0, front);
  format.string_type = of_string.substr(front, of_string.size() - back - front);
  format.type_end = of_string.substr(of_string.size() - back);
}

bool read_parameters(const CallRegions& regions, CallFormat& format) {
  const std::string_view region = regions.two.empty() ? regions.one : regions.two;
  const Place place = find_call(region, 0, 0);
  const size_t key_end = place.key + kProbeKeys[0].size();
  const size_t value = region.find(kProbeValues[0], key_end);
  if (value == kNone) return false;
  const size_t value_end = value + kProbeValues[0].size();
  const size_t key = region.find(kProbeKeys[1], value_end);
  const size_t number = region.find(kProbeValues[1], std::min(key, region.size()));
  if (key == kNone || number == kNone) return false;
  const std::string_view mid = between(region, place.name_end, place.key);
  const std::string_view gap = between(region, value_end, key);
  const size_t shared = shared_back(mid, gap);
  const std::string_view number_end = between(region, key + kProbeKeys[1].size(), number);
  const std::string_view string_end = between(region, key_end, value);
  read_key_ends(string_end, number_end, format);
  const std::string_view value_close = gap.substr(0, gap.size() - shared);
  format.has_margin = string_end.ends_with('\n') && value_close.starts_with('\n');
  format.key_open = trimmed_left(gap.substr(gap.size() - shared));
  format.value_close = trimmed(value_close);
  if (format.value_close.empty() || format.key_open.empty()) return false;
  size_t end = region.find(format.value_close, number);
  if (end == kNone) return false;
  end += format.value_close.size();
  std::string_view tail, other_mid;
  if (!regions.two.empty()) {
    const Place second = find_call(region, 1, end);
    if (second.name == kNone) return false;
    other_mid = between(region, second.name_end, second.key);
    if (other_mid.size() >= shared) other_mid.remove_suffix(shared);
    const size_t last = region.find(format.value_close, second.key);
    if (last != kNone) tail = region.substr(last + format.value_close.size());
  }
  set_frame(find_frame(regions, place, end), regions, tail, format);
  split_fields(mid.substr(0, mid.size() - shared), other_mid, format);
  format.arguments_open = trimmed(format.arguments_open);
  format.shape = CallShape::parameters;
  return true;
}

}  // namespace

size_t shared_front(std::string_view a, std::string_view b) {
  size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) && a[shared] == b[shared]) ++shared;
  // Within a character: back to where it begins.
  while (shared > 0 && shared < a.size() && (uint8_t(a[shared]) & 0xC0) == 0x80) --shared;
  const std::string_view front = a.substr(0, shared);
  // Within a marker: back to where it begins.
  const size_t open = front.rfind('<');
  const size_t close = front.rfind('>');
  if (open != kNone && (close == kNone || close < open)) shared = open;
  return shared;
}

size_t shared_back(std::string_view a, std::string_view b) {
  size_t shared = 0;
  while (shared < std::min(a.size(), b.size()) &&
         a[a.size() - 1 - shared] == b[b.size() - 1 - shared]) {
    ++shared;
  }
  if (shared == a.size() || shared == b.size()) return shared;
  while (shared > 0 &&
         !(ends_marker(a[a.size() - shared - 1]) && ends_marker(b[b.size() - shared - 1]))) {
    --shared;
  }
  return shared;
}

void read_shape(const CallRegions& regions, CallFormat& format) {
  if (find_call(regions.one, 0, 0).name == kNone) return;
  using Reader = bool (*)(const CallRegions&, CallFormat&);
  for (const Reader read : {&read_object, &read_arguments, &read_python, &read_braces,
                            &read_elements, &read_parameters}) {
    CallFormat found;
    if (!read(regions, found)) continue;
    format = found;
    return;
  }
}

}  // namespace cairn::chat
