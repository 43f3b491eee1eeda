// Mapping files, and the table of live mappings that the SIGBUS handler reads. That table is the
// one piece of global state here: a signal handler is given nothing but an address, so what it
// needs must lie at a fixed place. It is written with atomics only and never allocates.
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <utility>

namespace cairn {
namespace {

// A model may have 1,000 parts; beside them there are adapters and packed weights.
constexpr int kGuardSlots = 2048;
constexpr size_t kGuardNameBytes = 240;

// A row is taken by `taken`, filled, and shown to the handler by a non-zero `begin`.
struct GuardSlot {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  char name[kGuardNameBytes] = {};
};

GuardSlot* guard_slots() {
  static constinit GuardSlot slots[kGuardSlots];
  return slots;
}

// A row for a mapping, or -1 where all are taken.
int take_slot() {
  for (int slot = 0; slot < kGuardSlots; ++slot) {
    if (!guard_slots()[slot].taken.exchange(true, std::memory_order_acquire)) return slot;
  }
  return -1;
}

void guard(int slot, const std::string& path, const std::byte* data, size_t size) {
  GuardSlot& row = guard_slots()[slot];
  const size_t length = std::min(path.size(), kGuardNameBytes - 1);
  // The name goes to a terminal from the handler, where nothing can be escaped any more.
  for (size_t i = 0; i < length; ++i) {
    row.name[i] = uint8_t(path[i]) < 0x20 || path[i] == 0x7f ? '?' : path[i];
  }
  row.name[length] = 0;
  row.end.store(uintptr_t(data) + size, std::memory_order_relaxed);
  row.begin.store(uintptr_t(data), std::memory_order_release);
}

void unguard(int slot) {
  if (slot < 0) return;
  guard_slots()[slot].begin.store(0, std::memory_order_release);
  guard_slots()[slot].taken.store(false, std::memory_order_release);
}

void print_from_handler(const char* text) {
  const size_t length = std::strlen(text);
  for (size_t done = 0; done < length;) {
    const ssize_t written = ::write(STDERR_FILENO, text + done, length - done);
    if (written <= 0) return;
    done += size_t(written);
  }
}

void on_sigbus(int signal, siginfo_t* info, void* /*context*/) {
  const uintptr_t address = uintptr_t(info->si_addr);
  const bool is_fault = info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR;
  for (int slot = 0; is_fault && slot < kGuardSlots; ++slot) {
    GuardSlot& row = guard_slots()[slot];
    const uintptr_t begin = row.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin) continue;
    if (address >= row.end.load(std::memory_order_relaxed)) continue;
    print_from_handler("cairn: ");
    print_from_handler(row.name);
    print_from_handler(": the file shrank or could not be read while it was in use\n");
    remove_unfinished_outputs();
    ::_exit(3);
  }
  // Not ours: the default action, as if this handler had never been there.
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

size_t page_bytes() {
  return size_t(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void install_mapping_guard() {
  static const bool installed = [] {
    struct sigaction action = {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, nullptr) == 0;
  }();
  CHECK(installed);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const ErrorCode code = errno == ENOENT ? ErrorCode::not_found : ErrorCode::io;
    return fail(code, "{}: cannot open: {}", path, std::strerror(errno));
  }
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) {
    const int why = errno;
    ::close(descriptor);
    return fail(ErrorCode::io, "{}: cannot read its size: {}", path, std::strerror(why));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(ErrorCode::invalid_argument, "{}: expected a regular file, found {}", path,
                S_ISDIR(status.st_mode) ? "a directory" : "something else");
  }
  if (status.st_size == 0) {
    ::close(descriptor);
    return fail(ErrorCode::invalid_argument, "{}: expected content, found 0 bytes", path);
  }
  const size_t size = size_t(status.st_size);
  const int slot = take_slot();
  if (slot < 0) {
    ::close(descriptor);
    return fail(ErrorCode::no_room, "{}: expected at most {} mapped files at once, found more",
                path, kGuardSlots);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) {
    const int why = errno;
    unguard(slot);
    ::close(descriptor);
    return fail(ErrorCode::io, "{}: cannot map {} bytes: {}", path, size, std::strerror(why));
  }
  guard(slot, path, static_cast<const std::byte*>(data), size);
  MappedFile file(path, descriptor, static_cast<const std::byte*>(data), size);
  file.identity_ = {uint64_t(status.st_dev), uint64_t(status.st_ino)};
  file.guard_slot_ = slot;
  file.modified_ns_ = int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  return file;
}

MappedFile::MappedFile(std::string path, int descriptor, const std::byte* data, size_t size)
    : path_(std::move(path)), descriptor_(descriptor), data_(data), size_(size) {}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  descriptor_ = std::exchange(other.descriptor_, -1);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  modified_ns_ = other.modified_ns_;
  identity_ = other.identity_;
  guard_slot_ = std::exchange(other.guard_slot_, -1);
  return *this;
}

MappedFile::~MappedFile() {
  close();
}

void MappedFile::close() {
  if (data_ == nullptr) return;
  unguard(guard_slot_);
  ::munmap(const_cast<std::byte*>(data_), size_);
  ::close(descriptor_);
  data_ = nullptr;
}

MappedFile::PageRange MappedFile::whole_pages(size_t offset, size_t bytes) const {
  CHECK(offset <= size_ && bytes <= size_ - offset);
  const size_t page = page_bytes();
  const size_t begin = (offset + page - 1) / page * page;
  // The last page of the file belongs to nobody else: it may go when the range reaches the end.
  const size_t end =
      offset + bytes == size_ ? (size_ + page - 1) / page * page : (offset + bytes) / page * page;
  return {const_cast<std::byte*>(data_) + begin, begin, begin < end ? end - begin : 0};
}

// What follows is advice: a kernel that does not take it keeps the pages, and nothing else changes.

void MappedFile::forget(size_t offset, size_t bytes) const {
  const PageRange range = whole_pages(offset, bytes);
  if (range.bytes > 0) (void)::madvise(range.data, range.bytes, MADV_DONTNEED);
}

void MappedFile::drop(size_t offset, size_t bytes) const {
  const PageRange range = whole_pages(offset, bytes);
  if (range.bytes == 0) return;
  (void)::madvise(range.data, range.bytes, MADV_DONTNEED);
  (void)::posix_fadvise(descriptor_, off_t(range.offset), off_t(range.bytes), POSIX_FADV_DONTNEED);
}

void MappedFile::will_need(size_t offset, size_t bytes) const {
  const PageRange range = whole_pages(offset, bytes);
  if (range.bytes > 0) (void)::madvise(range.data, range.bytes, MADV_WILLNEED);
}

void MappedFile::prefer_huge_pages() const {
  (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_HUGEPAGE);
}

}  // namespace cairn
