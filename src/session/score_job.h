// How likely a text is, token by token, as a job of the scheduler. Thread rule: made on any thread;
// then that of Job.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/lane.h"
#include "engine/schedule/job.h"
#include "session/prompt_probabilities.h"

namespace cairn::session {

class ScoreJob final : public Job {
 public:
  using Done = std::function<void(Result<PromptProbabilities>)>;

  // `done` is called once, on the engine's thread. REQUIRES: the engine makes text; the text is not
  // empty.
  ScoreJob(Engine* engine, std::vector<Token> text, Done done)
      : engine_(engine), text_(std::move(text)), done_(std::move(done)) {}

  Lane* lane() override;
  memory::Variant variant() const override { return engine_->default_selection().variant(); }
  std::span<const Token> prompt() const override { return text_; }
  memory::ResumePlan plan() override { return lane()->plan_reading(text_); }
  Status start() override;
  Status advance() override;
  bool is_done() const override { return is_done_; }
  void end(Status status) override;

 private:
  Engine* engine_;
  std::vector<Token> text_;
  std::optional<PromptProbabilityReader> reader_;
  std::optional<Lane> lane_;  // Goes before the reader.
  bool is_done_ = false;
  Done done_;
};

}  // namespace cairn::session
