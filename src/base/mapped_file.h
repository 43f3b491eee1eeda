// A whole file, mapped read-only: opened once, its size taken once. Knows nothing of what is in it.
// A mapped file that shrinks while it is read faults (SIGBUS); install_mapping_guard() turns that
// fault into a message with the file's name.
// Thread rule: a MappedFile may be read by any number of threads; moving and destroying it may not
// overlap with a use.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace cairn {

class MappedFile {
 public:
  // Regular files only, not empty. Errors: not_found, invalid_argument (a directory, a device, an
  // empty file), io.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Gives the whole pages inside the range back: out of this process and out of the page cache.
  // They stay readable; reading them again reads the disk again. REQUIRES: the range is inside.
  void drop(size_t offset, size_t bytes) const;

  // Asks the kernel to start reading the whole file now.
  void will_need() const;

 private:
  MappedFile(std::string path, int descriptor, const std::byte* data, size_t size);
  void close();

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int guard_slot_ = -1;  // The row of the table of live mappings, or -1 when the table was full.
};

// From now on a SIGBUS inside a live MappedFile prints the file's name and ends the process with
// exit code 3; any other SIGBUS does what it would have done. Calling it again changes nothing.
void install_mapping_guard();

}  // namespace cairn
