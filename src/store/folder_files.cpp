// Files of a store: written aside and renamed, opened with suspicion, listed, put away.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/threads/blocked_signals.h"
#include "store/folder.h"

namespace cairn::store {
namespace {

constexpr int kReadFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
constexpr int kPartFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr size_t kGatherBytes = size_t(256) << 10;
constexpr size_t kQuarantinedMax = 64;
constexpr int kAsideTries =
    100;  // Names in tmp/ that another store of this process may have taken.
constexpr uint64_t kQuarantinedBytesMax = uint64_t(256) << 20;
// A store of thousands of records has all 256 folders; one of a few is read by the caller alone.
constexpr size_t kFoldersPerThread = 64;
constexpr size_t kThreadsMax = 4;

Error io_error(const std::string& what) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  const ErrorCode code = errno == ENOENT ? ErrorCode::not_found
                         : is_full       ? ErrorCode::no_room
                                         : ErrorCode::io;
  return fail(code, "{}: {}", what, std::strerror(errno));
}

std::string folder_name(const Sha256Digest& name) {
  return hex_of(name).substr(0, 2);
}

int64_t changed_ns(const struct stat& status) {
  return int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + int64_t(status.st_mtim.tv_nsec);
}

// Whether the next change will have another time than the last one. Clocks of file systems tick
// each hundredth of a second, or, where times are whole seconds, every two seconds at least.
bool is_settled(int64_t changed_ns, int64_t now_ns) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const bool is_coarse = changed_ns % kSecondNs == 0;
  return now_ns - changed_ns > (is_coarse ? 3 * kSecondNs : kSecondNs / 10);
}

void note_time(FolderTimes& times, std::string folder, int64_t changed_ns,
               std::optional<int64_t> now_ns) {
  times.erase(folder);
  if (now_ns && is_settled(changed_ns, *now_ns)) times.emplace(std::move(folder), changed_ns);
}

// Small parts are gathered, so that each call writes much.
class PartWriter {
 public:
  PartWriter(FileCalls* calls, int file) : calls_(calls), file_(file) {}

  bool add(std::span<const std::byte> part) {
    if (part.size() >= kGatherBytes) return flush() && write(part);
    if (gathered_.size() + part.size() > kGatherBytes && !flush()) return false;
    gathered_.insert(gathered_.end(), part.begin(), part.end());
    return true;
  }
  bool flush() {
    const bool is_written = write(gathered_);
    gathered_.clear();
    return is_written;
  }

 private:
  bool write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = calls_->write_at(file_, bytes.data(), bytes.size(), offset_);
      if (count < 0 && errno == EINTR) continue;
      if (count == 0) errno = EIO;
      if (count <= 0) return false;
      bytes = bytes.subspan(size_t(count));
      offset_ += count;
    }
    return true;
  }

  FileCalls* calls_;
  int file_;
  off_t offset_ = 0;
  std::vector<std::byte> gathered_;
};

// Calls `work` with each number below `count`, from several threads where there are many: a disk
// answers several questions at once, and its answers are computed with meanwhile. What the system
// gives no thread for, the others do.
void share_out(size_t count, FunctionRef<void(size_t)> work) {
  std::atomic<size_t> next{0};
  const auto take_some = [&] {
    for (size_t index = next++; index < count; index = next++) work(index);
  };
  const BlockedSignals blocked;
  std::vector<std::thread> helpers;
  try {
    while (helpers.size() + 1 < std::min(kThreadsMax, count / kFoldersPerThread)) {
      helpers.emplace_back(take_some);
    }
  } catch (const std::system_error&) {
  }
  take_some();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace

Status RecordFile::read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        calls_->read_at(file_.number(), bytes.data(), bytes.size(), off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::io, "record: cannot read: {}", std::strerror(errno));
    if (count == 0) return fail(ErrorCode::invalid_data, "record: it ends at {}", offset);
    bytes = bytes.subspan(size_t(count));
    offset += uint64_t(count);
  }
  return Ok{};
}

Status RecordFile::sync() const {
  if (calls_->sync(file_.number()) == 0) return Ok{};
  return fail(ErrorCode::io, "record: cannot sync: {}", std::strerror(errno));
}

// The name in tmp/. What fails is closed and removed, and a failed sync is never tried again on the
// same file: the system may have forgotten what it could not write.
Result<std::string> Folder::write_aside(std::span<const std::span<const std::byte>> parts,
                                        Durability durability) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  std::string name;
  int number = -1;
  // Another store of this process may write to the same folder, with the same names.
  for (int tries = 0; number < 0 && tries < kAsideTries; ++tries) {
    name = fmt::format("{}.{}", ::getpid(), ++aside_count_);
    number = calls_->open_at(aside_.number(), name.c_str(), flags, 0600);
    if (number < 0 && errno != EEXIST) break;
  }
  const Descriptor file(number);
  if (!file) return io_error(path_ + ": cannot write");
  uint64_t total = 0;
  for (const std::span<const std::byte>& part : parts) total += part.size();
  PartWriter writer(calls_, file.number());
  const auto write_all = [&] {
    return std::ranges::all_of(parts, [&](const auto& part) { return writer.add(part); }) &&
           writer.flush();
  };
  const bool is_written = calls_->allocate(file.number(), off_t(total)) == 0 && write_all() &&
                          calls_->set_mode(file.number(), 0400) == 0 &&
                          (durability == Durability::cache || calls_->sync(file.number()) == 0);
  if (is_written) return name;
  Error error = io_error(path_ + ": cannot write");
  (void)calls_->remove_at(aside_.number(), name.c_str());
  return error;
}

Result<Descriptor> Folder::folder_of(Place place, const Sha256Digest& name, bool makes) {
  const std::string two = folder_name(name);
  if (makes && calls_->make_folder(at(place).number(), two.c_str(), 0700) != 0 && errno != EEXIST) {
    return io_error(path_ + ": cannot make a folder");
  }
  Descriptor folder(calls_->open_at(at(place).number(), two.c_str(), kPartFlags, 0));
  if (!folder) return io_error(path_ + "/" + two);
  return folder;
}

Result<bool> Folder::write(Place place, const Sha256Digest& name,
                           std::span<const std::span<const std::byte>> parts,
                           Durability durability) {
  if (is_read_only_) return fail(ErrorCode::io, "{}: it can only be read", path_);
  CAIRN_TRY(const Descriptor folder, folder_of(place, name, true));
  CAIRN_TRY(const std::string aside, write_aside(parts, durability));
  if (calls_->rename_to_new(aside_.number(), aside.c_str(), folder.number(),
                            hex_of(name).c_str()) == 0) {
    return true;
  }
  const bool is_there = errno == EEXIST;
  Error error = io_error(path_ + ": cannot rename");
  (void)calls_->remove_at(aside_.number(), aside.c_str());
  if (is_there) return false;
  return error;
}

// Once: nothing of it changes later. Who may not read the folder above has found this one there.
bool Folder::sync_root() {
  if (is_root_sure_) return true;
  const Descriptor above(calls_->open_at(root_.number(), "..", kPartFlags, 0));
  if (!above && errno != EACCES && errno != EPERM) return false;
  const bool is_synced =
      calls_->sync(root_.number()) == 0 && (!above || calls_->sync(above.number()) == 0);
  if (is_synced) is_root_sure_ = true;
  return is_synced;
}

Status Folder::sync_names(Place place, const Sha256Digest& name) {
  CAIRN_TRY(const Descriptor folder, folder_of(place, name, false));
  const bool is_synced =
      calls_->sync(folder.number()) == 0 && calls_->sync(at(place).number()) == 0 && sync_root();
  return is_synced ? Status(Ok{}) : Status(io_error(path_ + ": cannot sync"));
}

Result<RecordFile> Folder::open_record(Place place, const Sha256Digest& name) {
  CAIRN_TRY(const Descriptor folder, folder_of(place, name, false));
  return open_in(folder, hex_of(name));
}

Result<RecordFile> Folder::open_in(const Descriptor& folder, const std::string& hex) {
  Descriptor file(calls_->open_at(folder.number(), hex.c_str(), kReadFlags, 0));
  if (!file && errno == ELOOP) return fail(ErrorCode::invalid_data, "record: it is a link");
  if (!file) return io_error("record");
  struct stat status = {};
  if (calls_->status(file.number(), &status) != 0) return io_error("record");
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid()) {
    return fail(ErrorCode::invalid_data, "record: expected a regular file of user {}", ::geteuid());
  }
  return RecordFile(std::move(file), uint64_t(status.st_size), changed_ns(status), calls_);
}

std::optional<uint64_t> Folder::size_of(Place place, const Sha256Digest& name) {
  struct stat status = {};
  const std::string path = folder_name(name) + "/" + hex_of(name);
  if (calls_->status_at(at(place).number(), path.c_str(), &status) != 0) return std::nullopt;
  return uint64_t(status.st_size);
}

void Folder::mark_used(Place place, const Sha256Digest& name) {
  const std::string path = folder_name(name) + "/" + hex_of(name);
  if (!is_read_only_) (void)calls_->mark_used(at(place).number(), path.c_str());
}

bool Folder::remove(Place place, const Sha256Digest& name) {
  if (is_read_only_) return false;
  const std::string path = folder_name(name) + "/" + hex_of(name);
  return calls_->remove_at(at(place).number(), path.c_str()) == 0 || errno == ENOENT;
}

void Folder::quarantine(Place place, const Sha256Digest& name, const std::string& reason) {
  if (is_read_only_) return;
  const std::string hex = hex_of(name);
  const std::string path = folder_name(name) + "/" + hex;
  if (calls_->rename_over(at(place).number(), path.c_str(), quarantine_.number(), hex.c_str()) !=
      0) {
    (void)calls_->remove_at(at(place).number(), path.c_str());
    return;
  }
  const std::string why = hex + ".txt";
  const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const Descriptor file(calls_->open_at(quarantine_.number(), why.c_str(), flags, 0600));
  const std::string line = reason + "\n";
  if (file) (void)calls_->write_at(file.number(), line.data(), line.size(), 0);
  trim_quarantine();
}

// The newest stay, as far as there is room for them. Each has a second file that says why.
void Folder::trim_quarantine() {
  std::vector<std::string> names;
  if (calls_->list(quarantine_.number(), names) != 0) return;
  std::vector<std::pair<ListedRecord, std::string>> files;
  for (std::string& name : names) {
    struct stat status = {};
    if (calls_->status_at(quarantine_.number(), name.c_str(), &status) != 0) continue;
    files.push_back({{.bytes = uint64_t(status.st_size), .used_ns = changed_ns(status)}, name});
  }
  std::ranges::sort(files, std::greater{}, [](const auto& file) { return file.first.used_ns; });
  uint64_t bytes = 0;
  for (size_t index = 0; index < files.size(); ++index) {
    bytes += files[index].first.bytes;
    if (index < 2 * kQuarantinedMax && bytes <= kQuarantinedBytesMax) continue;
    (void)calls_->remove_at(quarantine_.number(), files[index].second.c_str());
  }
}

Status Folder::each_name(
    Place place,
    FunctionRef<void(const Descriptor&, const std::string& hex, const Sha256Digest&)> take) {
  std::vector<std::string> folders;
  if (calls_->list(at(place).number(), folders) != 0) return io_error(path_ + ": cannot list");
  share_out(folders.size(), [&](size_t index) {
    const std::string& two = folders[index];
    const Descriptor folder(calls_->open_at(at(place).number(), two.c_str(), kPartFlags, 0));
    std::vector<std::string> names;
    if (!folder || calls_->list(folder.number(), names) != 0) return;
    for (const std::string& hex : names) {
      const std::optional<Sha256Digest> name = digest_of_hex(hex);
      if (name && two == hex.substr(0, 2)) take(folder, hex, *name);
    }
  });
  return Ok{};
}

Result<std::vector<ListedRecord>> Folder::list(Place place) {
  std::mutex mutex;
  std::vector<ListedRecord> records;
  const auto add = [&](const Descriptor& folder, const std::string& hex, const Sha256Digest& name) {
    struct stat status = {};
    const bool is_record =
        calls_->status_at(folder.number(), hex.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    if (!is_record) return;
    const std::lock_guard lock(mutex);
    records.push_back(
        {.name = name, .bytes = uint64_t(status.st_size), .used_ns = changed_ns(status)});
  };
  CAIRN_TRY(each_name(place, add));
  return records;
}

// Of whatever keeps the files, which may be another machine: it dates the lock.
std::optional<int64_t> Folder::clock_ns() {
  constexpr const char* kLock = "gc.lock";
  struct stat status = {};
  const bool is_known = calls_->mark_used(root_.number(), kLock) == 0 &&
                        calls_->status_at(root_.number(), kLock, &status) == 0;
  return is_known ? std::optional(changed_ns(status)) : std::nullopt;
}

Result<std::vector<Sha256Digest>> Folder::list_changed(Place place, FolderTimes& times) {
  const std::optional<int64_t> now_ns = clock_ns();
  const int whole = at(place).number();
  std::vector<std::string> folders;
  if (calls_->list(whole, folders) != 0) return io_error(path_ + ": cannot list");
  std::vector<std::pair<std::string, int64_t>> changed;
  for (std::string& two : folders) {
    struct stat status = {};
    if (calls_->status_at(whole, two.c_str(), &status) != 0) return io_error(path_ + "/" + two);
    const int64_t time = changed_ns(status);
    const auto known = times.find(two);
    const bool is_same = known != times.end() && known->second == time;
    if (S_ISDIR(status.st_mode) && !is_same) changed.emplace_back(std::move(two), time);
  }
  std::mutex mutex;
  std::vector<Sha256Digest> names;
  std::optional<Error> failure;
  share_out(changed.size(), [&](size_t index) {
    Result<std::vector<Sha256Digest>> listed = list_part(place, changed[index].first);
    const std::lock_guard lock(mutex);
    if (!listed) {
      failure = std::move(listed).error();
    } else {
      names.insert(names.end(), listed->begin(), listed->end());
    }
  });
  if (failure) return *failure;
  for (auto& [two, time] : changed) note_time(times, std::move(two), time, now_ns);
  return names;
}

// Of a folder of two digits.
Result<std::vector<Sha256Digest>> Folder::list_part(Place place, const std::string& two) {
  const Descriptor folder(calls_->open_at(at(place).number(), two.c_str(), kPartFlags, 0));
  std::vector<std::string> files;
  if (!folder || calls_->list(folder.number(), files) != 0) return io_error(path_ + "/" + two);
  std::vector<Sha256Digest> names;
  for (const std::string& hex : files) {
    const std::optional<Sha256Digest> name = digest_of_hex(hex);
    if (name && two == hex.substr(0, 2)) names.push_back(*name);
  }
  return names;
}

bool Folder::have_saved_changed(FolderTimes& times) {
  constexpr const char* kSaved = "saved";
  const std::optional<int64_t> now_ns = clock_ns();
  struct stat status = {};
  if (calls_->status(saved_.number(), &status) != 0) {
    times.erase(kSaved);
    return true;
  }
  const auto known = times.find(kSaved);
  if (known != times.end() && known->second == changed_ns(status)) return false;
  note_time(times, kSaved, changed_ns(status), now_ns);
  return true;
}

Status Folder::open_each(Place place,
                         FunctionRef<void(const Sha256Digest&, const RecordFile&)> take) {
  return each_name(place,
                   [&](const Descriptor& folder, const std::string& hex, const Sha256Digest& name) {
                     Result<RecordFile> file = open_in(folder, hex);
                     if (file) take(name, *file);
                   });
}

Status Folder::save_name(const std::string& session, const Sha256Digest& manifest,
                         std::string_view note) {
  if (is_read_only_) return fail(ErrorCode::io, "{}: it can only be read", path_);
  if (!is_session_name(session)) {
    return fail(ErrorCode::invalid_argument,
                "session: expected a name of letters, digits, '-', '_' and '.', found \"{}\"",
                session);
  }
  if (note.size() > kNoteBytesMax) {
    return fail(ErrorCode::invalid_argument,
                "session {}: expected a note of at most {} bytes, "
                "found {}",
                session, kNoteBytesMax, note.size());
  }
  const std::string text = hex_of(manifest) + "\n" + std::string(note);
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  CAIRN_TRY(const std::string aside, write_aside({&part, 1}, Durability::saved));
  if (calls_->rename_over(aside_.number(), aside.c_str(), saved_.number(), session.c_str()) != 0) {
    Error error = io_error(path_ + ": cannot save " + session);
    (void)calls_->remove_at(aside_.number(), aside.c_str());
    return error;
  }
  if (calls_->sync(saved_.number()) != 0) return io_error(path_ + ": cannot sync " + session);
  return Ok{};
}

// A line with the name, then the note.
Result<Sha256Digest> Folder::saved(const std::string& session, std::string* note) {
  constexpr size_t kLineBytes = 65;
  if (!is_session_name(session)) {
    return fail(ErrorCode::not_found, "session \"{}\": no such name", session);
  }
  Descriptor file(calls_->open_at(saved_.number(), session.c_str(), kReadFlags, 0));
  struct stat status = {};
  if (!file || calls_->status(file.number(), &status) != 0) return io_error("session " + session);
  const auto damaged = [&] {
    return fail(ErrorCode::invalid_data, "session {}: it is damaged", session);
  };
  const uint64_t size = uint64_t(status.st_size);
  const bool is_possible =
      S_ISREG(status.st_mode) && size >= kLineBytes && size <= kLineBytes + kNoteBytesMax;
  if (!is_possible) return damaged();
  const RecordFile whole(std::move(file), size, changed_ns(status), calls_);
  std::string text(note == nullptr ? kLineBytes : size_t(size), '\0');
  CAIRN_TRY(whole.read(0, std::as_writable_bytes(std::span(text))));
  const auto digest = digest_of_hex(text.substr(0, kLineBytes - 1));
  if (!digest || text[kLineBytes - 1] != '\n') return damaged();
  if (note != nullptr) *note = text.substr(kLineBytes);
  return *digest;
}

Result<std::vector<std::string>> Folder::list_saved() {
  std::vector<std::string> names;
  if (calls_->list(saved_.number(), names) != 0) return io_error(path_ + ": cannot list");
  std::erase_if(names, [](const std::string& name) { return !is_session_name(name); });
  std::ranges::sort(names);
  return names;
}

Status Folder::remove_saved(const std::string& session) {
  if (!is_session_name(session) || calls_->remove_at(saved_.number(), session.c_str()) != 0) {
    return io_error("session " + session);
  }
  return Ok{};
}

}  // namespace cairn::store
