// POSIX file calls with their interruptions and short counts handled.
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

namespace cairn {
namespace {

// Closes on every way out of a function.
struct Descriptor {
  explicit Descriptor(int opened) : number(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
  const int number;
};

Error io_error(const std::string& path, const char* verb) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return fail(code, "{}: cannot {}: {}", path, verb, std::strerror(errno));
}

// A regular file, or a pipe where that may be one, opened for reading. It does not wait for whoever
// may write to a pipe.
Result<int> open_readable(const std::string& path, bool may_be_pipe, struct stat& status) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) return io_error(path, "open");
  Status found = Ok{};
  if (::fstat(opened, &status) != 0) {
    found = io_error(path, "read its size");
  } else if (!S_ISREG(status.st_mode) && !(may_be_pipe && S_ISFIFO(status.st_mode))) {
    found = fail(ErrorCode::invalid_argument, "{}: expected a regular file{}, found {}", path,
                 may_be_pipe ? " or a pipe" : "",
                 S_ISDIR(status.st_mode) ? "a directory" : "something else");
  } else if (::fcntl(opened, F_SETFL, 0) != 0) {  // From here on reading waits for data.
    found = io_error(path, "read");
  }
  if (found) return opened;
  ::close(opened);
  return std::move(found).error();
}

Error too_long(std::string_view name, size_t bytes_max) {
  return fail(ErrorCode::no_room, "{}: expected at most {} bytes, found more", name, bytes_max);
}

Error input_error() {
  return fail(ErrorCode::io, "standard input: cannot read: {}", std::strerror(errno));
}

Result<std::string> read_opened(int opened, const struct stat& status, const std::string& path,
                                size_t bytes_max) {
  const Descriptor file(opened);
  if (uint64_t(status.st_size) > bytes_max) {
    return fail(ErrorCode::no_room, "{}: expected at most {} bytes, found {}", path, bytes_max,
                status.st_size);
  }
  // The kernel's own files (/proc, /sys) say 0 bytes and have some, so reading goes on to the end.
  std::string text;
  char buffer[1 << 14];
  for (;;) {
    const ssize_t got = ::read(file.number, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path, "read");
    if (got == 0) return text;
    if (size_t(got) > bytes_max - text.size()) return too_long(path, bytes_max);
    text.append(buffer, size_t(got));
  }
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  struct stat status = {};
  CAIRN_TRY(const int opened, open_readable(path, false, status));
  return read_opened(opened, status, path, bytes_max);
}

Result<std::string> read_input(const std::string& path, size_t bytes_max) {
  if (path == "-") return read_standard_input(bytes_max);
  struct stat status = {};
  CAIRN_TRY(const int opened, open_readable(path, true, status));
  return read_opened(opened, status, path, bytes_max);
}

Result<std::string> read_beginning(const std::string& path, size_t count) {
  struct stat status = {};
  CAIRN_TRY(const int opened, open_readable(path, false, status));
  const Descriptor file(opened);
  std::string text(count, '\0');
  size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(file.number, text.data() + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path, "read");
    if (got == 0) break;
    done += size_t(got);
  }
  text.resize(done);
  return text;
}

Result<std::string> read_standard_input(size_t bytes_max) {
  std::string text;
  char buffer[1 << 16];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, stdin)) {
    if (count > bytes_max - text.size()) return too_long("standard input", bytes_max);
    text.append(buffer, count);
  }
  if (std::ferror(stdin) != 0) return input_error();
  return text;
}

Result<bool> read_line(std::FILE* stream, std::string& line, size_t bytes_max) {
  line.clear();
  int letter = std::getc(stream);
  if (letter == EOF) {
    if (std::ferror(stream) != 0) return input_error();
    return false;
  }
  for (; letter != EOF && letter != '\n'; letter = std::getc(stream)) {
    if (line.size() == bytes_max) return too_long("a line of input", bytes_max);
    line += char(letter);
  }
  return true;
}

}  // namespace cairn
