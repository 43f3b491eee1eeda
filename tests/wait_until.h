// For tests: waits for what another thread or process does, a minute at most.
#pragma once

#include <chrono>
#include <thread>

namespace cairn::test {

// Whether the condition came to hold.
template <class Condition>
bool wait_until(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace cairn::test
