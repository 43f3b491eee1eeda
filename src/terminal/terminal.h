// Where output goes and how: a terminal is a parser, so what strangers wrote (a model, a file name)
// is made harmless for it; a file or a pipe gets the exact bytes. Progress is for terminals only.
// Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn::terminal {

bool is_terminal(std::FILE* file);
// A terminal that colours may be sent to (https://no-color.org).
bool uses_color(std::FILE* file);

// Escapes for TextOut::style().
constexpr std::string_view kDim = "\033[2m";
constexpr std::string_view kNormal = "\033[0m";

// Text in complete characters, as it comes (text/detokenizer.h never gives a part of one, so
// each piece can be made printable by itself).
class TextOut {
 public:
  explicit TextOut(std::FILE* file) : file_(file), is_terminal_(terminal::is_terminal(file)) {}

  void write(std::string_view text);
  // An escape of the program's own; nothing where there are no colours.
  void style(std::string_view escape);
  // Errors: io, if any write so far has failed.
  Status finish();

 private:
  std::FILE* file_;
  bool is_terminal_;
};

// One line on stderr that is drawn over and taken away at the end: at most ten times a second, and
// not for what is done in a moment. Nothing at all where stderr is no terminal.
class Progress {
 public:
  enum class Unit {
    bytes,
    transfer,
    tokens,
    operations
  };  // transfer: bytes, and how many a second.
  Progress(std::string_view what, Unit unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done, uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  Unit unit_;
  bool is_shown_;
  Clock::time_point start_, next_draw_;
  size_t drawn_width_ = 0;
};

// The text of a progress line: "loading [####------------] 1.2 GiB of 4.0 GiB, 6 s left". A total
// of 0 is not known.
std::string progress_line(std::string_view what, Progress::Unit unit, uint64_t done, uint64_t total,
                          double elapsed_seconds);
// The line with another text before it, so that it is no wider than that: of `what` its end is
// kept, of the line its beginning, so many of its parts as there is room for.
std::string fitted_line(std::string_view what, std::string_view rest, size_t columns);

}  // namespace cairn::terminal
