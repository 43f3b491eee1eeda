// An answer on its way from the engine's thread to whoever asked for it. Thread-safe: one side
// adds, the other takes, and either waits for more or is told of it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "chat/output_event.h"
#include "engine/lane.h"
#include "sample/log_probabilities.h"
#include "session/answer.h"

namespace cairn::session {

// What has come of an answer since it was last asked for.
struct AnswerPiece {
  std::vector<chat::OutputEvent> events;
  // Of the tokens whose text is in the events, or is told otherwise, where the sampler's parameters
  // ask for them.
  std::vector<sample::LogProbabilities> probabilities;
  std::vector<Token> tokens;  // Some of the last ones may have had no part in the events yet.
  // The prompt is being read; until then the answer waits for others.
  std::optional<PromptReport> prompt;
  // Where the order asks for them: once, when the prompt is read.
  std::shared_ptr<const PromptProbabilities> prompt_probabilities;
  bool has_ended = false;  // wait() does not wait any more.
};

class AnswerStream {
 public:
  // `on_taken` is called, on the reader's thread, when there is room again; not once the answer has
  // ended. It must not use the stream.
  explicit AnswerStream(std::function<void()> on_taken = {}) : on_taken_(std::move(on_taken)) {}

  // The engine's side. Nothing is lost: who adds asks is_full() first, and makes no more then; what
  // ends the answer has room.
  void begin(const PromptReport& prompt);
  void tell_prompt(std::shared_ptr<const PromptProbabilities> probabilities);
  void add(std::vector<chat::OutputEvent> events,
           std::vector<sample::LogProbabilities> probabilities = {},
           std::span<const Token> tokens = {});
  void finish(Result<Answer> answer);
  bool is_full() const;

  // The reader's side. Waits for events; none, once the answer has ended.
  std::vector<chat::OutputEvent> next();
  // What there is now; instead of next(), for who does not wait.
  AnswerPiece take();
  // From now on calls `on_change` when take() has more; none: no longer, and once this has returned
  // it is not being called. It must not use the stream, and is called on any thread.
  void listen(std::function<void()> on_change);
  // Waits for the answer's end; events that were not taken are left out. Called once.
  Result<Answer> wait();

 private:
  static constexpr size_t kBytesMax = size_t(1) << 20;  // Of text that nobody has taken.

  void tell();
  void make_room();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> on_taken_, on_change_;
  std::vector<chat::OutputEvent> events_;
  std::vector<sample::LogProbabilities> probabilities_;
  std::vector<Token> tokens_;
  std::optional<PromptReport> prompt_;
  std::shared_ptr<const PromptProbabilities> prompt_probabilities_;
  size_t bytes_ = 0;
  bool takes_all_ = false;  // The reader waits for the end only.
  std::optional<Result<Answer>> answer_;
};

}  // namespace cairn::session
