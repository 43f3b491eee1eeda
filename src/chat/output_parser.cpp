// Text, reasoning, calls, headers: four states, and the markers that lead from one to another.
#include "chat/output_parser.h"

#include <algorithm>
#include <utility>

#include "chat/loose_match.h"
#include "unicode/unicode.h"

namespace cairn::chat {

namespace {

constexpr size_t kNone = std::string_view::npos;
constexpr size_t kHeaderBytesMax = 512;
// Read texts are thrown away in blocks, so that doing so costs nothing per byte.
constexpr size_t kKeptBytes = 4096;
constexpr std::string_view kCallRecipient = "functions.";

// The word behind `before` in a header.
std::string_view word_behind(std::string_view header, std::string_view before) {
  const size_t found = header.find(before);
  if (found == kNone) return {};
  std::string_view word = header.substr(found + before.size());
  size_t end = 0;
  while (end < word.size() && !is_space(word[end]) && word[end] != '<') ++end;
  return word.substr(0, end);
}

}  // namespace

OutputParser::OutputParser(ChatFormat format, ParserOptions options)
    : format_(std::move(format)),
      options_(std::move(options)),
      calls_(&format_.call, &options_.tools) {
  const CallFormat& call = format_.call;
  const bool has_reasoning = options_.reads_reasoning && !format_.reasoning_close.empty();
  if (has_reasoning && format_.channels.message_open.empty()) {
    add(format_.reasoning_open, Action::reasoning, true);
    add(format_.reasoning_close, Action::drop, true);
    closings_.push_back({format_.reasoning_close, Action::drop});
  }
  const bool may_call = options_.reads_calls && call.shape != CallShape::none;
  if (may_call) {
    add(call.section_open, Action::section);
    if (!call.header.empty()) add(call.header[0].before, Action::call);
    add(call.other_open, Action::call);
  }
  tracks_space_ = drops_space_ = may_call || !markers_.empty();
  for (const std::string& text : format_.silent) add(text, Action::drop);
  for (const std::string& text : options_.stop) add(text, Action::stop, false, true);
  if (!format_.channels.message_open.empty()) {
    for (const std::string& text : format_.channels.message_close) {
      add(text, Action::header);
      closings_.push_back({text, Action::header});
    }
  }
  std::stable_sort(markers_.begin(), markers_.end(),
                   [](const Marker& a, const Marker& b) { return a.text.size() > b.text.size(); });
  start_from(options_.prompt);
  options_.prompt = {};
}

void OutputParser::add(std::string text, Action action, bool at_start, bool is_exact) {
  if (!is_exact) text = trimmed(text);
  if (!text.empty()) markers_.push_back({std::move(text), action, at_start, is_exact});
}

void OutputParser::start_from(std::string_view prompt) {
  const std::string_view end = trimmed_right(prompt);
  const auto ends_with = [&](std::string_view marker) {
    return !trimmed(marker).empty() && end.ends_with(trimmed(marker));
  };
  if (!format_.channels.message_open.empty()) {
    if (!ends_with(format_.channels.message_open)) state_ = State::header;
    return;
  }
  if (options_.reads_reasoning && ends_with(format_.reasoning_open)) {
    enter(State::reasoning);
  } else if (!format_.call.text_name.empty() && ends_with(format_.call.header[0].before)) {
    calls_.begin_call();
    state_ = State::call;
  }
}

bool OutputParser::reads_marker(std::string_view token) const {
  const CallFormat& call = format_.call;
  const auto holds = [&](std::string_view text) { return text.find(token) != kNone; };
  if (token.empty()) return false;
  for (const CallHeaderPart& part : call.header) {
    if (holds(part.before)) return true;
  }
  for (const std::string* text :
       {&call.section_open, &call.section_close, &call.arguments_open, &call.close,
        &call.other_open, &call.key_open, &call.key_end, &call.type_end, &call.value_close,
        &call.mark, &format_.reasoning_open, &format_.reasoning_close,
        &format_.channels.message_open}) {
    if (holds(*text)) return true;
  }
  const auto in_any = [&](const std::vector<std::string>& texts) {
    return std::any_of(texts.begin(), texts.end(), holds);
  };
  return in_any(format_.silent) || in_any(format_.channels.message_close) ||
         (!format_.channels.message_open.empty() && token.starts_with("<|"));
}

void OutputParser::push(std::string_view piece, std::vector<OutputEvent>& events) {
  behind_reasoning_.clear();
  if (has_stopped_) return;
  input_ += piece;
  while (!has_stopped_ && step(false)) {
  }
  if (at_ > kKeptBytes && state_ != State::call) erase_read();
  events_.take(has_stopped_, events);
}

void OutputParser::erase_read() {
  input_.erase(0, at_);
  erased_bytes_ += std::exchange(at_, 0);
}

// What may be a call is looked at again from its beginning, where it is none. White space that is
// held is not counted with what stands before it.
size_t OutputParser::settled_bytes() const {
  if (has_stopped_) return stop_begin_;
  const bool may_be_text = state_ == State::call && !calls_.is_certain();
  const size_t read = erased_bytes_ + (may_be_text ? std::min(call_begin_, at_) : at_);
  return read - std::min(held_space_.size(), read);
}

void OutputParser::finish(bool is_cut, std::vector<OutputEvent>& events) {
  const bool may_wait = state_ == State::text || state_ == State::reasoning;
  if (is_cut && may_wait && !has_stopped_) leave_out_half_marker();
  while (!has_stopped_ && step(true)) {
  }
  if (!has_stopped_) {
    if (state_ == State::call) calls_.finish(events_);
    if (state_ == State::text) events_.text(OutputEvent::Kind::text, held_space_);
  }
  held_space_.clear();
  events_.take(true, events);
}

void OutputParser::leave_out_half_marker() {
  const std::vector<Marker>& markers = state_ == State::reasoning ? closings_ : markers_;
  const bool is_half = std::any_of(markers.begin(), markers.end(), [&](const Marker& marker) {
    size_t bytes = 0;
    return marker.action != Action::stop && !(marker.at_start && has_text_) &&
           match(marker, rest(), false, bytes) == Match::more;
  });
  if (is_half) at_ = input_.size();
}

bool OutputParser::step(bool is_all) {
  switch (state_) {
    case State::text:
      return step_text(is_all);
    case State::reasoning:
      return step_reasoning(is_all);
    case State::call:
      return step_call(is_all);
    case State::header:
      return step_header(is_all);
  }
  return false;
}

Match OutputParser::match(const Marker& marker, std::string_view text, bool is_all,
                          size_t& bytes) const {
  if (!marker.is_exact) return match_loose(marker.text, text, is_all, bytes);
  bytes = marker.text.size();
  if (text.starts_with(marker.text)) return Match::yes;
  return !is_all && marker.text.starts_with(text) ? Match::more : Match::no;
}

// The first place where a marker begins or may begin. Of markers that begin at one place the
// longest counts, so a shorter one waits until the longer ones are out of the question.
OutputParser::Found OutputParser::find_marker(bool is_all) const {
  const std::string_view text = rest();
  const bool is_reasoning = state_ == State::reasoning;
  const std::vector<Marker>& markers = is_reasoning ? closings_ : markers_;
  const CallFormat& call = format_.call;
  const bool may_be_bare = !is_reasoning && options_.reads_calls && !has_text_ &&
                           call.shape != CallShape::none && !call.header.empty() &&
                           trimmed(call.header[0].before).empty();
  const char bare_first = call.shape == CallShape::python ? '[' : '{';
  bool has_text = has_text_;
  for (size_t at = 0; at < text.size(); ++at) {
    for (const Marker& marker : markers) {
      if (marker.text.front() != text[at] || (marker.at_start && has_text)) continue;
      size_t bytes = 0;
      const Match matched = match(marker, text.substr(at), is_all, bytes);
      if (matched == Match::more) return {.begin = at};
      if (matched == Match::yes) return {.begin = at, .bytes = bytes, .marker = &marker};
    }
    if (may_be_bare && !has_text && text[at] == bare_first) {
      return {.begin = at, .is_bare_call = true};
    }
    has_text = has_text || !is_space(text[at]);
  }
  return {.begin = text.size()};
}

bool OutputParser::step_text(bool is_all) {
  const Found found = find_marker(is_all);
  emit(rest().substr(0, found.begin));
  at_ += found.begin;
  call_begin_ = at_;
  call_opening_bytes_ = found.bytes;
  if (found.is_bare_call) {
    calls_.begin_bare();
    state_ = State::call;
    return true;
  }
  if (found.marker == nullptr) return false;
  at_ += found.bytes;
  act(*found.marker);
  return true;
}

void OutputParser::act(const Marker& marker) {
  if (state_ == State::reasoning) behind_reasoning_ = rest();
  switch (marker.action) {
    case Action::drop:
      if (state_ == State::reasoning || !has_text_) drops_space_ = tracks_space_;
      if (state_ == State::reasoning) enter(State::text);
      if (!has_text_) held_space_.clear();
      return;
    case Action::reasoning:
      enter(State::reasoning);
      return;
    case Action::section:
      calls_.begin_section();
      state_ = State::call;
      return;
    case Action::call:
      calls_.begin_call();
      state_ = State::call;
      return;
    case Action::stop:
      events_.text(OutputEvent::Kind::text, held_space_);
      stop_begin_ = erased_bytes_ + call_begin_;
      stop_text_ = marker.text;
      has_stopped_ = true;
      return;
    case Action::header:
      enter(State::header);
      return;
  }
}

void OutputParser::enter(State state) {
  state_ = state;
  held_space_.clear();
  drops_space_ = tracks_space_;
}

bool OutputParser::step_reasoning(bool is_all) {
  const Found found = find_marker(is_all);
  emit(rest().substr(0, found.begin));
  at_ += found.begin;
  if (found.marker == nullptr) return false;
  at_ += found.bytes;
  act(*found.marker);
  return true;
}

// White space counts only between what is text: not at its start, and at its end only if nothing
// else follows.
void OutputParser::emit(std::string_view piece) {
  if (piece.empty()) return;
  const bool is_reasoning = state_ == State::reasoning;
  const OutputEvent::Kind kind =
      is_reasoning ? OutputEvent::Kind::reasoning : OutputEvent::Kind::text;
  if (!tracks_space_ && !is_reasoning) {
    has_text_ = has_text_ || !trimmed(piece).empty();
    events_.text(kind, piece);
    return;
  }
  if (drops_space_) piece = trimmed_left(piece);
  if (piece.empty()) return;
  drops_space_ = false;
  const std::string_view words = trimmed_right(piece);
  if (words.empty()) {
    held_space_ += piece;
    return;
  }
  if (!is_reasoning) has_text_ = true;
  events_.text(kind, held_space_);
  events_.text(kind, words);
  held_space_ = piece.substr(words.size());
}

bool OutputParser::step_call(bool is_all) {
  Cursor cursor{.text = input_, .at = at_, .is_all = is_all};
  const bool was_certain = calls_.is_certain();
  const CallReader::Step step = calls_.step(cursor, events_);
  at_ = cursor.at;
  if (calls_.is_certain() && !was_certain) held_space_.clear();
  switch (step) {
    case CallReader::Step::moved:
      return true;
    case CallReader::Step::more:
      if (calls_.is_certain()) {
        erase_read();
      } else if (is_all && calls_.is_bare()) {
        break;  // It only looked like one.
      }
      return false;
    case CallReader::Step::ended:
      state_ = State::text;
      drops_space_ = true;
      has_text_ = has_text_ || calls_.is_certain();
      if (!format_.channels.message_open.empty()) has_text_ = false;
      return true;
    case CallReader::Step::not_a_call:
      break;
  }
  // What looked like a call's beginning is text after all; what follows it is looked at again.
  state_ = State::text;
  at_ = call_begin_;
  const size_t bytes = std::max<size_t>(call_opening_bytes_, 1);
  emit(rest().substr(0, bytes));
  at_ += bytes;
  return true;
}

// <header><message_open>: who is spoken to, and in which channel.
bool OutputParser::step_header(bool is_all) {
  const size_t end = rest().find(format_.channels.message_open);
  if (end == kNone) {
    // A header that never ends is none.
    if (rest().size() < kHeaderBytesMax || is_all) return false;
    enter(State::text);
    return true;
  }
  const std::string header(rest().substr(0, end));
  at_ += end + format_.channels.message_open.size();
  const std::string_view recipient = word_behind(header, "to=");
  has_text_ = false;
  if (recipient.starts_with(kCallRecipient) && options_.reads_calls) {
    calls_.begin_named(recipient.substr(kCallRecipient.size()), events_);
    state_ = State::call;
  } else if (options_.reads_reasoning &&
             (header.find("analysis") != kNone || recipient == "self")) {
    enter(State::reasoning);
  } else {
    enter(State::text);
  }
  return true;
}

}  // namespace cairn::chat
