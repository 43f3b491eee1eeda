// A handle's bits: 0000 (so that it is aligned), the slot (16), the slot's use (31), and 1 where no
// program of x86-64 or ARM has addresses (bit 51): reading there faults at once, and a number of
// JavaScript holds it exactly.
#include "capi/handles.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <mutex>
#include <vector>

namespace cairn::capi {

namespace {

static_assert(sizeof(uintptr_t) == sizeof(uint64_t), "handles have 52 bits");

constexpr uint32_t kLowBits = 4, kUseBits = 31;
constexpr uint64_t kTop = uint64_t(1) << 51;

struct Entry {
  Kind kind = Kind::none;
  std::shared_ptr<void> object;
};

// What signal handlers may read and set.
struct Mark {
  std::atomic<uint64_t> handle{0};  // Open in this slot; 0: none.
  std::atomic<uint64_t> marked{0};  // The handle that was marked last.
};

std::array<Mark, handles::kSlotsMax>& marks() {
  static std::array<Mark, handles::kSlotsMax> marks;
  return marks;
}

size_t slot_of(uint64_t handle) {
  return size_t(handle >> kLowBits) & (handles::kSlotsMax - 1);
}

class Table {
 public:
  Table() {
    // The lock is nobody else's while the process is copied; the child forgets what it cannot use:
    // its objects' threads are not there.
    (void)::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                           [] {
                             instance().forget_all();
                             instance().mutex_.unlock();
                           });
  }

  // When the process ends or the library is unloaded, what is still open stays as it is: ending its
  // threads now could wait for ever.
  ~Table() {
    for (Entry& entry : entries_) {
      if (entry.object != nullptr) new std::shared_ptr<void>(std::move(entry.object));
    }
    used_ = 0;
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  static Table& instance() {
    static Table table;
    return table;
  }

  Result<uint64_t> add(Kind kind, std::shared_ptr<void> object) {
    const std::lock_guard lock(mutex_);
    size_t slot = used_;
    if (!free_.empty()) {
      slot = free_.back();
    } else if (used_ == handles::kSlotsMax) {
      return fail(ErrorCode::no_room, "handles: expected at most {} open ones, found more",
                  handles::kSlotsMax);
    } else {
      entries_.emplace_back();
      // So that closing allocates nothing.
      free_.reserve(entries_.capacity());
      ++used_;
    }
    if (!free_.empty()) free_.pop_back();
    use_ = (use_ + 1) & ((uint64_t(1) << kUseBits) - 1);
    const uint64_t handle =
        kTop | use_ << (handles::kSlotBits + kLowBits) | uint64_t(slot) << kLowBits;
    entries_[slot] = {kind, std::move(object)};
    marks()[slot].handle.store(handle);
    return handle;
  }

  std::shared_ptr<void> find(Kind kind, uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(kind, handle);
    return entry == nullptr ? nullptr : entry->object;
  }

  std::shared_ptr<void> take(Kind kind, uint64_t handle) {
    const std::lock_guard lock(mutex_);
    Entry* const entry = entry_of(kind, handle);
    if (entry == nullptr) return nullptr;
    marks()[slot_of(handle)].handle.store(0);
    free_.push_back(slot_of(handle));
    entry->kind = Kind::none;
    return std::move(entry->object);
  }

 private:
  Entry* entry_of(Kind kind, uint64_t handle) {
    const size_t slot = slot_of(handle);
    const bool is_open = handle != 0 && slot < used_ && marks()[slot].handle.load() == handle;
    return is_open && entries_[slot].kind == kind ? &entries_[slot] : nullptr;
  }

  // What they own stays where it is: destroying it would wait for threads that are not there. Their
  // slots stay taken.
  void forget_all() {
    for (size_t slot = 0; slot < used_; ++slot) {
      marks()[slot].handle.store(0);
      entries_[slot].kind = Kind::none;
    }
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
  std::vector<size_t> free_;
  size_t used_ = 0;
  uint64_t use_ = 0;
};

bool& is_in_callback() {
  thread_local bool is_in = false;
  return is_in;
}

}  // namespace

namespace handles {

Result<uint64_t> add(Kind kind, std::shared_ptr<void> object) {
  return Table::instance().add(kind, std::move(object));
}

std::shared_ptr<void> find(Kind kind, uint64_t handle) {
  return Table::instance().find(kind, handle);
}

std::shared_ptr<void> take(Kind kind, uint64_t handle) {
  return Table::instance().take(kind, handle);
}

void set_mark(uint64_t handle) {
  Mark& mark = marks()[slot_of(handle)];
  if (handle != 0 && mark.handle.load() == handle) mark.marked.store(handle);
}

bool has_mark(uint64_t handle) {
  return handle != 0 && marks()[slot_of(handle)].marked.load() == handle;
}

bool clear_mark(uint64_t handle) {
  return handle != 0 && marks()[slot_of(handle)].marked.compare_exchange_strong(handle, 0);
}

}  // namespace handles

InCallback::InCallback() {
  is_in_callback() = true;
}

InCallback::~InCallback() {
  is_in_callback() = false;
}

bool InCallback::is_here() {
  return is_in_callback();
}

}  // namespace cairn::capi
