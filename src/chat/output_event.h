// The events of a model's output (text, reasoning, tool calls), in the order in which it is
// written. Thread-safe: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cairn::chat {

struct OutputEvent {
  enum class Kind : uint8_t {
    text,            // A piece of the answer.
    reasoning,       // A piece of the reasoning.
    call_start,      // A call's name is known.
    call_arguments,  // A piece of its arguments, JSON text.
    call_end,
  };
  Kind kind = Kind::text;
  int32_t call = -1;     // Which call, from 0 on.
  std::string text;      // The piece, or the call's name.
  std::string id;        // At the start, or at the end where the model writes it last; or empty.
  bool is_whole = true;  // Of call_end: false where the call was cut off or makes no sense.

  bool operator==(const OutputEvent&) const = default;
};

// Collects events; pieces of one kind that follow each other become one, and no piece ends within
// a character.
class EventList {
 public:
  void text(OutputEvent::Kind kind, std::string_view piece, int32_t call = -1);
  void start_call(int32_t call, std::string_view name, std::string_view id);
  void end_call(int32_t call, std::string_view id, bool is_whole);
  // Adds what is complete to `out`. `is_all`: what is held back too.
  void take(bool is_all, std::vector<OutputEvent>& out);

 private:
  void settle();

  std::vector<OutputEvent> events_;
  OutputEvent open_;  // The piece that may grow.
  bool has_open_ = false;
};

}  // namespace cairn::chat
