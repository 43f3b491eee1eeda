// Lines from a person: edited and remembered on a terminal, plain otherwise. The only user of
// libedit. The terminal's own mode is back whenever read() has returned, and when a signal ends the
// program. Thread rule: one thread; one editor at a time.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"

namespace cairn::terminal {

class LineEditor {
 public:
  // Edits where both `in` and `out` are terminals. `history_path`: empty for no history file; the
  // file and its folders are made for their owner only. It holds the last 1000 lines of at most
  // 4096 bytes; a file that is a symbolic link or somebody else's is left alone, which is told.
  LineEditor(std::FILE* in, std::FILE* out, std::string history_path);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // interrupt: Ctrl-C; the line is dropped. failure: error() says why.
  enum class Event { line, end, interrupt, failure };
  // The next line, without its newline; lines that are pasted are one. `initial` stands on it
  // already, to be changed, where lines are edited and it has no line break.
  Event read(const char* prompt, std::string& line, size_t bytes_max,
             const std::string& initial = {});
  // REQUIRES: the last read() was a failure.
  Error error() const { return *error_; }
  // Adds a line to the history and its file.
  void remember(const std::string& line);

 private:
  struct Editing;

  std::FILE* in_;
  std::FILE* out_;
  std::unique_ptr<Editing> editing_;  // Null where lines are plain.
  std::optional<Error> error_;
};

// $XDG_STATE_HOME/cairn/history or ~/.local/state/cairn/history; empty where neither is known.
std::string default_history_path();

}  // namespace cairn::terminal
