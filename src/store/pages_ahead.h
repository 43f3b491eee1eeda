// Has the system back memory before it is written. The system clears a page when it is first
// touched, which takes nearly as long as reading as much from a file that it has in memory; another
// core can do it meanwhile.
// Thread rule: any one thread; the bytes may be written by others at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>
#include <vector>

namespace cairn::store {

class PagesAhead {
 public:
  // Begins at once, in this order, on a thread of its own; where the system gives no thread or does
  // not know how, pages come when they are touched. The memory outlives it.
  explicit PagesAhead(std::vector<std::span<std::byte>> parts);
  PagesAhead(const PagesAhead&) = delete;
  PagesAhead& operator=(const PagesAhead&) = delete;
  ~PagesAhead();  // Stops, and waits until it has.

 private:
  void work();

  std::vector<std::span<std::byte>> parts_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

}  // namespace cairn::store
