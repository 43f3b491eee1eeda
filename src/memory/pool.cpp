// Finding free blocks, and letting go of them.
#include "memory/pool.h"

#include <algorithm>
#include <utility>

#include "device/step.h"

namespace cairn::memory {
namespace {

// What may stay resident without being counted, beside an eighth of what is.
constexpr size_t kSlackBytes = size_t(8) << 20;

}  // namespace

Result<Pool> Pool::create(const Options& options, Ledger* ledger, DeviceMemory* device) {
  CHECK(options.block_bytes > 0 && options.block_count_max > 0);
  CAIRN_TRY(std::unique_ptr<Buffer> buffer,
            device->reserve(options.block_bytes * size_t(options.block_count_max)));
  return Pool(options, std::move(buffer), ledger, device);
}

// The lists get room for all blocks at once; the system backs it only as it is used.
Pool::Pool(const Options& options, std::unique_ptr<Buffer> buffer, Ledger* ledger,
           DeviceMemory* device)
    : options_(options),
      backing_(std::move(buffer), {device->slab_bytes(), device->unit_bytes()}),
      first_(backing_.data()),
      warm_max_(options.warm_count_max),
      ledger_(ledger),
      device_(device) {
  counts_.reserve(size_t(options.block_count_max));
  accounts_.reserve(size_t(options.block_count_max));
  cold_.reserve(size_t(options.block_count_max));
  warm_.reserve(size_t(options.warm_count_max));
}

int32_t Pool::shared_count() const {
  return int32_t(std::count_if(counts_.begin(), counts_.end(), [](int32_t c) { return c > 1; }));
}

PageId Pool::take(uint64_t tenant) {
  const PageId block = take_free();
  if (block == kNoPage) return kNoPage;
  accounts_[size_t(index_of(block))] = ledger_->charge(tenant, options_.block_bytes);
  ++used_count_;
  return block;
}

// The cold block that was used last is the one that may still be backed.
PageId Pool::take_free() {
  PageId block = kNoPage;
  if (!warm_.empty()) {
    block = warm_.back();
    warm_.pop_back();
    counts_[size_t(index_of(block))] = 1;
  } else {
    const bool is_new = cold_.empty();
    if (is_new && int32_t(counts_.size()) == options_.block_count_max) return kNoPage;
    if (!ledger_->take(options_.block_bytes)) return kNoPage;
    block = is_new ? PageId(int32_t(counts_.size())) : cold_.back();
    if (!backing_.use(offset_of(block), options_.block_bytes)) {
      ledger_->give_back(options_.block_bytes);
      return kNoPage;
    }
    if (is_new) {
      counts_.push_back(1);
      accounts_.push_back(0);
    } else {
      cold_.pop_back();
      counts_[size_t(index_of(block))] = 1;
    }
    poison(block);
  }
  return block;
}

void Pool::become_free(PageId block) {
  --used_count_;
  ledger_->discharge(account(block), options_.block_bytes);
  poison(block);
  if (int32_t(warm_.size()) < warm_max_) {
    warm_.push_back(block);
  } else {
    give_back(block);
  }
  // Nobody is at work here: little has to be ready.
  if (used_count_ == 0) trim_to_kept();
}

void Pool::give_back(PageId block) {
  backing_.drop(offset_of(block), options_.block_bytes);
  ledger_->give_back(options_.block_bytes);
  cold_.push_back(block);
  const size_t held_bytes = (size_t(used_count_) + warm_.size()) * options_.block_bytes;
  backing_.reduce_slack(kSlackBytes + held_bytes / 8);
}

void Pool::keep(int32_t count) {
  kept_count_ = count;
  set_warm_max(warm_max_);
}

void Pool::keep_cleared(int32_t count) {
  keep(count);
  std::vector<PageId> cleared;
  while (int32_t(cleared.size()) < count) {
    const PageId block = take();
    if (block == kNoPage) break;
    cleared.push_back(block);
    device_->fill(bytes_of(block), std::byte(0));
  }
  for (const PageId block : cleared) release(block);
}

void Pool::set_warm_max(int32_t count) {
  warm_max_ = std::max({count, kept_count_, options_.warm_count_max});
  warm_.reserve(size_t(warm_max_));
  trim_to(warm_max_);
}

void Pool::trim_to(int32_t count) {
  while (int32_t(warm_.size()) > count) {
    const PageId block = warm_.back();
    warm_.pop_back();
    give_back(block);
  }
}

}  // namespace cairn::memory
