// Reading a small file whole, and writing a file so that a reader never sees half of it: everything
// goes to NAME.partial.<process>.<thread> beside it, which takes the name only when all of it is on
// the disk.
// Thread rule: a FileWriter belongs to one thread; two writers of one name: the last commit wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace cairn {

// The whole file. Errors: not_found, invalid_argument (not a regular file), no_room (more than
// bytes_max bytes), io.
Result<std::string> read_file(const std::string& path, size_t bytes_max);

// Replaces the file by `bytes`. Errors: io; the old file is then untouched.
Status write_file_aside(const std::string& path, std::span<const std::byte> bytes);

class FileWriter {
 public:
  // Creates the temporary file, with permissions as the umask allows.
  static Result<FileWriter> open(const std::string& path);

  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();  // Removes what was not committed.

  Status append(std::span<const std::byte> bytes);
  // Overwrites or extends at an offset; append() goes on where it was.
  Status pwrite(uint64_t offset, std::span<const std::byte> bytes);
  // Bytes appended so far: the offset of the next append().
  uint64_t appended() const { return appended_; }

  // On the disk, under its name, directory entry included. REQUIRES: not committed before.
  Status commit();

 private:
  FileWriter(std::string path, std::string aside, int descriptor);
  void abandon();

  std::string path_;
  std::string aside_;
  int descriptor_ = -1;  // -1 once committed or moved from.
  uint64_t appended_ = 0;
};

}  // namespace cairn
