// Reserving, aligning and giving back anonymous memory.
#include "base/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace cairn {

Result<Arena> Arena::reserve(size_t bytes) {
  return map(bytes, PROT_READ | PROT_WRITE);
}

Result<Arena> Arena::reserve_addresses(size_t bytes) {
  return map(bytes, PROT_NONE);
}

Result<Arena> Arena::map(size_t bytes, int protection) {
  if (bytes == 0) return fail(ErrorCode::invalid_argument, "memory: expected a size, found 0");
  if (bytes > SIZE_MAX - 2 * kHugePageBytes) {
    return fail(ErrorCode::memory_full, "memory: expected at most {} bytes, found {}",
                SIZE_MAX - 2 * kHugePageBytes, bytes);
  }
  const size_t size = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  // One huge page more than asked: the kernel aligns to 4 KiB only, so the ends are cut off.
  const size_t mapped = size + kHugePageBytes;
  void* start =
      ::mmap(nullptr, mapped, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return fail(ErrorCode::memory_full,
                "memory: expected {} bytes of addresses, found none so long: {}", size,
                std::strerror(errno));
  }
  std::byte* const first = static_cast<std::byte*>(start);
  const size_t past = uintptr_t(first) % kHugePageBytes;
  const size_t head = past == 0 ? 0 : kHugePageBytes - past;
  if (head > 0) ::munmap(first, head);
  ::munmap(first + head + size, kHugePageBytes - head);
  // Refused where huge pages are switched off or not compiled in: ordinary pages do as well.
  (void)::madvise(first + head, size, MADV_HUGEPAGE);
  return Arena(first + head, size);
}

Arena::Arena(Arena&& other) noexcept {
  *this = std::move(other);
}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

Arena::~Arena() {
  release();
}

void Arena::release() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
}

bool Arena::commit(size_t offset, size_t bytes) {
  CHECK(offset % kHugePageBytes == 0 && bytes % kHugePageBytes == 0);
  CHECK(offset <= size_ && bytes <= size_ - offset);
  return ::mprotect(data_ + offset, bytes, PROT_READ | PROT_WRITE) == 0;
}

// A new mapping in the old one's place: a change of protection alone would leave the memory counted
// as committed.
void Arena::decommit(size_t offset, size_t bytes) {
  CHECK(offset % kHugePageBytes == 0 && bytes % kHugePageBytes == 0);
  CHECK(offset <= size_ && bytes <= size_ - offset);
  void* const place = data_ + offset;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(place, bytes, PROT_NONE, flags, -1, 0) == MAP_FAILED) {
    // The kernel counts mappings and may refuse one more; the pages at least go back.
    CHECK(::madvise(place, bytes, MADV_DONTNEED) == 0);
  }
  (void)::madvise(place, bytes, MADV_HUGEPAGE);
}

void Arena::discard(size_t offset, size_t bytes) {
  CHECK(offset <= size_ && bytes <= size_ - offset);
  const size_t page = size_t(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + bytes) / page * page;
  if (begin >= end) return;
  if (begin % kHugePageBytes != 0 || end % kHugePageBytes != 0) {
    const size_t first = begin / kHugePageBytes * kHugePageBytes;
    const size_t last = (end + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    (void)::madvise(data_ + first, last - first, MADV_NOHUGEPAGE);
  }
  CHECK(::madvise(data_ + begin, end - begin, MADV_DONTNEED) == 0);
}

}  // namespace cairn
