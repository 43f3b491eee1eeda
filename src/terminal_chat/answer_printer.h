// An answer on its way to standard output: its text as it comes, reasoning dimmed before it on a
// terminal (elsewhere output is the answer alone), progress while the prompt is read; and calls as
// a line each. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>

#include "session/completion.h"
#include "terminal/terminal.h"

namespace cairn::terminal_chat {

class AnswerPrinter {
 public:
  // `out` must outlive the printer. `is_silent`: nothing is shown but progress.
  explicit AnswerPrinter(terminal::TextOut* out, bool is_silent = false);
  AnswerPrinter(const AnswerPrinter&) = delete;
  AnswerPrinter& operator=(const AnswerPrinter&) = delete;

  // Stay valid as long as the printer.
  session::AnswerHooks hooks();
  // The answer has ended, well or not: colours and the line as they were.
  void finish();

 private:
  void text(std::string_view piece);
  void reasoning(std::string_view piece);
  void end_reasoning();

  terminal::TextOut* out_;
  bool is_silent_;
  bool shows_reasoning_;
  std::optional<terminal::Progress> progress_;
  bool is_reasoning_ = false;
  bool is_at_line_start_ = true;
};

// "get_weather({"city": "Paris"})".
std::string call_line(const chat::ToolCall& call);

}  // namespace cairn::terminal_chat
