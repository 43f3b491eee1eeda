// Which bytes of a pool's buffer the system backs. A slab (a huge page) is committed when the first
// block on it is used and goes back whole when the last one is not. Of a slab in use, the units
// that no block needs are slack; where that is too much they go back alone, which leaves the slab
// slower to read until it goes back whole. Knows bytes, not blocks.
// Not thread-safe: the engine's thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/buffer.h"

namespace cairn::memory {

class Backing {
 public:
  struct Grain {
    size_t slab_bytes = 0, unit_bytes = 0;  // See DeviceMemory.
  };

  Backing(std::unique_ptr<Buffer> buffer, Grain grain);

  std::byte* data() const { return buffer_->data(); }

  // The range is going to be used. Ranges may have units in common. False: the system has no room.
  bool use(size_t offset, size_t bytes);
  // It is used no longer. REQUIRES: exactly this range was used.
  void drop(size_t offset, size_t bytes);

  // At most so much is backed: the first use of a slab may back all of it.
  size_t resident_bytes() const { return resident_units_ * grain_.unit_bytes; }
  size_t slack_bytes() const { return (resident_units_ - used_units_) * grain_.unit_bytes; }
  // Gives slack back until at most so much is left, on as few slabs as possible.
  void reduce_slack(size_t bytes_left);

 private:
  struct Slab {
    uint32_t resident_units = 0;  // 0: not committed.
    uint32_t used_units = 0;

    uint32_t slack_units() const { return resident_units - used_units; }
  };
  // What a unit is where no range uses it; else, how many do.
  static constexpr uint16_t kAbsent = 0, kIdle = UINT16_MAX;

  bool commit(size_t slab);
  void decommit(size_t slab);
  void give_back_slack(size_t slab);

  std::unique_ptr<Buffer> buffer_;
  Grain grain_;
  size_t slab_units_;  // Units of a slab.
  std::vector<Slab> slabs_;
  std::vector<uint16_t> units_;  // Of the slabs up to the last one that was ever used.
  size_t resident_units_ = 0, used_units_ = 0;
};

}  // namespace cairn::memory
