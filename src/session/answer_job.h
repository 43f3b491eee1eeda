// An answer as a job of the scheduler. It has a lane of its own, from the first call on the
// engine's thread on, and hands its events to a stream. Thread rule: made on any thread; then that
// of Job.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/tools.h"
#include "engine/engine.h"
#include "engine/schedule/job.h"
#include "grammar/matcher.h"
#include "sample/params.h"
#include "session/answer.h"
#include "session/answer_stream.h"
#include "session/completion.h"
#include "session/drafts/drafting.h"
#include "session/prompt_pins.h"
#include "session/receipt.h"

namespace cairn::session {

// What AnswerRequest refers to, owned.
struct AnswerOrder {
  std::vector<Token> prompt;  // Not empty.
  std::vector<int32_t> message_starts = {};
  std::vector<Token> answer_prefix = {};
  int32_t token_count_max = -1;
  std::shared_ptr<grammar::Matcher> matcher = nullptr;
  bool constrains_calls = false;
  const chat::ChatFormat* format = nullptr;  // The engine's, or null.
  std::vector<chat::Tool> tools = {};
  std::vector<std::string> stop = {};
  std::string prompt_end = {};
  int32_t reasoning_tokens_max = -1;
  sample::SamplingParams sampling = {};
  // Instead of the engine's default ones.
  std::optional<std::vector<AdapterUse>> adapters = std::nullopt;
  uint64_t tenant = 0;                                // Whose cache is used, alone; 0: everybody's.
  sample::SamplerState sampler = {};                  // Of the answer that is continued.
  std::optional<ReceiptForm> receipt = std::nullopt;  // Asks for a receipt, which tells this.
  bool computes_all = false;                          // Nothing of the prompt is reused.
  // Positive: the probabilities of the prompt's tokens are told, and so many likeliest ones beside
  // each. Then nothing of the prompt is reused either.
  int32_t prompt_probability_count = 0;
  // Beginnings of the prompt that stay in memory, where the context is not cut.
  std::vector<PromptPin> pins = {};
  DraftOrder drafts = {};
  // Set by anybody: the answer ends where it stands, once its prompt is read. Null: nobody does.
  std::shared_ptr<const std::atomic<bool>> wants_stop = nullptr;
};

// Refers to the order. `choices` are left out.
AnswerRequest request_of(const AnswerOrder& order);

class AnswerJob final : public Job {
 public:
  // REQUIRES: the engine has a tokenizer.
  // `pins` and `drafting` must outlive it; null: it keeps none, and has no drafts.
  AnswerJob(Engine* engine, AnswerOrder order, std::shared_ptr<AnswerStream> stream,
            PromptPins* pins = nullptr, Drafting* drafting = nullptr);
  ~AnswerJob() override;

  Lane* lane() override;
  memory::Variant variant() const override { return lane_->selection().variant(); }
  std::span<const Token> prompt() const override { return order_.prompt; }
  std::span<const int32_t> message_starts() const override { return order_.message_starts; }
  memory::ResumePlan plan() override;
  Status start() override;
  void choose() override { completion_->choose(); }
  bool chooses_alone() const override { return completion_->has_matcher(); }
  DraftedAnswer* drafted() override {
    return completion_->has_drafters() ? completion_.get() : nullptr;
  }
  Status advance() override;
  Status take_step(Status stepped) override;
  bool is_done() const override { return completion_ != nullptr && completion_->is_done(); }
  bool starts_slowly() const override { return !engine_->has_plans(lane_->selection()); }
  // A stop needs no reader.
  bool is_blocked() const override { return stream_->is_full() && !wants_stop(); }
  void end(Status status) override;

 private:
  bool wants_stop() const {
    return order_.wants_stop != nullptr && order_.wants_stop->load(std::memory_order_relaxed);
  }
  Status prepare_plans();
  Status tell_prompt();
  void keep_beginnings();

  Engine* engine_;
  PromptPins* pins_;
  Drafting* drafting_;
  AnswerOrder order_;
  std::shared_ptr<AnswerStream> stream_;
  std::optional<Lane> lane_;
  Status selected_ = Ok{};
  std::optional<PromptProbabilityReader> prompt_reader_;
  std::shared_ptr<const PromptProbabilities> prompt_probabilities_;
  int32_t pinned_tokens_ = 0;
  std::unique_ptr<ReceiptDraft> draft_;
  std::unique_ptr<Completion> completion_;
};

}  // namespace cairn::session
