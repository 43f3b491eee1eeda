// An answer on its way from the engine's thread to whoever asked for it. Thread-safe: one side
// adds, the other takes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "chat/output_event.h"
#include "session/answer.h"

namespace cairn::session {

class AnswerStream {
 public:
  // `on_taken` is called, on the reader's thread, when there is room again; not once the answer has
  // ended. It must not use the stream.
  explicit AnswerStream(std::function<void()> on_taken = {}) : on_taken_(std::move(on_taken)) {}

  // The engine's side. Nothing is lost: who adds asks is_full() first, and makes no more then.
  void add(std::vector<chat::OutputEvent> events);
  void finish(Result<Answer> answer);
  bool is_full() const;

  // The reader's side. Waits for events; none, once the answer has ended.
  std::vector<chat::OutputEvent> next();
  // Waits for the answer's end; events that were not taken are left out. Called once.
  Result<Answer> wait();

 private:
  static constexpr size_t kBytesMax = size_t(1) << 20;  // Of text that nobody has taken.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> on_taken_;
  std::vector<chat::OutputEvent> events_;
  size_t bytes_ = 0;
  bool takes_all_ = false;  // The reader waits for the end only.
  std::optional<Result<Answer>> answer_;
};

}  // namespace cairn::session
