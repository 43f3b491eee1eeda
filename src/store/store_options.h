// What a store is made with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "store/file_calls.h"

namespace cairn::store {

struct StoreOptions {
  std::string path;
  uint64_t budget_bytes = 0;  // 0: a tenth of the disk, and 20 GiB at most unless it is lent.
  bool is_lent = false;       // To other machines, which borrow mostly what memory has forgotten.
  std::optional<uint64_t> free_bytes_min;  // Left free; none: 1 GiB or a twentieth of the disk.
  FileCalls* calls = nullptr;              // Null: the system's. Outlives the store.
  std::function<int64_t()> now_ns;         // None: the system's clock.
  // It is opened at once, and read by a thread of its own.
  bool is_read_aside = false;
};

}  // namespace cairn::store
