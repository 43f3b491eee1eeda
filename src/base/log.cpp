// The only file that knows spdlog. The logger is made at the first message: there is one stderr for
// the process, so there is one logger, and nothing else of it is global.
#include "base/log.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "base/env.h"
#include "base/output_file.h"
#include "base/printable.h"

namespace cairn::log {
namespace {

constexpr size_t kLineBytesMax = 8192;

spdlog::logger& logger() {
  static spdlog::logger logger = [] {
    // Colours are for terminals whose user wants them (https://no-color.org).
    const bool is_plain = !env("NO_COLOR").value_or("").empty();
    const auto mode = is_plain ? spdlog::color_mode::never : spdlog::color_mode::automatic;
    spdlog::logger made("cairn", std::make_shared<spdlog::sinks::stderr_color_sink_mt>(mode));
    made.set_pattern("%H:%M:%S.%e %^%l%$ %v");
    made.set_level(spdlog::level::info);
    made.flush_on(spdlog::level::trace);
    return made;
  }();
  return logger;
}

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::debug:
      return spdlog::level::debug;
    case Level::info:
      return spdlog::level::info;
    case Level::warning:
      return spdlog::level::warn;
    case Level::error:
      return spdlog::level::err;
    case Level::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

Level from_spdlog(spdlog::level::level_enum level) {
  if (level <= spdlog::level::debug) return Level::debug;
  if (level == spdlog::level::info) return Level::info;
  return level == spdlog::level::warn ? Level::warning : Level::error;
}

class ListenerSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void set(Listener listener) {
    const std::lock_guard lock(mutex_);
    listener_ = std::move(listener);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    if (listener_) listener_(from_spdlog(message.level), text);
  }
  void flush_() override {}

  Listener listener_;
};

// printable() keeps LF and TAB; in a log line they would start a second one.
std::string one_line(std::string_view message) {
  std::string line;
  for (const char c : printable(message.substr(0, kLineBytesMax))) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else {
      line += c;
    }
  }
  if (line.size() > kLineBytesMax) line.resize(kLineBytesMax);
  return line;
}

// A log is text: what has a NUL is a model, or another file that lines would destroy.
Status check_appendable(const std::string& path) {
  constexpr size_t kLookedAt = 4096;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return Ok{};
  std::string head(kLookedAt, 'x');
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), std::streamsize(head.size()));
  if (head.find('\0') == std::string::npos) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected a log to append to, found a binary file",
              path);
}

}  // namespace

void set_level(Level level) {
  logger().set_level(to_spdlog(level));
}

bool is_shown(Level level) {
  return level != Level::off && logger().should_log(to_spdlog(level));
}

// Checked first: spdlog would make the folders of a mistyped path.
Status set_file(const std::string& path) {
  CAIRN_TRY(check_output(path));
  CAIRN_TRY(check_appendable(path));
  try {
    logger().sinks() = {std::make_shared<spdlog::sinks::basic_file_sink_mt>(path)};
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorCode::io, "{}: {}", path, error.what());
  }
  logger().set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
  return Ok{};
}

void listen(Listener listener, Level level) {
  static const std::shared_ptr<ListenerSink> sink = [] {
    auto made = std::make_shared<ListenerSink>();
    logger().sinks() = {made};
    return made;
  }();
  sink->set(std::move(listener));
  set_level(level);
}

void write(Level level, std::string_view message) {
  if (!is_shown(level)) return;
  logger().log(to_spdlog(level), "{}", one_line(message));
}

}  // namespace cairn::log
