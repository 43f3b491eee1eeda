// Threads of a program that go on beside those that answer. Thread-safe.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.h"
#include "base/threads/blocked_signals.h"

namespace cairn {

// A thread that does `work` and receives no signals. Errors: io, with `what` it would have been:
// the system has no more of them.
template <class Work>
Result<std::thread> start_thread(std::string_view what, Work work) {
  const BlockedSignals blocked;
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error& refused) {
    return fail(ErrorCode::io, "{}: {}", what, refused.what());
  }
}

}  // namespace cairn
