// POSIX file calls with their interruptions and short counts handled.
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
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

// A rename is on the disk only when its directory is.
Status sync_directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const Descriptor opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.number < 0) return io_error(directory, "open the directory");
  // Some file systems have nothing to sync in a directory and say so.
  if (::fsync(opened.number) != 0 && errno != EINVAL) return io_error(directory, "sync");
  return Ok{};
}

}  // namespace

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0) return io_error(path, "open");
  struct stat status = {};
  if (::fstat(file.number, &status) != 0) return io_error(path, "read its size");
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a regular file, found {}", path,
                S_ISDIR(status.st_mode) ? "a directory" : "something else");
  }
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
    if (size_t(got) > bytes_max - text.size()) {
      return fail(ErrorCode::no_room, "{}: expected at most {} bytes, found more", path, bytes_max);
    }
    text.append(buffer, size_t(got));
  }
}

Status write_file_aside(const std::string& path, std::span<const std::byte> bytes) {
  CAIRN_TRY(FileWriter writer, FileWriter::open(path));
  CAIRN_TRY(writer.append(bytes));
  return writer.commit();
}

Result<FileWriter> FileWriter::open(const std::string& path) {
  std::string aside = fmt::format("{}.partial.{}.{}", path, ::getpid(), ::gettid());
  const int descriptor =
      ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) return io_error(aside, "create");
  return FileWriter(path, std::move(aside), descriptor);
}

FileWriter::FileWriter(std::string path, std::string aside, int descriptor)
    : path_(std::move(path)), aside_(std::move(aside)), descriptor_(descriptor) {}

FileWriter::FileWriter(FileWriter&& other) noexcept {
  *this = std::move(other);
}

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  path_ = std::move(other.path_);
  aside_ = std::move(other.aside_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  appended_ = std::exchange(other.appended_, 0);
  return *this;
}

FileWriter::~FileWriter() {
  abandon();
}

void FileWriter::abandon() {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  ::unlink(aside_.c_str());
}

Status FileWriter::append(std::span<const std::byte> bytes) {
  CAIRN_TRY(pwrite(appended_, bytes));
  appended_ += bytes.size();
  return Ok{};
}

Status FileWriter::pwrite(uint64_t offset, std::span<const std::byte> bytes) {
  CHECK(descriptor_ >= 0);
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(descriptor_, bytes.data(), bytes.size(), off_t(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_error(aside_, "write");
    bytes = bytes.subspan(size_t(wrote));
    offset += uint64_t(wrote);
  }
  return Ok{};
}

Status FileWriter::commit() {
  CHECK(descriptor_ >= 0);
  if (::fsync(descriptor_) != 0) return io_error(aside_, "sync");
  if (::rename(aside_.c_str(), path_.c_str()) != 0) return io_error(path_, "rename to");
  ::close(std::exchange(descriptor_, -1));
  return sync_directory_of(path_);
}

}  // namespace cairn
