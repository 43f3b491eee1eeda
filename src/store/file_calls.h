// The system calls by which a store touches files, so that tests can let each of them fail. Each
// does what its name says and returns what the call returns: -1 with errno where it failed.
// Thread-safe: the calls are.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cairn::store {

class FileCalls {
 public:
  virtual ~FileCalls() = default;

  virtual int open_at(int folder, const char* name, int flags, mode_t mode);
  virtual int make_folder(int folder, const char* name, mode_t mode);
  virtual int status(int file, struct stat* status);
  virtual int status_at(int folder, const char* name, struct stat* status);  // Of a link itself.
  virtual ssize_t read_at(int file, void* bytes, size_t count, off_t offset);
  virtual ssize_t write_at(int file, const void* bytes, size_t count, off_t offset);
  virtual int allocate(int file, off_t bytes);
  virtual int will_read(int file);  // Advice: all of it is read soon.
  virtual int sync(int file);
  virtual int set_mode(int file, mode_t mode);
  // EEXIST where `to` exists.
  virtual int rename_to_new(int from_folder, const char* from, int to_folder, const char* to);
  virtual int rename_over(int from_folder, const char* from, int to_folder, const char* to);
  virtual int remove_at(int folder, const char* name);
  virtual int mark_used(int folder, const char* name);  // Its time of change is now.
  virtual int lock(int file, int operation);
  virtual int64_t free_bytes(int folder);
  virtual int64_t disk_bytes(int folder);
  // The names in a folder, without "." and "..".
  virtual int list(int folder, std::vector<std::string>& names);
};

}  // namespace cairn::store
