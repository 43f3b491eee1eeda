// One thread, and one call of the system for a part.
#include "store/pages_ahead.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/threads/background_thread.h"
#include "base/threads/start_thread.h"

namespace cairn::store {

PagesAhead::PagesAhead(std::vector<std::span<std::byte>> parts) : parts_(std::move(parts)) {
  Result<std::thread> thread = start_thread("the thread that touches pages", [this] { work(); });
  if (thread) thread_ = std::move(*thread);  // Else the pages come when they are touched.
}

PagesAhead::~PagesAhead() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
}

// Whole pages only, so that nothing is asked for beside the parts.
void PagesAhead::work() {
  run_anywhere();
  give_way();
  const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE));
  for (const std::span<std::byte> part : parts_) {
    const uintptr_t begin = (uintptr_t(part.data()) + page - 1) / page * page;
    const uintptr_t end = uintptr_t(part.data() + part.size()) / page * page;
    if (stops_) return;
    if (begin >= end) continue;
    // Linux 5.14: https://man7.org/linux/man-pages/man2/madvise.2.html
    const int done = ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
    if (done != 0) return;
  }
}

}  // namespace cairn::store
