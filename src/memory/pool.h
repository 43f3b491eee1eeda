// The blocks of one group in one buffer: address space is reserved once, a block is an index. It is
// counted in the ledger before it is touched, and free again when nobody names it; a few free
// blocks stay warm (touched and counted), so that steady use makes no system call, the others go
// back to the system as backing.h says. What is named more than once is never written.
// Not thread-safe: the engine's thread owns it; kernels write only blocks of the current step.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "device/buffer.h"
#include "memory/backing.h"
#include "memory/ledger.h"

namespace cairn::memory {

class Pool {
 public:
  struct Options {
    size_t block_bytes = 0;
    int32_t block_count_max = 0;
    int32_t warm_count_max = 1;  // Free blocks that are kept ready, unless more are asked for.
    bool poisons = false;        // Fills new blocks with a pattern, so that stale reads show.
  };
  static constexpr std::byte kPoison{0xA5};

  // The ledger and the device outlive the pool.
  static Result<Pool> create(const Options& options, Ledger* ledger, DeviceMemory* device);

  // A block with one reference, for a tenant, or kNoPage if the ledger or the pool has no room. Its
  // bytes are arbitrary.
  PageId take(uint64_t tenant = 0);
  void retain(PageId block) {
    DCHECK(ref_count(block) > 0);
    ++counts_[size_t(index_of(block))];
  }
  void release(PageId block) {
    DCHECK(ref_count(block) > 0);
    if (--counts_[size_t(index_of(block))] == 0) become_free(block);
  }
  int32_t ref_count(PageId block) const { return counts_[size_t(index_of(block))]; }
  // Whose the block is: the ledger's number. REQUIRES: it is used.
  int32_t account(PageId block) const { return accounts_[size_t(index_of(block))]; }
  bool is_shared(PageId block) const { return ref_count(block) > 1; }

  std::byte* address(PageId block) const {
    return first_ + size_t(index_of(block)) * options_.block_bytes;
  }
  std::byte* first() const { return first_; }  // The address of block 0.
  void copy(PageId to, PageId from) { device_->copy(bytes_of(to), bytes_of(from)); }
  size_t block_bytes() const { return options_.block_bytes; }
  int32_t used_count() const { return used_count_; }
  int32_t shared_count() const;  // Of those, that have several references; looks at each.
  int32_t warm_count() const { return int32_t(warm_.size()); }

  // What the system backs at most, and how much of it no block needs that is used or warm.
  size_t resident_bytes() const { return backing_.resident_bytes(); }
  size_t slack_bytes() const { return backing_.slack_bytes(); }
  void reduce_slack(size_t bytes_left) { backing_.reduce_slack(bytes_left); }

  // So many blocks, once used, stay warm from now on even where none is used.
  void keep(int32_t count);
  // The same, and clears them now as far as there is room.
  void keep_cleared(int32_t count);
  // Up to so many free blocks stay warm from now on, and never fewer than the pool was made for.
  void set_warm_max(int32_t count);
  int32_t warm_max() const { return warm_max_; }
  // Gives the warm blocks back to the ledger and to the system, or all but those kept warm.
  void trim() { trim_to(0); }
  void trim_to_kept() { trim_to(kept_count_); }

 private:
  Pool(const Options& options, std::unique_ptr<Buffer> buffer, Ledger* ledger,
       DeviceMemory* device);
  DeviceBytes bytes_of(PageId block) const { return {address(block), options_.block_bytes}; }
  void poison(PageId block) {
    if (options_.poisons) device_->fill(bytes_of(block), kPoison);
  }
  PageId take_free();
  void become_free(PageId block);
  void give_back(PageId block);
  void trim_to(int32_t count);
  size_t offset_of(PageId block) const { return size_t(index_of(block)) * options_.block_bytes; }

  Options options_;
  Backing backing_;
  std::byte* first_;
  std::vector<int32_t> counts_;      // References to each block that was ever used.
  std::vector<int32_t> accounts_;    // Of its tenant, the same.
  std::vector<PageId> warm_, cold_;  // Free blocks: still counted in the ledger, or not.
  int32_t used_count_ = 0;
  int32_t warm_max_;
  int32_t kept_count_ = 0;  // Warm blocks that stay when none is used.
  Ledger* ledger_;
  DeviceMemory* device_;
};

}  // namespace cairn::memory
