// Terminals, files and the line of progress.
#include "terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/env.h"
#include "base/printable.h"
#include "base/quantities.h"

namespace cairn::terminal {

namespace {

constexpr auto kFirstDraw = std::chrono::milliseconds(300);
constexpr auto kDrawInterval = std::chrono::milliseconds(100);
constexpr size_t kUsualColumns = 80;

size_t columns_of(std::FILE* file) {
  winsize size = {};
  const bool is_known = ::ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsualColumns;
}

// At most: characters of three bytes and more may be two columns wide.
size_t width_of(std::string_view text) {
  size_t width = 0;
  for (const char c : text) {
    const auto byte = uint8_t(c);
    width += byte >= 0xe0 ? 2 : (byte & 0xc0) != 0x80 ? 1 : 0;
  }
  return width;
}

// The end of a text that is wider than that.
std::string end_of(std::string_view text, size_t columns) {
  constexpr std::string_view kDots = "...";
  if (width_of(text) <= columns) return std::string(text);
  const bool has_dots = columns > kDots.size();
  const size_t room = has_dots ? columns - kDots.size() : columns;
  while (!text.empty() && (width_of(text) > room || (uint8_t(text.front()) & 0xc0) == 0x80)) {
    text.remove_prefix(1);
  }
  return (has_dots ? std::string(kDots) : "") + std::string(text);
}

}  // namespace

bool is_terminal(std::FILE* file) {
  return isatty(fileno(file)) == 1;
}

bool uses_color(std::FILE* file) {
  const auto no_color = env("NO_COLOR");
  return is_terminal(file) && (!no_color || no_color->empty()) && env("TERM") != "dumb";
}

void TextOut::write(std::string_view text) {
  if (text.empty()) return;
  const std::string safe = is_terminal_ ? printable(text) : std::string();
  const std::string_view out = is_terminal_ ? std::string_view(safe) : text;
  std::fwrite(out.data(), 1, out.size(), file_);
  std::fflush(file_);
}

void TextOut::style(std::string_view escape) {
  if (uses_color(file_)) std::fwrite(escape.data(), 1, escape.size(), file_);
}

Status TextOut::finish() {
  if (std::fflush(file_) == 0 && std::ferror(file_) == 0) return Ok{};
  return fail(ErrorCode::io, "standard output: cannot write: {}", std::strerror(errno));
}

Progress::Progress(std::string_view what, Unit unit)
    : what_(what),
      unit_(unit),
      is_shown_(is_terminal(stderr)),
      start_(Clock::now()),
      next_draw_(start_ + kFirstDraw) {}

Progress::~Progress() {
  if (drawn_width_ == 0) return;
  // Blanks rather than an escape sequence: every terminal knows them.
  const std::string blanks(std::min(drawn_width_, columns_of(stderr) - 1), ' ');
  std::fprintf(stderr, "\r%s\r", blanks.c_str());
  std::fflush(stderr);
}

void Progress::update(uint64_t done, uint64_t total) {
  const Clock::time_point now = Clock::now();
  if (!is_shown_ || now < next_draw_) return;
  next_draw_ = now + kDrawInterval;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  // In the last column some terminals begin another line.
  const size_t columns = columns_of(stderr) - 1;
  std::string line = fitted_line(what_, progress_line("", unit_, done, total, elapsed), columns);
  const size_t width = width_of(line);
  // The terminal may have become narrower.
  drawn_width_ = std::min(drawn_width_, columns);
  if (width < drawn_width_) line.append(drawn_width_ - width, ' ');
  drawn_width_ = width;
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

namespace {

// Plain characters: any terminal, any font.
std::string bar(uint64_t done, uint64_t total) {
  constexpr size_t kWidth = 16;
  const double share = total == 0 ? 0 : double(done) / double(total);
  std::string text(kWidth, '-');
  std::fill_n(text.begin(), std::min(kWidth, size_t(share * kWidth)), '#');
  return text;
}

}  // namespace

std::string fitted_line(std::string_view what, std::string_view rest, size_t columns) {
  constexpr size_t kWhatLeast = 12;
  const size_t what_width = std::min(width_of(what), kWhatLeast);
  // What comes last is told where there is room for it.
  while (what_width + width_of(rest) > columns && rest.rfind(',') != rest.npos) {
    rest = rest.substr(0, rest.rfind(','));
  }
  const size_t rest_width = std::min(width_of(rest), columns);
  return end_of(what, columns - rest_width) + std::string(rest.substr(0, rest_width));
}

std::string progress_line(std::string_view what, Progress::Unit unit, uint64_t done, uint64_t total,
                          double elapsed_seconds) {
  std::string line = fmt::format("{} [{}]", what, bar(done, total));
  if (unit == Progress::Unit::bytes || unit == Progress::Unit::transfer) {
    line += " " + show_bytes(done);
    if (total > 0) line += " of " + show_bytes(total);
    if (unit == Progress::Unit::transfer && elapsed_seconds > 0) {
      line += fmt::format(", {}/s", show_bytes(uint64_t(double(done) / elapsed_seconds)));
    }
  } else {
    line += fmt::format(" {} of {} {}", done, total,
                        unit == Progress::Unit::tokens ? "tokens" : "operations");
    if (elapsed_seconds > 0)
      line += fmt::format(", {:.0f} a second", double(done) / elapsed_seconds);
  }
  if (done > 0 && done < total) {
    const double left = elapsed_seconds * double(total - done) / double(done);
    line += fmt::format(", {} left", show_seconds(left));
  }
  return line;
}

}  // namespace cairn::terminal
