// Parses a model's output, in pieces of any size, into text, reasoning and tool calls. What could
// be the beginning of a marker, of a stop text or of a character is held back, so that no part of
// them is emitted as text. The events do not depend on how the text is cut. Thread rule: one
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/call_reader.h"
#include "chat/format.h"
#include "chat/loose_match.h"
#include "chat/output_event.h"
#include "chat/tools.h"

namespace cairn::chat {

struct ParserOptions {
  std::vector<Tool> tools = {};        // What may be called.
  bool reads_calls = true;             // Otherwise calls are text.
  bool reads_reasoning = true;         // Otherwise reasoning is text, markers included.
  std::vector<std::string> stop = {};  // End the answer; looked for in its text alone.
  std::string_view prompt = {};        // What the model goes on with: its last bytes count.
};

class OutputParser {
 public:
  OutputParser(ChatFormat format, ParserOptions options);
  OutputParser(const OutputParser&) = delete;
  OutputParser& operator=(const OutputParser&) = delete;

  // Adds what the piece tells to `events`. Nothing is parsed after a stop text.
  void push(std::string_view piece, std::vector<OutputEvent>& events);
  // The output has ended. A call that is not complete ends unfinished; without even a name, it has
  // no event. `is_cut`: the model would have gone on, so that what may be half a marker is left
  // out.
  void finish(bool is_cut, std::vector<OutputEvent>& events);

  bool has_stopped() const { return has_stopped_; }
  const std::string& stop_text() const { return stop_text_; }  // Empty unless has_stopped().
  // Of all bytes that were pushed, those before the place from where it is open what becomes of
  // them; behind a stop text: those before that. It never goes back.
  size_t settled_bytes() const;
  bool is_reasoning() const { return state_ == State::reasoning; }
  bool is_in_header() const { return state_ == State::header; }  // Of a message in a channel.
  // If the last push() ended reasoning: the rest of that piece after the end.
  const std::string& behind_reasoning() const { return behind_reasoning_; }
  int32_t call_count() const { return calls_.call_count(); }
  // Whether a control token of this text is part of the format and has to be pushed as text.
  bool reads_marker(std::string_view token) const;

 private:
  enum class State : uint8_t { text, reasoning, call, header };
  enum class Action : uint8_t { drop, reasoning, section, call, stop, header };
  struct Marker {
    std::string text;
    Action action;
    bool at_start = false;  // Counts only before any text.
    bool is_exact = false;
  };
  struct Found {
    size_t begin = 0;  // The part before it is text.
    size_t bytes = 0;
    const Marker* marker = nullptr;  // Null: `begin` bytes are text, the rest has to wait.
    bool is_bare_call = false;
  };

  void add(std::string text, Action action, bool at_start = false, bool is_exact = false);
  void start_from(std::string_view prompt);
  std::string_view rest() const { return std::string_view(input_).substr(at_); }
  bool step(bool is_all);
  bool step_text(bool is_all);
  bool step_reasoning(bool is_all);
  bool step_call(bool is_all);
  bool step_header(bool is_all);
  Found find_marker(bool is_all) const;
  Match match(const Marker& marker, std::string_view text, bool is_all, size_t& bytes) const;
  void act(const Marker& marker);
  void erase_read();
  void leave_out_half_marker();
  void emit(std::string_view piece);
  void enter(State state);

  ChatFormat format_;
  ParserOptions options_;
  std::vector<Marker> markers_;   // Of text; the longest first.
  std::vector<Marker> closings_;  // Of reasoning.
  CallReader calls_;
  EventList events_;

  State state_ = State::text;
  std::string input_;  // What is not decided yet, from at_ on.
  size_t at_ = 0;
  size_t erased_bytes_ = 0;  // That stood before input_.
  size_t stop_begin_ = 0;    // Of all bytes: where the stop text begins.
  size_t call_begin_ = 0;    // In input_: where the call's opening text begins.
  size_t call_opening_bytes_ = 0;
  std::string held_space_;  // Text only if more text follows.
  bool tracks_space_ = false;
  bool drops_space_ = false;  // White space that comes first is not text.
  bool has_text_ = false;
  bool has_stopped_ = false;
  std::string stop_text_;
  std::string behind_reasoning_;
};

}  // namespace cairn::chat
