// The second file: a line with the terms, then a line with the number of each chunk that is whole.
// A number is written after its bytes are on the disk; a line that was cut off is none.
#include "hub/partial_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/process.h"
#include "base/quantities.h"
#include "base/sha256.h"

namespace cairn::hub {

namespace {

constexpr size_t kPieceBytes = size_t(1) << 20;
constexpr size_t kChunksBytesMax = size_t(64) << 20;

Error io_error(const std::string& path, const char* verb) {
  const ErrorCode code = errno == ENOSPC ? ErrorCode::no_room : ErrorCode::io;
  return fail(code, "{}: cannot {}: {}", path, verb, std::strerror(errno));
}

Result<Descriptor> open_file(const std::string& path) {
  constexpr mode_t kMode = 0666;
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file) return io_error(path, "open");
  struct stat status = {};
  if (::fstat(file.number(), &status) != 0) return io_error(path, "look at");
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument, "{}: expected a regular file, found something else",
                path);
  }
  return file;
}

Status write_at(int file, uint64_t offset, std::span<const std::byte> bytes,
                const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(file, bytes.data(), bytes.size(), off_t(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return io_error(path, "write");
    bytes = bytes.subspan(size_t(done));
    offset += uint64_t(done);
  }
  return Ok{};
}

Status sync_folder(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::fsync(opened.number()) != 0) return io_error(folder, "write");
  return Ok{};
}

Result<std::string> sha256_of(int file, uint64_t bytes, const std::string& path,
                              const std::function<void(uint64_t, uint64_t)>& on_progress) {
  Sha256 digest;
  std::vector<std::byte> piece(kPieceBytes);
  for (uint64_t done = 0; done < bytes;) {
    const size_t wanted = size_t(std::min<uint64_t>(piece.size(), bytes - done));
    const ssize_t got = ::pread(file, piece.data(), wanted, off_t(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error(path, "read");
    if (got == 0) {
      return fail(ErrorCode::invalid_data, "{}: expected {} bytes, found {}", path, bytes, done);
    }
    digest.add(std::span(piece).first(size_t(got)));
    done += uint64_t(got);
    if (on_progress) on_progress(done, bytes);
  }
  return hex_of(digest.finish());
}

// The first line. The identity may have any characters, so its digest stands for it.
std::string head_line(const PartialFile::Terms& terms) {
  return fmt::format("cairn-partial-1 {} {} {}\n", terms.bytes, terms.chunk_bytes,
                     hex_of(Sha256().add(terms.identity).finish()));
}

// How large the chunks are of which the lines tell, if they are of what the terms name; else 0.
uint64_t chunk_bytes_in(std::string_view text, PartialFile::Terms terms) {
  size_t begin = text.find(' ');
  if (begin != text.npos) begin = text.find(' ', begin + 1);
  if (begin == text.npos) return 0;
  uint64_t bytes = 0;
  const char* const end = text.data() + text.size();
  (void)std::from_chars(text.data() + begin + 1, end, bytes);
  terms.chunk_bytes = bytes;
  return bytes > 0 && text.starts_with(head_line(terms)) ? bytes : 0;
}

Error is_taken(const std::string& path) {
  return fail(ErrorCode::cancelled, "{}: another process is fetching it", path);
}

}  // namespace

Result<Descriptor> hold_partial(const std::string& path) {
  Descriptor chunks(
      ::open((path + ".partial.chunks").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (chunks && ::flock(chunks.number(), LOCK_EX | LOCK_NB) != 0) return is_taken(path);
  return chunks;
}

Status make_folders_for(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::filesystem::path made;
  for (const std::filesystem::path& part : folder) {
    made /= part;
    struct stat status = {};
    if (::stat(made.c_str(), &status) == 0) continue;
    if (::mkdir(made.c_str(), 0777 & ~shared_file_mask()) != 0 && errno != EEXIST) {
      return io_error(made.string(), "make the folder");
    }
    // The process's own mask is stricter.
    (void)::chmod(made.c_str(), 0777 & ~shared_file_mask());
  }
  return Ok{};
}

Result<PartialFile> PartialFile::open(const std::string& path, const Terms& terms) {
  CAIRN_TRY(make_folders_for(path));
  PartialFile file(path, terms);
  CAIRN_TRY(file.open_files());
  // Before anything is counted: the length is what a stranger says.
  if (Status room = file.check_room(); !room) {
    struct stat status = {};
    const bool is_empty = ::fstat(file.data_.number(), &status) == 0 && status.st_size == 0;
    if (is_empty) CAIRN_TRY(file.discard());  // Nothing was begun.
    return room.error();
  }
  CAIRN_TRY(file.take_up());
  CAIRN_TRY(file.check_room());
  return file;
}

// A name that was removed meanwhile, by whoever had the lock and has ended, is made again.
Status PartialFile::open_files() {
  for (;;) {
    CAIRN_TRY(chunks_, open_file(chunks_path()));
    if (::flock(chunks_.number(), LOCK_EX | LOCK_NB) != 0) return is_taken(path_);
    struct stat named = {}, opened = {};
    const bool is_named = ::stat(chunks_path().c_str(), &named) == 0;
    if (::fstat(chunks_.number(), &opened) != 0) return io_error(chunks_path(), "look at");
    if (is_named && named.st_ino == opened.st_ino) break;
  }
  CAIRN_TRY(data_, open_file(partial_path()));
  return Ok{};
}

void PartialFile::set_chunks(uint64_t chunk_bytes) {
  terms_.chunk_bytes = chunk_bytes;
  const bool has_chunks = terms_.bytes > 0 && chunk_bytes > 0;
  is_done_.assign(has_chunks ? size_t((terms_.bytes - 1) / chunk_bytes + 1) : 0, false);
}

Status PartialFile::take_up() {
  const uint64_t wanted = terms_.chunk_bytes;
  CAIRN_TRY(const std::string text, read_file(chunks_path(), kChunksBytesMax));
  struct stat status = {};
  if (::fstat(data_.number(), &status) != 0) return io_error(partial_path(), "look at");
  const uint64_t before = chunk_bytes_in(text, terms_);
  const bool is_same = before > 0 && wanted > 0 && terms_.bytes > 0 && !terms_.identity.empty() &&
                       uint64_t(status.st_size) == terms_.bytes;
  set_chunks(is_same ? before : wanted);
  if (!is_same) return begin_anew();
  for (size_t begin = text.find('\n') + 1; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == text.npos) break;
    size_t chunk = 0;
    for (const char c : std::string_view(text).substr(begin, end - begin)) {
      if (c < '0' || c > '9' || chunk >= is_done_.size()) return begin_anew();
      chunk = chunk * 10 + size_t(c - '0');
    }
    if (chunk >= is_done_.size()) return begin_anew();
    is_done_[chunk] = true;
    begin = end + 1;
  }
  // What was cut off is not gone on with.
  const size_t whole = text.rfind('\n') + 1;
  if (::ftruncate(chunks_.number(), off_t(whole)) != 0) return io_error(chunks_path(), "write");
  return Ok{};
}

Status PartialFile::begin_anew() {
  std::fill(is_done_.begin(), is_done_.end(), false);
  if (::ftruncate(data_.number(), 0) != 0 || ::ftruncate(chunks_.number(), 0) != 0) {
    return io_error(partial_path(), "write");
  }
  CAIRN_TRY(check_room());
  if (::ftruncate(data_.number(), off_t(terms_.bytes)) != 0) {
    return io_error(partial_path(), "write");
  }
  const std::string head = head_line(terms_);
  return write_at(chunks_.number(), 0, std::as_bytes(std::span(head)), chunks_path());
}

// Blocks that the file has already count as free: they are written over.
Status PartialFile::check_room() const {
  struct statvfs disk = {};
  struct stat status = {};
  if (::fstatvfs(data_.number(), &disk) != 0 || ::fstat(data_.number(), &status) != 0) {
    return io_error(partial_path(), "look at");
  }
  constexpr uint64_t kBlockBytes = 512;  // Of st_blocks, whatever the disk's.
  const uint64_t free_bytes = uint64_t(disk.f_bavail) * disk.f_frsize;
  const uint64_t held = uint64_t(status.st_blocks) * kBlockBytes;
  const uint64_t missing = terms_.bytes - std::min(terms_.bytes, held);
  if (missing <= free_bytes) return Ok{};
  return fail(ErrorCode::no_room, "{}: expected {} free on the disk, found {}", path_,
              show_bytes(missing), show_bytes(free_bytes));
}

uint64_t PartialFile::chunk_end(size_t chunk) const {
  return std::min(terms_.bytes, chunk_begin(chunk) + terms_.chunk_bytes);
}

uint64_t PartialFile::done_bytes() const {
  uint64_t bytes = 0;
  for (size_t chunk = 0; chunk < is_done_.size(); ++chunk) {
    if (is_done_[chunk]) bytes += chunk_end(chunk) - chunk_begin(chunk);
  }
  return bytes;
}

Status PartialFile::write(uint64_t offset, std::span<const std::byte> bytes) {
  return write_at(data_.number(), offset, bytes, partial_path());
}

Status PartialFile::finish_chunk(size_t chunk) {
  if (::fdatasync(data_.number()) != 0) return io_error(partial_path(), "write");
  const off_t end = ::lseek(chunks_.number(), 0, SEEK_END);
  if (end < 0) return io_error(chunks_path(), "write");
  const std::string line = fmt::format("{}\n", chunk);
  CAIRN_TRY(
      write_at(chunks_.number(), uint64_t(end), std::as_bytes(std::span(line)), chunks_path()));
  is_done_[chunk] = true;
  return Ok{};
}

Result<std::string> PartialFile::sha256(
    uint64_t bytes, const std::function<void(uint64_t, uint64_t)>& on_progress) const {
  return sha256_of(data_.number(), bytes, partial_path(), on_progress);
}

Result<std::string> PartialFile::beginning(size_t count) const {
  return read_beginning(partial_path(), count);
}

Status PartialFile::commit(uint64_t bytes) {
  const int data = data_.number();
  if (::ftruncate(data, off_t(bytes)) != 0 || ::fchmod(data, 0666 & ~shared_file_mask()) != 0 ||
      ::fsync(data) != 0 || ::rename(partial_path().c_str(), path_.c_str()) != 0) {
    return io_error(path_, "write");
  }
  (void)::unlink(chunks_path().c_str());
  return sync_folder(path_);
}

Status PartialFile::discard() {
  if (::unlink(partial_path().c_str()) != 0 && errno != ENOENT) {
    return io_error(partial_path(), "remove");
  }
  (void)::unlink(chunks_path().c_str());
  return Ok{};
}

Result<std::string> sha256_of_file(const std::string& path,
                                   const std::function<void(uint64_t, uint64_t)>& on_progress) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (!file || ::fstat(file.number(), &status) != 0) return io_error(path, "read");
  return sha256_of(file.number(), uint64_t(status.st_size), path, on_progress);
}

}  // namespace cairn::hub
