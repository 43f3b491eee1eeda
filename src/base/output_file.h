// What a program writes, by one rule. Where a path leads to a regular file or to nothing,
// everything goes to NAME.partial.XXXXXXXX beside it, which takes that name when all of it is on
// the disk: no reader sees half a file. A FIFO or a device is written through as bytes come, and so
// is "-", which is standard output. Refused before any work: a folder, a path without its folder, a
// terminal, a file that the same program reads. What was not committed is removed, also when a
// signal ends the program (install_output_guard). Thread rule: an OutputFile belongs to one thread;
// two writers of one name: the last commit wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace cairn {

// A file, whatever its names.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  bool operator==(const FileIdentity&) const = default;
};

// Of what the path leads to; nothing where it leads nowhere.
std::optional<FileIdentity> identity_of(const std::string& path);

struct OutputOptions {
  std::span<const FileIdentity> inputs;  // What is read, and so must not be written.
  bool is_private = false;               // For its owner alone, whatever stood there before.
  bool follows_links = true;             // Else a symbolic link is refused.
};

// What opening the output would refuse, without making anything. Errors: as OutputFile::open().
Status check_output(const std::string& path, const OutputOptions& options = {});

class OutputFile {
 public:
  // A file that is replaced leaves its permissions; a new one has those of shared_file_mask().
  // Errors: not_found (no folder), invalid_argument (what is refused), io.
  static Result<OutputFile> open(const std::string& path, const OutputOptions& options = {});

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();  // Removes what was not committed.

  Status append(std::span<const std::byte> bytes);
  uint64_t appended() const { return appended_; }  // Bytes so far.

  // On the disk, under its name, directory entry included. REQUIRES: not committed before.
  Status commit();

 private:
  OutputFile(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  static Result<OutputFile> open_standard_output(const OutputOptions& options);
  static Result<OutputFile> open_through(const std::string& path, const OutputOptions& options);
  static Result<OutputFile> open_aside(const std::string& path, std::string target, uint32_t mode);
  void abandon();

  std::string name_;     // For errors.
  std::string target_;   // Behind all links.
  std::string aside_;    // Empty where bytes are written through.
  int descriptor_ = -1;  // -1 once committed or moved from.
  int guard_slot_ = -1;  // The row of the table of unfinished files.
  uint64_t appended_ = 0;
};

// A file that is only needed while the program runs: it goes with this object, or when a signal
// ends the program. What is written under its path meanwhile may replace it.
class TemporaryFile {
 public:
  // An empty new file for its owner alone, FOLDER/NAME-XXXXXXXXENDING. Errors: not_found (no
  // folder), no_room (too many unfinished files), io.
  static Result<TemporaryFile> create(const std::string& folder, const std::string& name,
                                      std::string_view ending);

  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  const std::string& path() const { return path_; }

 private:
  TemporaryFile(std::string path, int guard_slot)
      : path_(std::move(path)), guard_slot_(guard_slot) {}

  std::string path_;  // Empty where it was moved from.
  int guard_slot_;
};

// A file of these bytes. Errors: those of OutputFile; the old file is then untouched.
Status write_file(const std::string& path, std::span<const std::byte> bytes,
                  const OutputOptions& options = {});

// From now on a signal that ends the program (Ctrl-C, TERM, HUP and the like) removes unfinished
// files first. Signals that are ignored stay so. Calling it again changes nothing.
void install_output_guard();

// For handlers of other modules that end the program: async-signal-safe.
void remove_unfinished_outputs();

}  // namespace cairn
