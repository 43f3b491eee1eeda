// What the engine's thread sends to the calls on a conversation: events of an answer, and how a job
// has ended. Thread-safe. Its descriptor is readable while there is something to take.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "session/answer.h"

namespace cairn::capi {

struct AnswerEvent {
  std::vector<Token> tokens = {};
  std::vector<float> log_probabilities = {};  // One for each, or none at all.
  std::string text = {};
  std::optional<session::FinishReason> finish = {};  // The answer's end.
};

class Mailbox {
 public:
  static constexpr size_t kEventsMax = 256;  // Then the answer waits.

  // Errors: io: the system gives no descriptor.
  static Result<std::unique_ptr<Mailbox>> open();
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  int descriptor() const { return descriptor_; }

  // The engine's side.
  void post(AnswerEvent event);
  bool is_full() const;
  // The job has ended. `has_answer`: one that can be gone on with.
  void end(Status outcome, bool has_answer, std::optional<AnswerEvent> last = {});

  // The other side. A job begins: nothing of others is left.
  void begin();
  // There is no answer any more. REQUIRES: no job.
  void clear();
  std::optional<AnswerEvent> take();
  // Waits until there is an event, or the job has ended. Whether it came to that in time.
  bool wait(std::chrono::milliseconds longest);
  // The same, for the end alone.
  bool wait_for_end(std::chrono::milliseconds longest);
  bool has_ended() const;
  bool has_answer() const;
  // REQUIRES: it has ended. Once.
  Status take_outcome();

 private:
  explicit Mailbox(int descriptor) : descriptor_(descriptor) {}
  void show_news();

  const int descriptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<AnswerEvent> events_;
  Status outcome_ = Ok{};
  bool has_ended_ = true, is_told_ = true;  // Nobody is owed an outcome.
  bool has_answer_ = false;
  bool is_readable_ = false;
};

}  // namespace cairn::capi
