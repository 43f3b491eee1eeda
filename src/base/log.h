// The program's own messages, on stderr or in a file, one line each. What they quote is made
// printable first, so that nothing a file or a client says can steer a terminal or forge a line.
// Thread rule: any thread, at any time.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cairn::log {

enum class Level { debug, info, warning, error, off };

// Messages below the level are dropped; the start is `info`.
void set_level(Level level);
bool is_shown(Level level);

// Sends messages to the end of a file instead of stderr. Errors: io, where it cannot be opened.
Status set_file(const std::string& path);

// Messages of these levels go to `listener` from now on instead, one after the other; none:
// nowhere. When this has returned, the listener before is not called any more. It must not log.
using Listener = std::function<void(Level level, std::string_view message)>;
void listen(Listener listener, Level level);

// One line: LF and TAB are escaped too, and it is cut at 8 KiB.
void write(Level level, std::string_view message);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (is_shown(Level::debug)) write(Level::debug, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (is_shown(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (!is_shown(Level::warning)) return;
  write(Level::warning, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  if (is_shown(Level::error)) write(Level::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cairn::log
