// A large run of anonymous memory: reserved at once, backed by pages only as they are touched, on
// huge pages where the kernel gives them and on ordinary ones where not. Addresses alone may be
// reserved too, which no limit of committed memory counts until they are.
// Invariant: data() is aligned to 2 MiB, fresh and discarded memory reads as zeros.
// Thread rule: the memory is the caller's affair.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace cairn {

class Arena {
 public:
  static constexpr size_t kHugePageBytes = size_t(2) << 20;

  // An address range of `bytes`, rounded up to whole huge pages. Errors: invalid_argument for 0
  // bytes, memory_full when the kernel has no such range.
  static Result<Arena> reserve(size_t bytes);
  // The same, but nothing may be touched that is not committed.
  static Result<Arena> reserve_addresses(size_t bytes);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  // Makes a part of reserved addresses memory, and addresses again. False: the kernel has no room.
  // REQUIRES: whole huge pages within size().
  bool commit(size_t offset, size_t bytes);
  void decommit(size_t offset, size_t bytes);

  // Gives the whole pages inside the range back to the kernel; they read as zeros afterwards. A
  // huge page that is not given back whole is made of ordinary ones from then on, until it is
  // decommitted: else the kernel would fill its holes again.
  // REQUIRES: offset + bytes <= size().
  void discard(size_t offset, size_t bytes);

 private:
  static Result<Arena> map(size_t bytes, int protection);
  Arena(std::byte* data, size_t size) : data_(data), size_(size) {}
  void release();

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace cairn
