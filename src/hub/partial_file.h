// A file that is not whole yet: NAME.partial has the bytes, at their places, and
// NAME.partial.chunks tells which chunks are on the disk, so that another run goes on where this
// one was killed. It takes its name when all of it is there. One process at a time has it (a lock
// on the second file). Knows no network. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/machine/descriptor.h"
#include "base/result.h"

namespace cairn::hub {

class PartialFile {
 public:
  struct Terms {
    uint64_t bytes = 0;        // Of the whole; 0: not known, and nothing can be resumed.
    uint64_t chunk_bytes = 0;  // But for the last one; 0: there are none, nor what to resume.
    std::string identity;      // What the bytes are of: a digest, an ETag. Empty: not known.
  };

  // Goes on where `path` was left, if that was for the same bytes, in chunks as large as they were
  // then; else begins anew. Makes folders.
  // Errors: io; cancelled: another process has it; no_room: less on the disk than is missing.
  static Result<PartialFile> open(const std::string& path, const Terms& terms);

  size_t chunk_count() const { return is_done_.size(); }
  bool is_done(size_t chunk) const { return is_done_[chunk]; }
  uint64_t chunk_begin(size_t chunk) const { return chunk * terms_.chunk_bytes; }
  uint64_t chunk_end(size_t chunk) const;
  uint64_t done_bytes() const;

  Status write(uint64_t offset, std::span<const std::byte> bytes);
  // On the disk, all of it, before it is told so.
  Status finish_chunk(size_t chunk);
  // SHA-256 of what is there, in hex. `on_progress` may be empty.
  Result<std::string> sha256(uint64_t bytes,
                             const std::function<void(uint64_t, uint64_t)>& on_progress) const;
  // Of the first bytes; fewer where there are fewer.
  Result<std::string> beginning(size_t count) const;
  // Of this length, on the disk and under its name, in place of what had it; the rest goes.
  Status commit(uint64_t bytes);
  // Nothing of it is kept.
  Status discard();

 private:
  PartialFile(std::string path, Terms terms) : path_(std::move(path)), terms_(std::move(terms)) {}
  std::string partial_path() const { return path_ + ".partial"; }
  std::string chunks_path() const { return path_ + ".partial.chunks"; }
  Status open_files();
  void set_chunks(uint64_t chunk_bytes);
  Status take_up();
  Status begin_anew();
  Status check_room() const;

  std::string path_;
  Terms terms_;
  Descriptor data_, chunks_;
  std::vector<bool> is_done_;
};

// Holds what is there of an unfinished file, so that nobody goes on with it meanwhile; none where
// nothing is there. Errors: cancelled: another process is fetching it.
Result<Descriptor> hold_partial(const std::string& path);

// SHA-256 of a file, in hex.
Result<std::string> sha256_of_file(const std::string& path,
                                   const std::function<void(uint64_t, uint64_t)>& on_progress);

// Folders above the path that are not there are made, for their owner and those whom umask allows.
Status make_folders_for(const std::string& path);

}  // namespace cairn::hub
