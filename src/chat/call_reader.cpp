// A state for each place between two pieces that a call may be cut at.
#include "chat/call_reader.h"

#include <algorithm>
#include <optional>

#include "chat/cdata.h"
#include "chat/literals.h"
#include "chat/loose_match.h"
#include "json/reader.h"

namespace cairn::chat {

namespace {

constexpr size_t kNameBytesMax = 256;
constexpr size_t kNone = std::string_view::npos;

// Where `text` may end in the beginning of `marker`: the bytes that have to wait.
size_t held_bytes(std::string_view text, std::string_view marker) {
  for (size_t held = std::min(text.size(), marker.size() - 1); held > 0; --held) {
    if (marker.starts_with(text.substr(text.size() - held))) return held;
  }
  return 0;
}

// Takes the marker from the input, and the white space before it.
Match take(std::string_view marker, Cursor& input) {
  Cursor ahead = input;
  ahead.skip_space();
  size_t bytes = 0;
  const Match match = match_loose(trimmed(marker), ahead.rest(), input.is_all, bytes);
  if (match == Match::yes) input.at = ahead.at + bytes;
  return match;
}

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '.' || letter == '-';
}

}  // namespace

void Cursor::skip_space() {
  while (at < text.size() && is_space(text[at])) ++at;
}

CallReader::CallReader(const CallFormat* format, const std::vector<Tool>* tools)
    : format_(*format), tools_(*tools) {}

CallReader::Step CallReader::reset(State state) {
  state_ = state;
  return Step::moved;
}

void CallReader::reset_call() {
  field_ = 0;
  name_.clear();
  id_.clear();
  early_arguments_.clear();
  is_started_ = has_arguments_ = false;
  object_depth_ = 0;
}

void CallReader::begin_call() {
  reset_call();
  is_bare_ = is_certain_ = false;
  if (format_.shape == CallShape::object) {
    state_ = State::objects;
  } else {
    state_ = format_.shape == CallShape::python ? State::python : State::header;
  }
}

void CallReader::begin_section() {
  reset_call();
  is_bare_ = is_certain_ = false;
  state_ = State::between;
}

void CallReader::begin_bare() {
  begin_call();
  is_bare_ = true;
}

void CallReader::begin_named(std::string_view name, EventList& events) {
  reset_call();
  is_bare_ = false;
  name_ = name;
  start(events);
  json_.reset(true);
  state_ = State::arguments;
}

// False where a call that nothing announced is for no tool that there is.
bool CallReader::start(EventList& events) {
  if (is_bare_ && !tools_.empty() && find_tool(tools_, name_) == nullptr) return false;
  events.start_call(call_count_++, name_, id_);
  is_started_ = is_certain_ = true;
  return true;
}

CallReader::Step CallReader::end_call(EventList& events, bool is_whole) {
  events.end_call(call_count_ - 1, id_, is_whole);
  reset_call();
  return Step::moved;
}

void CallReader::arguments_piece(std::string_view piece, EventList& events) {
  events.text(OutputEvent::Kind::call_arguments, piece, call_count_ - 1);
}

CallReader::Step CallReader::broken(EventList& events) {
  if (is_started_) end_call(events, false);
  return is_certain_ ? Step::ended : Step::not_a_call;
}

void CallReader::finish(EventList& events) {
  if (is_started_) end_call(events, false);
}

CallReader::Step CallReader::step(Cursor& input, EventList& events) {
  switch (state_) {
    case State::header:
      return read_header(input, events);
    case State::arguments:
      return read_arguments(input, events, State::tail);
    case State::tail:
      return read_tail(input, events);
    case State::between:
      return read_between(input);
    case State::parameter:
      return read_parameter(input, events);
    case State::value:
      return read_value(input, events);
    case State::whole:
      return read_whole(input, events);
    case State::objects:
      return read_objects(input);
    case State::members:
      return read_members(input, events);
    case State::arguments_member:
      return read_arguments(input, events, State::members);
    case State::python:
      return read_python(input, events);
    case State::python_arguments:
      return read_python_arguments(input, events);
  }
  return Step::ended;
}

// A field ends where the next text begins, or, where there is none, what may follow it.
CallReader::Step CallReader::read_header(Cursor& input, EventList& events) {
  const bool is_last = field_ + 1 == format_.header.size();
  const std::string& next = is_last ? format_.arguments_open : format_.header[field_ + 1].before;
  const bool is_line = !next.empty() && trimmed(next).empty();
  const std::string_view rest = input.rest();
  size_t end = kNone, taken = 0;
  for (size_t at = 0; at < rest.size() && end == kNone; ++at) {
    if (at > kNameBytesMax) return broken(events);
    if (is_line) {
      if (rest[at] == '\n') end = at, taken = 1;
      continue;
    }
    for (const std::string_view marker :
         {std::string_view(next), std::string_view(format_.key_open),
          std::string_view(format_.close)}) {
      const bool is_next = marker.data() == next.data();
      if (trimmed(marker).empty() || is_next == next.empty()) continue;
      size_t bytes = 0;
      const Match match = match_loose(trimmed(marker), rest.substr(at), input.is_all, bytes);
      if (match == Match::more) return Step::more;
      if (match == Match::yes) end = at, taken = is_next ? bytes : 0;
      if (match == Match::yes) break;
    }
  }
  if (end == kNone) return rest.size() > kNameBytesMax ? broken(events) : Step::more;
  const std::string_view value = trimmed(rest.substr(0, end));
  input.at += end + taken;
  const CallField field = format_.header[field_].field;
  if (field == CallField::name) {
    if (value.empty() || value.find('\n') != kNone) return broken(events);
    name_ = value;
  } else if (field == CallField::id) {
    id_ = value;
  }
  ++field_;
  return is_last ? finish_header(events) : Step::moved;
}

CallReader::Step CallReader::finish_header(EventList& events) {
  if (!format_.text_name.empty() && name_ == format_.text_name) return Step::ended;
  if (!start(events)) return broken(events);
  switch (format_.shape) {
    case CallShape::parameters:
      return reset(State::parameter);
    case CallShape::elements:
    case CallShape::braces:
      return reset(State::whole);
    default:
      json_.reset(true);
      return reset(State::arguments);
  }
}

CallReader::Step CallReader::read_arguments(Cursor& input, EventList& events, State next) {
  std::string_view rest = input.rest();
  const size_t before = rest.size();
  std::string piece;
  const JsonScanner::State state = json_.feed(rest, input.is_all, piece);
  input.at += before - rest.size();
  if (is_started_) {
    arguments_piece(piece, events);
  } else {
    early_arguments_ += piece;
  }
  if (state == JsonScanner::State::broken) return broken(events);
  if (state == JsonScanner::State::more) return Step::more;
  has_arguments_ = true;
  return reset(next);
}

CallReader::Step CallReader::read_tail(Cursor& input, EventList& events) {
  if (!trimmed(format_.close).empty()) {
    Match match = take(format_.close, input);
    if (match == Match::no) match = take(first_word(format_.close), input);
    if (match == Match::more) return Step::more;
  }
  end_call(events, true);
  return reset(State::between);
}

CallReader::Step CallReader::read_between(Cursor& input) {
  Cursor ahead = input;
  ahead.skip_space();
  if (ahead.is_empty()) return Step::more;
  for (const std::string* open : {&format_.header[0].before, &format_.other_open}) {
    if (trimmed(*open).empty()) continue;
    const Match match = take(*open, input);
    if (match == Match::more) return Step::more;
    if (match == Match::yes) return reset(State::header);
  }
  if (!trimmed(format_.section_close).empty()) {
    const Match match = take(format_.section_close, input);
    if (match == Match::more) return Step::more;
  }
  return is_certain_ ? Step::ended : Step::not_a_call;
}

CallReader::Step CallReader::read_parameter(Cursor& input, EventList& events) {
  Cursor ahead = input;
  const Match match = take(format_.key_open, ahead);
  if (match == Match::more) return Step::more;
  if (match == Match::no) {
    Cursor behind = input;
    Match closed = take(format_.close, behind);
    if (closed == Match::no) closed = take(first_word(format_.close), behind);
    if (closed == Match::more) return Step::more;
    if (closed == Match::no) return broken(events);
    arguments_piece(has_arguments_ ? "}" : "{}", events);
    return reset(State::tail);
  }
  std::string_view rest = ahead.rest();
  std::string_view type;
  size_t end = kNone, taken = 0;
  for (size_t at = 0; at < rest.size() && end == kNone; ++at) {
    const Match found = match_loose(trimmed(format_.key_end), rest.substr(at), input.is_all, taken);
    if (found == Match::more) return Step::more;
    if (found == Match::yes) end = at;
  }
  if (end == kNone) return rest.size() > kNameBytesMax ? broken(events) : Step::more;
  const std::string key(trimmed(rest.substr(0, end)));
  ahead.at += end + taken;
  if (!format_.type_end.empty()) {
    rest = ahead.rest();
    const size_t type_end = rest.find(format_.type_end);
    if (type_end == kNone) return rest.size() > kNameBytesMax ? broken(events) : Step::more;
    type = rest.substr(0, type_end);
    ahead.at += type_end + format_.type_end.size();
  }
  const Tool* tool = find_tool(tools_, name_);
  value_type_ = tool != nullptr ? tool->type_of(key) : ParameterType::any;
  if (!format_.type_end.empty()) {
    value_type_ = type == format_.string_type ? ParameterType::string : ParameterType::other;
  }
  arguments_piece((has_arguments_ ? ", " : "{") + json::quoted(key) + ": ", events);
  has_arguments_ = true;
  is_value_begun_ = false;
  input.at = ahead.at;
  return reset(State::value);
}

// False where more must be known.
bool CallReader::begin_value(Cursor& input, EventList& events) {
  if (input.is_empty()) return false;
  value_close_ = format_.value_close;
  if (format_.has_margin && input.rest().front() == '\n') {
    ++input.at;
  } else if (format_.has_cdata) {
    const std::string_view rest = input.rest();
    if (rest.size() < kCdataOpen.size() && kCdataOpen.starts_with(rest) && !input.is_all) {
      return false;
    }
    if (rest.starts_with(kCdataOpen)) {
      input.at += kCdataOpen.size();
      value_close_ = std::string(kCdataClose) + value_close_;
    }
  }
  is_value_begun_ = true;
  if (value_type_ == ParameterType::string) arguments_piece("\"", events);
  return true;
}

// Strings go out as they come; of other values the type shows only when they are complete.
CallReader::Step CallReader::read_value(Cursor& input, EventList& events) {
  if (!is_value_begun_ && !begin_value(input, events)) return Step::more;
  const bool is_string = value_type_ == ParameterType::string;
  const std::string_view rest = input.rest();
  const size_t end = rest.find(value_close_);
  size_t known = end == kNone ? rest.size() - held_bytes(rest, value_close_) : end;
  if (format_.has_margin && known > 0 && rest[known - 1] == '\n') --known;
  const std::string_view value = rest.substr(0, known);
  if (end == kNone && !is_string) return Step::more;
  std::string json;
  if (is_string) {
    json::append_escaped(value, json);
  } else {
    json = scalar_json(value, value_type_);
  }
  if (end != kNone && is_string) json += '"';
  arguments_piece(json, events);
  input.at += end == kNone ? known : end + value_close_.size();
  return end == kNone ? Step::more : reset(State::parameter);
}

CallReader::Step CallReader::read_whole(Cursor& input, EventList& events) {
  const std::string_view close = trimmed(format_.close);
  const size_t end = input.rest().find(close);
  if (end == kNone) return Step::more;
  std::string_view body = trimmed(input.rest().substr(0, end));
  std::optional<std::string> json;
  if (format_.shape == CallShape::elements) {
    json = elements_json(body, format_.mark, find_tool(tools_, name_));
  } else if (body.ends_with('}')) {
    json = braces_json(body.substr(0, body.size() - 1), format_.mark);
  }
  input.at += end + close.size();
  if (json) arguments_piece(*json, events);
  end_call(events, json.has_value());
  return reset(State::between);
}

CallReader::Step CallReader::read_objects(Cursor& input) {
  while (!input.is_empty()) {
    const char letter = input.rest().front();
    if (letter == '{') {
      reset_call();
      ++input.at;
      return reset(State::members);
    }
    const bool is_separator = letter == ',' || letter == ';' || letter == '[' || letter == ']';
    // "[" is also what some texts begin with that end the calls.
    const bool may_close = !format_.close.empty() && trimmed(format_.close).front() == letter;
    if ((is_separator || is_space(letter)) && !may_close) {
      ++input.at;
      continue;
    }
    Match match = Match::no;
    if (!trimmed(format_.close).empty()) match = take(format_.close, input);
    if (match == Match::more) return Step::more;
    return is_certain_ ? Step::ended : Step::not_a_call;
  }
  return Step::more;
}

CallReader::Step CallReader::read_members(Cursor& input, EventList& events) {
  Cursor ahead = input;
  while (!ahead.is_empty() && (is_space(ahead.rest().front()) || ahead.rest().front() == ',')) {
    ++ahead.at;
  }
  if (ahead.is_empty()) return Step::more;
  if (ahead.rest().front() == '}') {
    input.at = ahead.at + 1;
    return end_object(input, events);
  }
  if (ahead.rest().front() != '"') return broken(events);
  JsonScanner scanner;
  scanner.reset(true);
  std::string_view rest = ahead.rest();
  std::string key;
  const JsonScanner::State state = scanner.feed(rest, input.is_all, key);
  if (state == JsonScanner::State::broken || key.size() > kNameBytesMax) return broken(events);
  if (state == JsonScanner::State::more) return Step::more;
  ahead.at = ahead.text.size() - rest.size();
  ahead.skip_space();
  if (ahead.is_empty()) return Step::more;
  if (ahead.rest().front() != ':') return broken(events);
  ++ahead.at;
  ahead.skip_space();
  if (ahead.is_empty()) return Step::more;
  const Step step = read_member(ahead, key, events);
  if (step == Step::moved) input.at = ahead.at;
  return step;
}

CallReader::Step CallReader::read_member(Cursor& input, std::string_view key, EventList& events) {
  const bool is_key_name = format_.name_key.empty();
  const bool is_arguments =
      is_key_name || key == format_.arguments_key || is_one_of(key, {"arguments", "parameters"});
  const char first = input.rest().front();
  if (key == "function" && first == '{' && !is_key_name) {
    ++object_depth_;
    ++input.at;
    return Step::moved;
  }
  if (is_arguments && !has_arguments_) {
    if (first != '{' && first != '"') return broken(events);
    if (is_key_name) name_ = key;
    if (!name_.empty() && !is_started_ && !start(events)) return broken(events);
    json_.reset(true);
    return reset(State::arguments_member);
  }
  std::string value;
  const Step step = take_text_member(input, value);
  if (step == Step::not_a_call) return broken(events);
  if (step == Step::more) return step;
  const bool is_name = key == format_.name_key || is_one_of(key, {"name", "tool_name", "function"});
  if (is_name && name_.empty()) {
    if (value.empty() || value.size() > kNameBytesMax) return broken(events);
    name_ = value;
    if (has_arguments_) {
      if (!start(events)) return broken(events);
      arguments_piece(early_arguments_, events);
    }
  } else if (key == format_.id_key || is_one_of(key, {"id", "tool_call_id", "call_id"})) {
    id_ = value;
  }
  return Step::moved;
}

// A member's whole value; of a string, its text.
CallReader::Step CallReader::take_text_member(Cursor& input, std::string& value) {
  JsonScanner scanner;
  scanner.reset(true);
  std::string_view rest = input.rest();
  const JsonScanner::State state = scanner.feed(rest, input.is_all, value);
  if (state == JsonScanner::State::broken) return Step::not_a_call;
  if (state == JsonScanner::State::more) return Step::more;
  input.at = input.text.size() - rest.size();
  return Step::moved;
}

CallReader::Step CallReader::end_object(Cursor& /*input*/, EventList& events) {
  if (object_depth_ > 0) {
    --object_depth_;
    return Step::moved;
  }
  if (name_.empty()) return broken(events);
  if (!is_started_) {
    if (!start(events)) return broken(events);
    arguments_piece("{}", events);
  }
  end_call(events, true);
  return reset(State::objects);
}

CallReader::Step CallReader::read_python(Cursor& input, EventList& events) {
  while (!input.is_empty()) {
    const char letter = input.rest().front();
    const bool may_close = !format_.close.empty() && trimmed(format_.close).front() == letter;
    if (may_close) {
      const Match match = take(format_.close, input);
      if (match == Match::more) return Step::more;
      if (match == Match::yes) return is_certain_ ? Step::ended : Step::not_a_call;
    }
    if (!is_space(letter) && letter != ',' && letter != '[' && letter != ']') break;
    ++input.at;
  }
  const std::string_view rest = input.rest();
  size_t end = 0;
  while (end < rest.size() && is_name_letter(rest[end])) ++end;
  if (end > kNameBytesMax) return broken(events);
  if (end == rest.size()) return Step::more;
  if (end == 0 || rest[end] != '(') return broken(events);
  name_ = rest.substr(0, end);
  if (!start(events)) return broken(events);
  input.at += end + 1;
  return reset(State::python_arguments);
}

CallReader::Step CallReader::read_python_arguments(Cursor& input, EventList& events) {
  const std::string_view rest = input.rest();
  int32_t depth = 1;
  char quote = 0;
  size_t at = 0;
  for (; at < rest.size() && depth > 0; ++at) {
    const char letter = rest[at];
    if (quote != 0) {
      if (letter == '\\') ++at;
      if (letter == quote) quote = 0;
    } else if (letter == '"' || letter == '\'') {
      quote = letter;
    } else if (letter == '(' || letter == '[' || letter == '{') {
      ++depth;
    } else if (letter == ')' || letter == ']' || letter == '}') {
      --depth;
    }
  }
  if (depth > 0) return Step::more;
  const std::optional<std::string> json =
      python_arguments_json(rest.substr(0, at - 1), find_tool(tools_, name_));
  input.at += at;
  if (json) arguments_piece(*json, events);
  end_call(events, json.has_value());
  return reset(State::python);
}

}  // namespace cairn::chat
