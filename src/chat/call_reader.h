// Parses tool calls from a text that arrives in pieces. The result depends only on the text, never
// on how it was cut. Knows nothing of the text around the calls. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "chat/format.h"
#include "chat/json_scanner.h"
#include "chat/output_event.h"
#include "chat/tools.h"

namespace cairn::chat {

// What is there of the text, and how far it was read.
struct Cursor {
  std::string_view text;
  size_t at = 0;
  bool is_all = false;  // Nothing will follow.

  std::string_view rest() const { return text.substr(at); }
  bool is_empty() const { return at == text.size(); }
  void skip_space();
};

class CallReader {
 public:
  enum class Step : uint8_t {
    more,        // Nothing can be decided before more of the text is there.
    moved,       // Something was read; there may be more.
    ended,       // The calls are over; what follows is text.
    not_a_call,  // What was read since begin() was no call. No event was emitted for it.
  };

  // Both must outlive the reader. `tools` may be empty.
  CallReader(const CallFormat* format, const std::vector<Tool>* tools);

  // Behind the text that opens a call, or all of them.
  void begin_call();
  void begin_section();
  // At the first byte of what may be a call, for formats that open it by nothing.
  void begin_bare();
  // A call whose name is known already: its arguments follow as JSON.
  void begin_named(std::string_view name, EventList& events);

  Step step(Cursor& input, EventList& events);
  // The text has ended: a call that is open stays unfinished.
  void finish(EventList& events);

  int32_t call_count() const { return call_count_; }
  // Whether an event was emitted since begin().
  bool is_certain() const { return is_certain_; }
  bool is_bare() const { return is_bare_; }

 private:
  enum class State : uint8_t {
    header,
    arguments,
    tail,
    between,
    parameter,
    value,
    whole,
    objects,
    members,
    arguments_member,
    python,
    python_arguments,
  };

  Step reset(State state);
  void reset_call();
  Step broken(EventList& events);
  bool start(EventList& events);
  Step end_call(EventList& events, bool is_whole);
  void arguments_piece(std::string_view piece, EventList& events);

  Step read_header(Cursor& input, EventList& events);
  Step finish_header(EventList& events);
  Step read_arguments(Cursor& input, EventList& events, State next);
  Step read_tail(Cursor& input, EventList& events);
  Step read_between(Cursor& input);
  Step read_parameter(Cursor& input, EventList& events);
  bool begin_value(Cursor& input, EventList& events);
  Step read_value(Cursor& input, EventList& events);
  Step read_whole(Cursor& input, EventList& events);
  Step read_objects(Cursor& input);
  Step read_members(Cursor& input, EventList& events);
  Step read_member(Cursor& input, std::string_view key, EventList& events);
  Step take_text_member(Cursor& input, std::string& value);
  Step end_object(Cursor& input, EventList& events);
  Step read_python(Cursor& input, EventList& events);
  Step read_python_arguments(Cursor& input, EventList& events);

  const CallFormat& format_;
  const std::vector<Tool>& tools_;
  State state_ = State::between;
  int32_t call_count_ = 0;
  bool is_bare_ = false;
  bool is_certain_ = false;

  // Of the call that is being read.
  size_t field_ = 0;  // Of the header.
  std::string name_, id_;
  std::string early_arguments_;  // Written before the name.
  bool is_started_ = false;
  bool has_arguments_ = false;
  JsonScanner json_;
  int32_t object_depth_ = 0;  // Objects around the call's members: {"function": {"name": …
  ParameterType value_type_ = ParameterType::any;
  bool is_value_begun_ = false;
  std::string value_close_;
};

}  // namespace cairn::chat
