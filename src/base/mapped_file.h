// A whole file, mapped read-only: opened once, its size taken once. Knows nothing of what is in it.
// A mapped file that shrinks while it is read faults (SIGBUS); install_mapping_guard() turns that
// fault into a message with the file's name.
// Thread rule: a MappedFile may be read by any number of threads; moving and destroying it may not
// overlap with a use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/output_file.h"
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

  // When its content was last changed, in nanoseconds since 1970, as it was opened.
  int64_t modified_ns() const { return modified_ns_; }
  // For outputs, which must not be written over it.
  const FileIdentity& identity() const { return identity_; }

  // Takes the whole pages inside the range out of this process; they stay readable, and cheap to
  // read again as long as the page cache has them. REQUIRES: the range is inside.
  void forget(size_t offset, size_t bytes) const;
  // The same, and out of the page cache too: reading them again reads the disk again.
  void drop(size_t offset, size_t bytes) const;

  // Asks the kernel to start reading the range, or the whole file, now.
  void will_need(size_t offset, size_t bytes) const;
  void will_need() const { will_need(0, size_); }
  // Asks for huge pages where the file system has them: for files that are read whole.
  void prefer_huge_pages() const;

 private:
  struct PageRange {
    std::byte* data;
    size_t offset, bytes;  // No bytes: no whole page.
  };

  MappedFile(std::string path, int descriptor, const std::byte* data, size_t size);
  void close();
  PageRange whole_pages(size_t offset, size_t bytes) const;

  std::string path_;
  int descriptor_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  int64_t modified_ns_ = 0;
  FileIdentity identity_;
  int guard_slot_ = -1;  // The row of the table of live mappings.
};

// From now on a SIGBUS inside a live MappedFile prints the file's name, removes unfinished outputs
// and ends the process with exit code 3; any other SIGBUS does what it would have done. Calling it
// again changes nothing.
void install_mapping_guard();

}  // namespace cairn
