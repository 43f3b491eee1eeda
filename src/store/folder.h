// The files of a store: records under objects/ and manifests/, named sessions under saved/, and the
// rules by which each is written (aside, whole, renamed) and read (a regular file of ours, of the
// exact size, no link followed). Knows nothing of what records mean. docs/store.md draws the
// folder. Thread rule: any number of threads; several processes share a folder, equal names are
// equal bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "base/machine/descriptor.h"
#include "base/result.h"
#include "base/sha256.h"
#include "store/file_calls.h"

namespace cairn::store {

enum class Place : uint8_t { objects, manifests };

enum class Durability : uint8_t {
  cache,  // Survives the process; after a loss of power it may be missing, never wrong.
  saved,  // On the disk before the call returns.
};

class RecordFile {
 public:
  uint64_t size() const { return size_; }
  int64_t used_ns() const { return used_ns_; }  // As ListedRecord says.
  // All of `bytes`, from `offset` on. Errors: io, invalid_data (the file ends before).
  Status read(uint64_t offset, std::span<std::byte> bytes) const;
  // The disk begins to read all of it. Advice: a failure changes nothing.
  void will_read() const { (void)calls_->will_read(file_.number()); }
  Status sync() const;  // To the disk. Errors: io.

 private:
  friend class Folder;
  RecordFile(Descriptor file, uint64_t size, int64_t used_ns, FileCalls* calls)
      : file_(std::move(file)), size_(size), used_ns_(used_ns), calls_(calls) {}

  Descriptor file_;
  uint64_t size_;
  int64_t used_ns_;
  FileCalls* calls_;
};

struct ListedRecord {
  Sha256Digest name{};
  uint64_t bytes = 0;
  int64_t used_ns = 0;  // When it was written or used last; clocks may jump.
};

// When folders were changed last, by their names, as it was before they were listed: those of the
// same time still have the same names. Only of folders that had not been changed for a while, since
// two changes soon after each other may have one time.
using FolderTimes = std::map<std::string, int64_t>;

class Folder {
 public:
  // Makes the folder where it is missing, not those above it. `calls` outlives it.
  // Errors: not_found, invalid_argument (not a folder of ours), unsupported (another version, an
  // upgrade under way), io.
  static Result<std::unique_ptr<Folder>> open(const std::string& path, FileCalls& calls);

  const std::string& path() const { return path_; }
  bool is_read_only() const { return is_read_only_; }
  FileCalls& calls() { return *calls_; }
  int64_t free_bytes() { return calls_->free_bytes(root_.number()); }
  int64_t disk_bytes() { return calls_->disk_bytes(root_.number()); }

  // A file of these parts. False: one of this name was there, and stays. Errors: io, no_room; the
  // name then stands for nothing.
  Result<bool> write(Place place, const Sha256Digest& name,
                     std::span<const std::span<const std::byte>> parts, Durability durability);
  // That names written before survive a loss of power.
  Status sync_names(Place place, const Sha256Digest& name);
  // Errors: not_found, invalid_data (no regular file of ours), io.
  Result<RecordFile> open_record(Place place, const Sha256Digest& name);
  std::optional<uint64_t> size_of(Place place, const Sha256Digest& name);
  void mark_used(Place place, const Sha256Digest& name);
  // Whether nothing of this name is there now.
  bool remove(Place place, const Sha256Digest& name);
  // Puts a damaged file where nobody reads it, with a line that says why.
  void quarantine(Place place, const Sha256Digest& name, const std::string& reason);
  Result<std::vector<ListedRecord>> list(Place place);
  // The names of records, but for those in folders that have these times; notes those of the
  // others. What cannot be listed is an error, wherever it is. REQUIRES: the collection is locked.
  Result<std::vector<Sha256Digest>> list_changed(Place place, FolderTimes& times);
  // Whether names of sessions may be others, or stand for others. REQUIRES: likewise.
  bool have_saved_changed(FolderTimes& times);
  // Hands out the file of each that list() lists, with fewer calls than opening them one by one.
  // Where there are many, `take` is called by several threads at once. Errors: those of list().
  Status open_each(Place place, FunctionRef<void(const Sha256Digest&, const RecordFile&)> take);

  // Names of sessions, the manifest of each, and what whoever saved it wants to be told again.
  static constexpr size_t kNoteBytesMax = size_t(16) << 20;
  Status save_name(const std::string& session, const Sha256Digest& manifest,
                   std::string_view note = {});
  Result<Sha256Digest> saved(const std::string& session, std::string* note = nullptr);
  Result<std::vector<std::string>> list_saved();
  Status remove_saved(const std::string& session);

  // Of all processes, one collects, or saves, at a time. An empty one where another still does
  // after `patience`, or none may.
  Descriptor lock_collection(std::chrono::milliseconds patience = {});

 private:
  Folder(std::string path, FileCalls& calls) : path_(std::move(path)), calls_(&calls) {}
  Status open_root();
  Result<bool> has_version();
  Status write_version();
  Result<Descriptor> open_folder(const char* name);
  Status open_folders();
  Status lock();
  bool sync_root();
  void sweep_unfinished();
  Result<std::string> write_aside(std::span<const std::span<const std::byte>> parts,
                                  Durability durability);
  Result<Descriptor> folder_of(Place place, const Sha256Digest& name, bool makes);
  Result<RecordFile> open_in(const Descriptor& folder, const std::string& hex);
  // In the folders of two digits, by their open descriptors; as open_each().
  Status each_name(
      Place place,
      FunctionRef<void(const Descriptor&, const std::string& hex, const Sha256Digest&)> take);
  const Descriptor& at(Place place) const {
    return place == Place::objects ? objects_ : manifests_;
  }
  void trim_quarantine();
  std::optional<int64_t> clock_ns();
  Result<std::vector<Sha256Digest>> list_part(Place place, const std::string& two);

  std::string path_;
  FileCalls* calls_;
  bool is_read_only_ = false;
  Descriptor root_, objects_, manifests_, saved_, aside_, quarantine_, lock_;
  std::atomic<uint64_t> aside_count_{0};
  std::atomic<bool> is_root_sure_{false};  // What is in the folder itself, and that it is there.
};

// A session's name is 1 to 64 letters, digits, '-', '_' or '.', the first not a '.'.
bool is_session_name(const std::string& name);
// The 64 digits of a name, if they are that.
std::optional<Sha256Digest> digest_of_hex(std::string_view text);

}  // namespace cairn::store
