// Several parts: each failure lets go of one, so that threads that fail together all go on.
#include "base/machine/memory_reserve.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/log.h"

namespace cairn {
namespace {

// Never touched, so that the system gives addresses but no pages for them.
constexpr size_t kPartBytes = size_t(2) << 20;

struct MemoryReserve {
  std::array<std::atomic<void*>, 8> parts = {};
  std::atomic<bool> is_kept = false;
};

MemoryReserve& memory_reserve() {
  static MemoryReserve reserve;
  return reserve;
}

// Without a handler, `operator new` throws.
void let_a_part_go() {
  for (std::atomic<void*>& part : memory_reserve().parts) {
    if (void* const memory = part.exchange(nullptr)) return std::free(memory);
  }
  std::set_new_handler(nullptr);
}

bool fill(std::atomic<void*>& part) {
  void* const memory = std::malloc(kPartBytes);
  void* none = nullptr;
  if (memory != nullptr && !part.compare_exchange_strong(none, memory)) std::free(memory);
  return memory != nullptr;
}

}  // namespace

void keep_memory_reserve() {
  MemoryReserve& reserve = memory_reserve();
  for (std::atomic<void*>& part : reserve.parts) {
    if (part.load() == nullptr) (void)fill(part);
  }
  reserve.is_kept = true;
  std::set_new_handler(let_a_part_go);
}

bool has_memory_reserve() {
  MemoryReserve& reserve = memory_reserve();
  if (!reserve.is_kept) return true;
  int used = 0;
  for (std::atomic<void*>& part : reserve.parts) {
    if (part.load() != nullptr) continue;
    if (!fill(part)) return false;
    ++used;
  }
  if (used > 0) {
    std::set_new_handler(let_a_part_go);
    log::warning("the system gave no more memory {} times", used);
  }
  return true;
}

}  // namespace cairn
