// Whoever watches memory: reports on their way from the engine's thread, of which only the newest
// counts. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "session/memory_report.h"

namespace cairn::session {

class MemoryWatch {
 public:
  explicit MemoryWatch(std::optional<uint64_t> tenant) : tenant_(tenant) {}
  // Whose sequences alone are reported; none: all.
  std::optional<uint64_t> tenant() const { return tenant_; }

  // The engine's side.
  void add(std::shared_ptr<const MemoryReport> report) {
    const std::lock_guard lock(mutex_);
    newest_ = std::move(report);
    if (on_change_) on_change_();
  }
  // There will be no more.
  void end() {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    if (on_change_) on_change_();
  }

  // The watcher's side. Null: nothing new.
  std::shared_ptr<const MemoryReport> take() {
    const std::lock_guard lock(mutex_);
    return std::move(newest_);
  }
  bool has_ended() {
    const std::lock_guard lock(mutex_);
    return has_ended_;
  }
  // From now on calls `on_change` when take() has something or the watch has ended; none: no
  // longer, and once this has returned it is not being called. It must not use the watch, and is
  // called on any thread.
  void listen(std::function<void()> on_change) {
    const std::lock_guard lock(mutex_);
    on_change_ = std::move(on_change);
  }

 private:
  const std::optional<uint64_t> tenant_;
  std::mutex mutex_;
  std::shared_ptr<const MemoryReport> newest_;
  std::function<void()> on_change_;
  bool has_ended_ = false;
};

}  // namespace cairn::session
