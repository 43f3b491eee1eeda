// The memory of devices that compute where the host does: arenas, which the host sees without a
// copy. A buffer may outlive its HostMemory.
#pragma once

#include <cstring>
#include <memory>
#include <utility>

#include "base/arena.h"
#include "device/buffer.h"

namespace cairn {

class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(Arena arena)
      : Buffer({arena.data(), arena.size()}), arena_(std::move(arena)) {}
  bool commit(size_t offset, size_t bytes) override { return arena_.commit(offset, bytes); }
  void decommit(size_t offset, size_t bytes) override { arena_.decommit(offset, bytes); }
  void discard(size_t offset, size_t bytes) override { arena_.discard(offset, bytes); }

 private:
  Arena arena_;
};

class HostMemory final : public DeviceMemory {
 public:
  Result<std::unique_ptr<Buffer>> allocate(size_t bytes) override {
    CAIRN_TRY(Arena arena, Arena::reserve(bytes));
    return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(std::move(arena)));
  }
  Result<std::unique_ptr<Buffer>> reserve(size_t bytes) override {
    CAIRN_TRY(Arena arena, Arena::reserve_addresses(bytes));
    return std::unique_ptr<Buffer>(std::make_unique<HostBuffer>(std::move(arena)));
  }
  size_t slab_bytes() const override { return Arena::kHugePageBytes; }
  size_t unit_bytes() const override { return 4096; }  // Systems with larger pages round it up.
  void copy(DeviceBytes to, DeviceBytes from) override {
    CHECK(to.size == from.size);
    std::memcpy(to.data, from.data, from.size);
  }
  void fill(DeviceBytes to, std::byte value) override { std::memset(to.data, int(value), to.size); }
  std::span<const std::byte> view(DeviceBytes from) override { return {from.data, from.size}; }
};

}  // namespace cairn
