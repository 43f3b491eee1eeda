// What those who compute send to the calls on a conversation: events of an answer, and how a job
// has ended. Thread-safe. Its descriptor is readable while something of an answer in the background
// is to be taken. Events are exchanged, not copied: in the long run nothing is allocated.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/border.h"
#include "session/answer.h"

namespace cairn::capi {

struct AnswerEnd {
  session::FinishReason finish;
  int32_t drafted = 0, accepted = 0;  // Tokens.
};

struct AnswerEvent {
  std::vector<Token> tokens = {};
  std::vector<float> log_probabilities = {};  // One for each, or none at all.
  std::string text = {};
  std::optional<AnswerEnd> end = {};

  void clear() {
    tokens.clear();
    log_probabilities.clear();
    text.clear();
    end.reset();
  }
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

  // The side of those who compute. The event is another one afterwards.
  void post(AnswerEvent& event);
  bool is_full() const;
  // The job has ended, and with it the answer where there is an `end`. `has_answer`: there is one
  // that can be gone on with.
  void end(Answer outcome, bool has_answer, std::optional<AnswerEnd> end = {});

  // The other side. A job begins, in the background or not: nothing of others is left.
  void begin(bool is_background = false);
  // There is no answer any more. REQUIRES: no job.
  void clear();
  // Whether there was one.
  bool take(AnswerEvent& event);
  // Waits until there is an event, or the job has ended. Whether it came to that in time.
  bool wait(std::chrono::milliseconds longest);
  // The same, for the end alone.
  bool wait_for_end(std::chrono::milliseconds longest);
  bool has_ended() const;
  bool has_answer() const;
  // REQUIRES: it has ended. Once.
  Answer take_outcome();

 private:
  explicit Mailbox(int descriptor) : descriptor_(descriptor) {}
  AnswerEvent& add();
  void show_news();

  const int descriptor_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<AnswerEvent> events_ = std::vector<AnswerEvent>(4);  // A ring.
  size_t first_ = 0, count_ = 0;
  Answer outcome_;
  bool has_ended_ = true, is_told_ = true;  // Nobody is owed an outcome.
  bool has_answer_ = false;
  bool is_background_ = false;
  bool is_readable_ = false;
};

}  // namespace cairn::capi
