// A trace of what the process does when, for trace viewers (Perfetto, Chrome): a file in the JSON
// array form of trace events, which may lack its end, so that it can be read at any moment, also
// when the process was killed. Names and numbers alone: nothing that anybody said. Its size has a
// limit. Whoever traces holds a pointer that is null where nobody asked for a trace; nothing is
// measured then. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cairn {

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  struct Figure {
    std::string_view name;
    int64_t value = 0;
  };
  static constexpr uint64_t kBytesMax = uint64_t(256) << 20;

  // Replaces a trace of that name, which only its owner may read; then nothing more is written than
  // `bytes_max`. Errors: invalid_argument: another file has that name; those of check_output(); io.
  static Result<std::unique_ptr<Trace>> open(const std::string& path,
                                             uint64_t bytes_max = kBytesMax);
  ~Trace();  // Spans of tasks that are still open stay so.
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  // What the calling thread did from then until now; `thread`: its name for people. Spans of a
  // thread nest, and one within another is told first. Better by TraceSpan.
  void add_span(std::string_view thread, std::string_view name, Clock::time_point begin,
                std::span<const Figure> figures);
  // A task is done by many threads, one after another; spans of one task nest. `label`: what it is
  // known by elsewhere; characters that may not stand in a name are replaced.
  int64_t new_task() { return task_count_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void begin(int64_t task, std::string_view name, std::span<const Figure> figures = {},
             std::string_view label = {}, Clock::time_point at = Clock::now());
  void end(int64_t task, std::string_view name, std::span<const Figure> figures = {});

 private:
  Trace(std::string path, int descriptor, uint64_t bytes_max);
  void write_task(char phase, int64_t task, std::string_view name, std::span<const Figure> figures,
                  std::string_view label, Clock::time_point at);
  void write(std::string_view event);
  bool write_all(std::string_view bytes);

  std::string path_;
  uint64_t bytes_max_;
  Clock::time_point begin_ = Clock::now();
  std::atomic<int64_t> task_count_{0};
  std::mutex mutex_;  // Of all below.
  int descriptor_;    // -1: nothing is written any more.
  uint64_t bytes_ = 0;
  std::set<int> named_threads_;
};

// The span of a thread from its making to its end; nothing where the trace is null.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, std::string_view thread, std::string_view name)
      : trace_(trace), thread_(thread), name_(name) {
    if (trace_ != nullptr) begin_ = Trace::Clock::now();
  }
  ~TraceSpan() {
    if (trace_ != nullptr)
      trace_->add_span(thread_, name_, begin_, std::span(figures_).first(count_));
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  void rename(std::string_view name) { name_ = name; }
  // As many as there is room for.
  void add(std::string_view name, int64_t value) {
    if (count_ < figures_.size()) figures_[count_++] = {name, value};
  }

 private:
  Trace* trace_;
  std::string_view thread_, name_;
  Trace::Clock::time_point begin_;
  std::array<Trace::Figure, 4> figures_;
  size_t count_ = 0;
};

}  // namespace cairn
