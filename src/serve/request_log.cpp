// One write for each line.
#include "serve/request_log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <utility>

#include "json/value.h"

namespace cairn::serve {

namespace {

constexpr size_t kPathBytesMax = 256;
// What a pipe takes at once or not at all.
constexpr size_t kLineBytesMax = 4096;

// "2026-03-14T09:26:53.589Z".
std::string time_text() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  std::tm parts = {};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     since.count() % 1000);
}

}  // namespace

Result<std::unique_ptr<RequestLog>> RequestLog::open(const std::string& path) {
  int descriptor = -1;
  if (path == "-") {
    descriptor = STDOUT_FILENO;
  } else if (!path.empty()) {
    descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (descriptor < 0) {
      return fail(ErrorCode::io, "{}: cannot be written: {}", path, std::strerror(errno));
    }
  }
  return std::unique_ptr<RequestLog>(new RequestLog(descriptor));
}

RequestLog::~RequestLog() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

void RequestLog::add(const http::Request& request, const http::Reply& reply,
                     const http::Handler::Outcome& outcome) {
  if (descriptor_ < 0) return;
  json::Value line = {{"time", time_text()},
                      {"id", request.id},
                      {"method", request.head.method_name.substr(0, 16)},
                      {"path", request.head.path.substr(0, kPathBytesMax)},
                      {"status", outcome.status},
                      {"ms", std::round(outcome.seconds * 1e6) / 1e3},
                      {"bytes", outcome.bytes},
                      {"address", request.address}};
  if (!request.client.empty()) line["client"] = request.client;
  for (const auto& [name, number] : reply.figures()) line[name] = number;
  if (lost_count_ > 0) line["lost_lines"] = lost_count_;
  const std::string text = json::to_text(line) + "\n";
  struct pollfd wait = {descriptor_, POLLOUT, 0};
  const bool has_room = text.size() <= kLineBytesMax && ::poll(&wait, 1, 0) == 1;
  const bool is_written =
      has_room && ::write(descriptor_, text.data(), text.size()) == ssize_t(text.size());
  lost_count_ = is_written ? 0 : lost_count_ + 1;
}

}  // namespace cairn::serve
