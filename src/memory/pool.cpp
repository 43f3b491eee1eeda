// Finding free blocks, and giving memory back.
#include "memory/pool.h"

#include <utility>

#include "device/step.h"

namespace cairn::memory {
namespace {

// What may stay on slabs in use without being counted; and an eighth of what is.
constexpr size_t kSlackBytes = size_t(8) << 20;

}  // namespace

Result<Pool> Pool::create(const Options& options, Ledger* ledger, DeviceMemory* device) {
  CHECK(options.block_bytes > 0 && options.block_count_max > 0);
  CAIRN_TRY(std::unique_ptr<Buffer> buffer,
            device->allocate(options.block_bytes * size_t(options.block_count_max)));
  return Pool(options, std::move(buffer), ledger, device);
}

// The lists get room for all blocks at once; the system backs it only as it is used.
Pool::Pool(const Options& options, std::unique_ptr<Buffer> buffer, Ledger* ledger,
           DeviceMemory* device)
    : options_(options),
      buffer_(std::move(buffer)),
      first_(buffer_->data()),
      slab_bytes_(device->slab_bytes()),
      ledger_(ledger),
      device_(device) {
  counts_.reserve(size_t(options.block_count_max));
  cold_.reserve(size_t(options.block_count_max));
  warm_.reserve(size_t(options.warm_count_max));
  slab_counts_.assign(buffer_->size() / slab_bytes_, 0);
}

template <class Body>
void Pool::for_slabs(PageId block, const Body& body) const {
  const size_t begin = size_t(index_of(block)) * options_.block_bytes;
  const size_t last = begin + options_.block_bytes - 1;
  for (size_t slab = begin / slab_bytes_; slab <= last / slab_bytes_; ++slab) {
    body(slab);
  }
}

PageId Pool::take() {
  PageId block = kNoPage;
  if (!warm_.empty()) {
    block = warm_.back();
    warm_.pop_back();
    counts_[size_t(index_of(block))] = 1;
  } else {
    const bool has_address = !cold_.empty() || int32_t(counts_.size()) < options_.block_count_max;
    if (!has_address || !ledger_->take(options_.block_bytes)) return kNoPage;
    if (cold_.empty()) {
      block = PageId(int32_t(counts_.size()));
      counts_.push_back(1);
    } else {
      block = cold_.back();
      cold_.pop_back();
      counts_[size_t(index_of(block))] = 1;
    }
    for_slabs(block, [&](size_t slab) { slabs_in_use_ += size_t(slab_counts_[slab]++ == 0); });
    poison(block);
  }
  ++used_count_;
  return block;
}

void Pool::become_free(PageId block) {
  --used_count_;
  poison(block);
  if (used_count_ == 0) {
    // Nobody is at work here: nothing has to be ready.
    give_back(block);
    trim();
  } else if (int32_t(warm_.size()) < options_.warm_count_max) {
    warm_.push_back(block);
  } else {
    give_back(block);
  }
}

void Pool::give_back(PageId block) {
  for_slabs(block, [&](size_t slab) {
    if (--slab_counts_[slab] > 0) return;
    --slabs_in_use_;
    buffer_->discard(slab * slab_bytes_, slab_bytes_);
  });
  ledger_->give_back(options_.block_bytes);
  cold_.push_back(block);
  const size_t held_bytes = (size_t(used_count_) + warm_.size()) * options_.block_bytes;
  const size_t slack_bytes = kSlackBytes + held_bytes / 8;
  if (slabs_in_use_ * slab_bytes_ > held_bytes + slack_bytes) {
    buffer_->discard(size_t(index_of(block)) * options_.block_bytes, options_.block_bytes);
  }
}

void Pool::trim() {
  for (const PageId block : warm_) give_back(block);
  warm_.clear();
}

}  // namespace cairn::memory
