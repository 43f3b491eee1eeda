// The system's own calls.
#include "store/file_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace cairn::store {

int FileCalls::open_at(int folder, const char* name, int flags, mode_t mode) {
  return ::openat(folder, name, flags, mode);
}

int FileCalls::make_folder(int folder, const char* name, mode_t mode) {
  return ::mkdirat(folder, name, mode);
}

int FileCalls::status(int file, struct stat* status) {
  return ::fstat(file, status);
}

int FileCalls::status_at(int folder, const char* name, struct stat* status) {
  return ::fstatat(folder, name, status, AT_SYMLINK_NOFOLLOW);
}

ssize_t FileCalls::read_at(int file, void* bytes, size_t count, off_t offset) {
  return ::pread(file, bytes, count, offset);
}

ssize_t FileCalls::write_at(int file, const void* bytes, size_t count, off_t offset) {
  return ::pwrite(file, bytes, count, offset);
}

// Where a file system cannot do it, writing says whether there is room.
int FileCalls::allocate(int file, off_t bytes) {
  const int error = ::posix_fallocate(file, 0, bytes);
  if (error == 0 || error == EOPNOTSUPP || error == EINVAL) return 0;
  errno = error;
  return -1;
}

int FileCalls::will_read(int file) {
  errno = ::posix_fadvise(file, 0, 0, POSIX_FADV_WILLNEED);
  return errno == 0 ? 0 : -1;
}

int FileCalls::sync(int file) {
  return ::fsync(file);
}

int FileCalls::set_mode(int file, mode_t mode) {
  return ::fchmod(file, mode);
}

// Some file systems do not know the flag; two files of one name have the same bytes.
int FileCalls::rename_to_new(int from_folder, const char* from, int to_folder, const char* to) {
  const int done = ::renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE);
  if (done == 0 || (errno != EINVAL && errno != ENOSYS)) return done;
  return ::renameat(from_folder, from, to_folder, to);
}

int FileCalls::rename_over(int from_folder, const char* from, int to_folder, const char* to) {
  return ::renameat(from_folder, from, to_folder, to);
}

int FileCalls::remove_at(int folder, const char* name) {
  return ::unlinkat(folder, name, 0);
}

int FileCalls::mark_used(int folder, const char* name) {
  const struct timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                                    {.tv_sec = 0, .tv_nsec = UTIME_NOW}};
  return ::utimensat(folder, name, times, AT_SYMLINK_NOFOLLOW);
}

int FileCalls::lock(int file, int operation) {
  return ::flock(file, operation);
}

int64_t FileCalls::free_bytes(int folder) {
  struct statvfs status = {};
  if (::fstatvfs(folder, &status) != 0) return -1;
  return int64_t(status.f_bavail) * int64_t(status.f_frsize);
}

int64_t FileCalls::disk_bytes(int folder) {
  struct statvfs status = {};
  if (::fstatvfs(folder, &status) != 0) return -1;
  return int64_t(status.f_blocks) * int64_t(status.f_frsize);
}

int FileCalls::list(int folder, std::vector<std::string>& names) {
  const int again = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (again < 0) return -1;
  DIR* const opened = ::fdopendir(again);
  if (opened == nullptr) {
    ::close(again);
    return -1;
  }
  errno = 0;
  while (const struct dirent* entry = ::readdir(opened)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  ::closedir(opened);
  errno = error;
  return error == 0 ? 0 : -1;
}

}  // namespace cairn::store
