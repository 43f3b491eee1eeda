// Writing files, and the table of unfinished ones that signal handlers read. That table is global
// since a handler is given nothing; it is written with atomics only and never allocates.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/process.h"

namespace cairn {
namespace {

constexpr int kGuardSlots = 16;
constexpr int kLinksMax = 40;  // As many as the kernel follows.
constexpr int kNamesTried = 8;
constexpr uint32_t kPrivateMode = 0600;

// A row is taken by `taken`, filled, and shown to the handlers by `is_shown`.
struct GuardSlot {
  std::atomic<bool> taken{false};
  std::atomic<bool> is_shown{false};
  char path[PATH_MAX] = {};
};

GuardSlot* guard_slots() {
  static constinit GuardSlot slots[kGuardSlots];
  return slots;
}

// The row, or -1 where all are taken or the path is longer than any may be.
int guard(const std::string& path) {
  if (path.size() >= PATH_MAX) return -1;
  for (int slot = 0; slot < kGuardSlots; ++slot) {
    GuardSlot& row = guard_slots()[slot];
    if (row.taken.exchange(true, std::memory_order_acquire)) continue;
    std::memcpy(row.path, path.c_str(), path.size() + 1);
    row.is_shown.store(true, std::memory_order_release);
    return slot;
  }
  return -1;
}

void unguard(int slot) {
  if (slot < 0) return;
  guard_slots()[slot].is_shown.store(false, std::memory_order_release);
  guard_slots()[slot].taken.store(false, std::memory_order_release);
}

void on_end(int signal) {
  remove_unfinished_outputs();
  // The default action follows as soon as this handler has returned.
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

Error io_error(const std::string& name, const char* verb) {
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return fail(code, "{}: cannot {}: {}", name, verb, std::strerror(errno));
}

// A rename is on the disk only when its directory is.
Status sync_directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const int opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return io_error(directory, "open the directory");
  // Some file systems have nothing to sync in a directory and say so.
  const bool is_synced = ::fsync(opened) == 0 || errno == EINVAL;
  Status status = is_synced ? Status(Ok{}) : Status(io_error(directory, "sync"));
  ::close(opened);
  return status;
}

FileIdentity identity(const struct stat& status) {
  return {uint64_t(status.st_dev), uint64_t(status.st_ino)};
}

// That what stands there may be written.
Status check_found(const std::string& name, const struct stat& found,
                   const OutputOptions& options) {
  if (S_ISDIR(found.st_mode)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a file to write, found a folder", name);
  }
  if (!S_ISREG(found.st_mode)) return Ok{};
  for (const FileIdentity& input : options.inputs) {
    if (input == identity(found)) {
      return fail(ErrorCode::invalid_argument,
                  "{}: expected another file than the input, found one that is read", name);
    }
  }
  return Ok{};
}

Status check_opened(const std::string& name, int descriptor, const OutputOptions& options) {
  struct stat found = {};
  if (::fstat(descriptor, &found) != 0) return io_error(name, "open");
  if (::isatty(descriptor) == 1) {
    return fail(ErrorCode::invalid_argument, "{}: expected a file or a pipe, found a terminal",
                name);
  }
  return check_found(name, found, options);
}

// Where bytes will go.
struct Place {
  bool is_through = false;
  std::string target;    // Of a regular file: its path behind all links.
  uint32_t mode = 0666;  // Of the file that will stand there.
};

// The path behind all links, which may lead to nothing; empty where a link is the kernel's, which
// is no name of a file.
Result<std::string> end_of_links(const std::string& path) {
  std::string end = path;
  for (int links = 0; links < kLinksMax; ++links) {
    if (end.starts_with("/proc/") || end.starts_with("/dev/fd/")) return std::string();
    char text[PATH_MAX];
    const ssize_t length = ::readlink(end.c_str(), text, sizeof text);
    if (length < 0) return end;
    std::string next(text, size_t(length));
    if (!next.starts_with('/')) next.insert(0, end, 0, end.rfind('/') + 1);
    end = std::move(next);
  }
  return fail(ErrorCode::io, "{}: expected at most {} symbolic links, found more", path, kLinksMax);
}

Result<Place> find_place(const std::string& path, const OutputOptions& options) {
  if (path.empty()) {
    return fail(ErrorCode::invalid_argument, "output: expected a path, found none");
  }
  struct stat found = {};
  const bool is_there = ::stat(path.c_str(), &found) == 0;
  if (!is_there && errno != ENOENT) return io_error(path, "write");
  if (is_there) CAIRN_TRY(check_found(path, found, options));
  CAIRN_TRY(std::string target, end_of_links(path));
  if (!options.follows_links && target != path) {
    return fail(ErrorCode::invalid_argument, "{}: expected a file, found a symbolic link", path);
  }
  if (is_there && (!S_ISREG(found.st_mode) || target.empty())) return Place{.is_through = true};
  Place place{.target = std::move(target), .mode = 0666 & ~shared_file_mask()};
  if (is_there) {
    if (::access(path.c_str(), W_OK) != 0) return io_error(path, "write");
    place.mode = found.st_mode & 0777;
  }
  if (options.is_private) place.mode = kPrivateMode;
  const size_t slash = place.target.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : place.target.substr(0, slash + 1);
  if (!identity_of(folder)) {
    return fail(ErrorCode::not_found, "{}: expected a folder for it, found none at {}", path,
                folder);
  }
  return place;
}

// Eight digits that no other program is likely to choose.
std::string random_digits() {
  uint32_t bits = 0;
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != ssize_t(sizeof bits)) {
    bits = uint32_t(::getpid());
  }
  return fmt::format("{:08x}", bits);
}

// A new file, and its row in the table.
struct NewFile {
  std::string path;
  int guard_slot, descriptor;
};

// BEFORE + eight digits + BEHIND, for its owner alone. It is in the table before it is made, so
// that no signal comes between the two. `name`: what errors begin with.
Result<NewFile> make_new(const std::string& name, const std::string& before,
                         std::string_view behind) {
  for (int tried = 0; tried < kNamesTried; ++tried) {
    std::string path = fmt::format("{}{}{}", before, random_digits(), behind);
    const int slot = guard(path);
    if (slot < 0) {
      return fail(ErrorCode::no_room,
                  "{}: expected at most {} unfinished files and a path below {} bytes, found more",
                  name, kGuardSlots, PATH_MAX);
    }
    const int descriptor =
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kPrivateMode);
    if (descriptor >= 0) {
      return NewFile{.path = std::move(path), .guard_slot = slot, .descriptor = descriptor};
    }
    const int why = errno;
    unguard(slot);
    errno = why;
    if (why != EEXIST) return io_error(name, "create");
  }
  return fail(ErrorCode::io, "{}: expected a free name beside it, found {} taken", name,
              kNamesTried);
}

}  // namespace

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return identity(status);
}

Status check_output(const std::string& path, const OutputOptions& options) {
  if (path == "-") return check_opened("standard output", STDOUT_FILENO, options);
  CAIRN_TRY(find_place(path, options));
  return Ok{};
}

Result<OutputFile> OutputFile::open(const std::string& path, const OutputOptions& options) {
  if (path == "-") return open_standard_output(options);
  CAIRN_TRY(Place place, find_place(path, options));
  if (place.is_through) return open_through(path, options);
  return open_aside(path, std::move(place.target), place.mode);
}

Result<OutputFile> OutputFile::open_standard_output(const OutputOptions& options) {
  const std::string name = "standard output";
  CAIRN_TRY(check_opened(name, STDOUT_FILENO, options));
  std::fflush(stdout);  // What was printed before stands before it.
  const int descriptor = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return io_error(name, "open");
  return OutputFile(name, descriptor);
}

// What is behind a link of the kernel's may be a regular file that the shell has opened: more of it
// goes to its end.
Result<OutputFile> OutputFile::open_through(const std::string& path, const OutputOptions& options) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0) return io_error(path, "write");
  OutputFile file(path, descriptor);
  CAIRN_TRY(check_opened(path, descriptor, options));
  return file;
}

Result<OutputFile> OutputFile::open_aside(const std::string& path, std::string target,
                                          uint32_t mode) {
  CAIRN_TRY(NewFile made, make_new(path, target + ".partial.", ""));
  OutputFile file(path, made.descriptor);
  file.target_ = std::move(target);
  file.aside_ = std::move(made.path);
  file.guard_slot_ = made.guard_slot;
  if (::fchmod(made.descriptor, mode) != 0) return io_error(path, "set the permissions");
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept {
  *this = std::move(other);
}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  name_ = std::move(other.name_);
  target_ = std::move(other.target_);
  aside_ = std::move(other.aside_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  guard_slot_ = std::exchange(other.guard_slot_, -1);
  appended_ = std::exchange(other.appended_, 0);
  return *this;
}

OutputFile::~OutputFile() {
  abandon();
}

void OutputFile::abandon() {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  if (aside_.empty()) return;
  ::unlink(aside_.c_str());
  unguard(std::exchange(guard_slot_, -1));
}

Status OutputFile::append(std::span<const std::byte> bytes) {
  CHECK(descriptor_ >= 0);
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return io_error(name_, "write");
    bytes = bytes.subspan(size_t(wrote));
    appended_ += uint64_t(wrote);
  }
  return Ok{};
}

Status OutputFile::commit() {
  CHECK(descriptor_ >= 0);
  if (aside_.empty()) {
    if (::close(std::exchange(descriptor_, -1)) != 0) return io_error(name_, "write");
    return Ok{};
  }
  if (::fsync(descriptor_) != 0) return io_error(name_, "sync");
  if (::rename(aside_.c_str(), target_.c_str()) != 0) return io_error(name_, "rename to");
  ::close(std::exchange(descriptor_, -1));
  unguard(std::exchange(guard_slot_, -1));
  return sync_directory_of(target_);
}

Result<TemporaryFile> TemporaryFile::create(const std::string& folder, const std::string& name,
                                            std::string_view ending) {
  CAIRN_TRY(NewFile made, make_new(folder, folder + "/" + name + "-", ending));
  ::close(made.descriptor);
  return TemporaryFile(std::move(made.path), made.guard_slot);
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), guard_slot_(other.guard_slot_) {}

TemporaryFile::~TemporaryFile() {
  if (path_.empty()) return;
  ::unlink(path_.c_str());
  unguard(guard_slot_);
}

Status write_file(const std::string& path, std::span<const std::byte> bytes,
                  const OutputOptions& options) {
  CAIRN_TRY(OutputFile file, OutputFile::open(path, options));
  CAIRN_TRY(file.append(bytes));
  return file.commit();
}

void install_output_guard() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXCPU, SIGABRT}) {
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
    struct sigaction action = {};
    action.sa_handler = on_end;
    ::sigemptyset(&action.sa_mask);
    (void)::sigaction(signal, &action, nullptr);
  }
}

void remove_unfinished_outputs() {
  for (int slot = 0; slot < kGuardSlots; ++slot) {
    const GuardSlot& row = guard_slots()[slot];
    if (row.is_shown.load(std::memory_order_acquire)) ::unlink(row.path);
  }
}

}  // namespace cairn
