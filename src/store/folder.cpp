// Opening a store's folder: whose it is, its version, its parts and its lock.
#include "store/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

namespace cairn::store {
namespace {

constexpr std::string_view kVersionText = "cairn-store 1\n";
constexpr mode_t kFolderMode = 0700;
// Who waits for another program's lock asks so often.
constexpr std::chrono::milliseconds kTryAgain(5);
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// "sessions" is a server's, which may make it first.
constexpr std::array kKnownNames = {"VERSION", "lock",       "gc.lock", "objects", "manifests",
                                    "saved",   "quarantine", "tmp",     "sessions"};

bool is_refusal(int error) {
  return error == EROFS || error == EACCES || error == EPERM;
}

}  // namespace

bool is_session_name(const std::string& name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' &&
         std::ranges::all_of(name, is_allowed);
}

std::optional<Sha256Digest> digest_of_hex(std::string_view text) {
  Sha256Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
    const int value = is_digit ? c - '0' : c - 'a' + 10;
    digest[i / 2] = uint8_t(digest[i / 2] << 4 | value);
  }
  return digest;
}

Result<std::unique_ptr<Folder>> Folder::open(const std::string& path, FileCalls& calls) {
  std::unique_ptr<Folder> folder(new Folder(path, calls));
  CAIRN_TRY(folder->open_root());
  CAIRN_TRY(const bool has_version, folder->has_version());
  CAIRN_TRY(folder->open_folders());
  CAIRN_TRY(folder->lock());
  if (!has_version) CAIRN_TRY(folder->write_version());
  return folder;
}

Status Folder::open_root() {
  int number = calls_->open_at(AT_FDCWD, path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (number < 0 && errno == ENOENT) {
    if (calls_->make_folder(AT_FDCWD, path_.c_str(), kFolderMode) != 0 && errno != EEXIST) {
      const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
      return fail(code, "{}: cannot make the folder: {}", path_, std::strerror(errno));
    }
    number = calls_->open_at(AT_FDCWD, path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  }
  if (number < 0) {
    const bool is_file = errno == ENOTDIR;
    return fail(is_file ? ErrorCode::invalid_argument : ErrorCode::io,
                "{}: cannot open the folder: {}", path_, std::strerror(errno));
  }
  root_ = Descriptor(number);
  struct stat status = {};
  if (calls_->status(number, &status) != 0) {
    return fail(ErrorCode::io, "{}: {}", path_, std::strerror(errno));
  }
  if (status.st_uid != ::geteuid()) {
    return fail(ErrorCode::invalid_argument, "{}: expected a folder of user {}, found one of {}",
                path_, ::geteuid(), status.st_uid);
  }
  if ((status.st_mode & 022) == 0) return Ok{};
  return fail(ErrorCode::invalid_argument,
              "{}: expected a folder that only its owner may write to, found mode {:o}", path_,
              status.st_mode & 0777);
}

// A folder without a version is new, or was about to become a store when the program ended.
Result<bool> Folder::has_version() {
  const int number =
      calls_->open_at(root_.number(), "VERSION", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
  if (number < 0 && errno == ENOENT) {
    std::vector<std::string> names;
    if (calls_->list(root_.number(), names) != 0) {
      return fail(ErrorCode::io, "{}: cannot list: {}", path_, std::strerror(errno));
    }
    for (const std::string& name : names) {
      if (std::ranges::find(kKnownNames, name) != kKnownNames.end()) continue;
      return fail(ErrorCode::invalid_argument,
                  "{}: expected an empty folder or a store, found one with {}", path_, name);
    }
    return false;
  }
  if (number < 0) return fail(ErrorCode::io, "{}/VERSION: {}", path_, std::strerror(errno));
  const Descriptor file(number);
  std::array<char, 64> text{};
  const ssize_t length = calls_->read_at(number, text.data(), text.size(), 0);
  if (length < 0) return fail(ErrorCode::io, "{}/VERSION: {}", path_, std::strerror(errno));
  const std::string_view found(text.data(), size_t(length));
  if (found == kVersionText) return true;
  if (found.size() < kVersionText.size() && kVersionText.starts_with(found)) return false;
  return fail(ErrorCode::unsupported, "{}: expected version \"cairn-store 1\", found another one",
              path_);
}

// Whole or not there, also when power is lost: what has another version is never touched again.
Status Folder::write_version() {
  const std::span<const std::byte> part = std::as_bytes(std::span(kVersionText));
  CAIRN_TRY(const std::string aside, write_aside({&part, 1}, Durability::saved));
  if (calls_->rename_over(aside_.number(), aside.c_str(), root_.number(), "VERSION") == 0) {
    return Ok{};
  }
  Error error = fail(ErrorCode::io, "{}/VERSION: cannot write: {}", path_, std::strerror(errno));
  (void)calls_->remove_at(aside_.number(), aside.c_str());
  return error;
}

Result<Descriptor> Folder::open_folder(const char* name) {
  if (calls_->make_folder(root_.number(), name, kFolderMode) != 0 && errno != EEXIST) {
    if (!is_refusal(errno)) {
      return fail(ErrorCode::io, "{}/{}: cannot make it: {}", path_, name, std::strerror(errno));
    }
    is_read_only_ = true;
  }
  const int number = calls_->open_at(root_.number(), name, kFolderFlags, 0);
  if (number >= 0) return Descriptor(number);
  return fail(ErrorCode::io, "{}/{}: expected a folder: {}", path_, name, std::strerror(errno));
}

Status Folder::open_folders() {
  CAIRN_TRY(objects_, open_folder("objects"));
  CAIRN_TRY(manifests_, open_folder("manifests"));
  CAIRN_TRY(saved_, open_folder("saved"));
  CAIRN_TRY(aside_, open_folder("tmp"));
  CAIRN_TRY(quarantine_, open_folder("quarantine"));
  return Ok{};
}

// Whoever is alone sweeps what killed writers have left. Another program that does, at its start,
// is waited for.
Status Folder::lock() {
  constexpr std::chrono::seconds kSweepPatience(2);
  const int flags = O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  int number = calls_->open_at(root_.number(), "lock", O_RDWR | flags, 0600);
  if (number < 0 && is_refusal(errno)) {
    is_read_only_ = true;
    return Ok{};
  }
  if (number < 0) return fail(ErrorCode::io, "{}/lock: {}", path_, std::strerror(errno));
  lock_ = Descriptor(number);
  if (calls_->lock(number, LOCK_EX | LOCK_NB) == 0) sweep_unfinished();
  const auto end = std::chrono::steady_clock::now() + kSweepPatience;
  while (calls_->lock(number, LOCK_SH | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kTryAgain);
      continue;
    }
    return fail(ErrorCode::unsupported, "{}: another program is changing the store: {}", path_,
                std::strerror(errno));
  }
  return Ok{};
}

void Folder::sweep_unfinished() {
  std::vector<std::string> names;
  if (calls_->list(aside_.number(), names) != 0) return;
  for (const std::string& name : names) (void)calls_->remove_at(aside_.number(), name.c_str());
}

Descriptor Folder::lock_collection(std::chrono::milliseconds patience) {
  if (is_read_only_) return {};
  const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor file(calls_->open_at(root_.number(), "gc.lock", flags, 0600));
  if (!file) return {};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (calls_->lock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= end) return {};
    std::this_thread::sleep_for(kTryAgain);
  }
  return file;
}

}  // namespace cairn::store
