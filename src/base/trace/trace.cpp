// An event is a line and one write, so that a reader finds whole lines. Times are microseconds.
#include "base/trace/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/output_file.h"

namespace cairn {

namespace {

constexpr std::string_view kBegin =
    "[\n{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"process_name\",\"args\":{\"name\":\"cairn\"}}";
constexpr std::string_view kEnd = "\n]\n";
constexpr size_t kLabelMax = 128;

using Line = fmt::memory_buffer;

double microseconds(Trace::Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// What needs no escapes in JSON.
std::string plain(std::string_view text) {
  std::string plain(text.substr(0, kLabelMax));
  std::ranges::replace_if(
      plain, [](char c) { return c < ' ' || c > '~' || c == '"' || c == '\\'; }, '_');
  return plain;
}

void add_args(Line& line, std::span<const Trace::Figure> figures, std::string_view label) {
  if (figures.empty() && label.empty()) return;
  const auto out = std::back_inserter(line);
  std::string_view comma;
  fmt::format_to(out, ",\"args\":{{");
  if (!label.empty()) fmt::format_to(out, "\"id\":\"{}\"", plain(label));
  if (!label.empty()) comma = ",";
  for (const Trace::Figure& figure : figures) {
    fmt::format_to(out, "{}\"{}\":{}", std::exchange(comma, ","), figure.name, figure.value);
  }
  fmt::format_to(out, "}}");
}

// Whether it is empty, or an earlier trace.
bool may_be_replaced(int descriptor) {
  std::string begin(kBegin.size(), '\0');
  const ssize_t count = ::pread(descriptor, begin.data(), begin.size(), 0);
  return count == 0 || (count == ssize_t(kBegin.size()) && begin == kBegin);
}

}  // namespace

Result<std::unique_ptr<Trace>> Trace::open(const std::string& path, uint64_t bytes_max) {
  CAIRN_TRY(check_output(path));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
  if (descriptor < 0) {
    return fail(ErrorCode::io, "{}: cannot be written: {}", path, std::strerror(errno));
  }
  std::unique_ptr<Trace> trace(new Trace(path, descriptor, bytes_max));
  struct stat found = {};
  if (::fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a file for the trace, found none", path);
  }
  if (!may_be_replaced(descriptor)) {
    return fail(ErrorCode::invalid_argument,
                "{}: expected a new file or an earlier trace, found another file", path);
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::io, "{}: another process writes its trace there", path);
  }
  if (::fchmod(descriptor, 0600) != 0 || ::ftruncate(descriptor, 0) != 0 ||
      !trace->write_all(kBegin)) {
    return fail(ErrorCode::io, "{}: cannot be written: {}", path, std::strerror(errno));
  }
  return trace;
}

Trace::Trace(std::string path, int descriptor, uint64_t bytes_max)
    : path_(std::move(path)), bytes_max_(bytes_max), descriptor_(descriptor) {}

Trace::~Trace() {
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0) return;
  if (bytes_ > 0) (void)write_all(kEnd);
  ::close(descriptor_);
}

void Trace::add_span(std::string_view thread, std::string_view name, Clock::time_point begin,
                     std::span<const Figure> figures) {
  const auto now = Clock::now();
  const int id = int(::gettid());
  Line line;
  fmt::format_to(
      std::back_inserter(line),
      ",\n{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"name\":\"{}\"", id,
      microseconds(begin - begin_), microseconds(now - begin), name);
  add_args(line, figures, {});
  line.push_back('}');
  const std::lock_guard lock(mutex_);
  if (descriptor_ < 0) return;
  if (named_threads_.insert(id).second) {
    write(
        fmt::format(",\n{{\"ph\":\"M\",\"pid\":1,\"tid\":{},\"name\":\"thread_name\","
                    "\"args\":{{\"name\":\"{}\"}}}}",
                    id, thread));
  }
  write({line.data(), line.size()});
}

void Trace::begin(int64_t task, std::string_view name, std::span<const Figure> figures,
                  std::string_view label, Clock::time_point at) {
  write_task('b', task, name, figures, label, at);
}

void Trace::end(int64_t task, std::string_view name, std::span<const Figure> figures) {
  write_task('e', task, name, figures, {}, Clock::now());
}

void Trace::write_task(char phase, int64_t task, std::string_view name,
                       std::span<const Figure> figures, std::string_view label,
                       Clock::time_point at) {
  Line line;
  fmt::format_to(std::back_inserter(line),
                 ",\n{{\"ph\":\"{}\",\"pid\":1,\"tid\":0,\"ts\":{:.3f},\"cat\":\"request\","
                 "\"id\":{},\"name\":\"{}\"",
                 phase, microseconds(at - begin_), task, name);
  add_args(line, figures, label);
  line.push_back('}');
  const std::lock_guard lock(mutex_);
  write({line.data(), line.size()});
}

// REQUIRES: the mutex is held.
void Trace::write(std::string_view event) {
  if (descriptor_ < 0) return;
  const bool has_room = bytes_ + event.size() + kEnd.size() <= bytes_max_;
  if (has_room && write_all(event)) return;
  log::warning("{}: the trace ends here: {}", path_,
               has_room ? std::strerror(errno) : "it is as large as it may be");
  if (!has_room) (void)write_all(kEnd);
  ::close(descriptor_);
  descriptor_ = -1;
}

bool Trace::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(size_t(count));
    bytes_ += uint64_t(count);
  }
  return true;
}

}  // namespace cairn
