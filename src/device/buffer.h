// Memory of a device: who owns it, and how bytes get about in it and to the host. Addresses are the
// device's; the host reads and writes what they point to through DeviceMemory alone, so that it
// need not be memory that the host can see. Knows nothing of what the bytes mean.
// Thread rule: one thread at a time, and not while the device computes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/result.h"

namespace cairn {

// Some bytes of a buffer.
struct DeviceBytes {
  std::byte* data = nullptr;
  size_t size = 0;

  bool exists() const { return data != nullptr; }
};

// A range of addresses, until it goes. What is committed of it the system backs as it is used;
// before that, and after discard(), it reads as zeros.
class Buffer {
 public:
  virtual ~Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return all_.data; }
  size_t size() const { return all_.size; }

  // Makes a part of a reserved buffer memory, or mere addresses again, which nobody may touch.
  // False: the system has no room. REQUIRES: whole slabs within size().
  virtual bool commit(size_t offset, size_t bytes) = 0;
  virtual void decommit(size_t offset, size_t bytes) = 0;

  // Gives what backs the range back to the system, in the whole units of it that lie inside.
  // REQUIRES: offset + bytes <= size().
  virtual void discard(size_t offset, size_t bytes) = 0;

 protected:
  explicit Buffer(DeviceBytes all) : all_(all) {}

 private:
  DeviceBytes all_;
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // At least `bytes`, rounded up to whole slabs and aligned to one. Errors: invalid_argument for 0
  // bytes, memory_full.
  virtual Result<std::unique_ptr<Buffer>> allocate(size_t bytes) = 0;
  // The same, of addresses alone: nothing is committed yet.
  virtual Result<std::unique_ptr<Buffer>> reserve(size_t bytes) = 0;
  // Memory that goes back by whole slabs leaves the rest as fast to read as it was; the least that
  // goes back is a unit. Slabs are whole units.
  virtual size_t slab_bytes() const = 0;
  virtual size_t unit_bytes() const = 0;

  // REQUIRES: equal sizes; the ranges do not overlap.
  virtual void copy(DeviceBytes to, DeviceBytes from) = 0;
  virtual void fill(DeviceBytes to, std::byte value) = 0;
  // What stands there, for the host to read until the device computes again.
  virtual std::span<const std::byte> view(DeviceBytes from) = 0;
};

}  // namespace cairn
