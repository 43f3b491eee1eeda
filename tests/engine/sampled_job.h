// For tests: a job that answers a prompt of token ids, and the digest of all logits from which its
// tokens were chosen.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "draft/asked_drafter.h"
#include "engine/drafts/lookahead_drafter.h"
#include "engine/drafts/predictor_drafter.h"
#include "engine/drafts/text_drafter.h"
#include "engine/lane_batch.h"
#include "engine/schedule/job.h"
#include "grammar/matcher.h"
#include "sample/sampler.h"

namespace cairn::test {

struct Sampled {
  std::vector<Token> tokens;
  Sha256Digest digest{};
  PromptReport prompt;
  int64_t checked = 0, accepted = 0;  // Drafts.
  std::string drafts_off;             // Why the draft model gave up; empty: it did not.
  std::optional<Error> error;
  bool has_ended = false;
};

// What an answer has to look like, and the vocabulary that it is written in.
struct SampledForm {
  grammar::Grammar grammar;
  std::shared_ptr<const grammar::TokenTrie> tokens;
};

struct SampledRequest {
  std::vector<Token> prompt;
  std::vector<int32_t> message_starts = {};
  int32_t token_count = 1;  // At most: a form may be complete before.
  sample::SamplingParams sampling = {.temperature = 0};
  std::vector<AdapterUse> adapters = {};
  uint64_t tenant = 0;
  std::optional<SampledForm> form = std::nullopt;
  // The tokens that are chosen, for drafts: they are right, wrong or both, by the seed. 0: no
  // drafts.
  std::vector<Token> known = {};
  uint32_t draft_seed = 0;
  // Who drafts in their place; null: nobody.
  DraftModel* draft_model = nullptr;
  // Likewise; who breaks the rules of drafts is kept to them, as for any answer.
  std::function<std::unique_ptr<draft::Drafter>()> make_drafter = {};
  bool predicts = false;      // The engine's own predicting layer drafts.
  bool looks_ahead = false;   // What rows behind wrong drafts have said is drafted.
  bool finishes_turn = true;  // Otherwise what it computed goes to the prefix cache as it is.
};

class SampledJob final : public Job, public DraftedAnswer {
 public:
  // `result` must outlive the job.
  SampledJob(Engine* engine, SampledRequest request, Sampled* result)
      : lane_(engine),
        request_(std::move(request)),
        sampler_(request_.sampling),
        result_(result),
        vocabulary_count_(engine->size().vocabulary_count),
        random_(request_.draft_seed) {
    lane_.select(engine->select(request_.adapters).value().for_tenant(request_.tenant));
    if (request_.draft_model != nullptr) {
      drafter_ = make_model_drafter(request_.draft_model, &sampler_, request_.tenant);
    }
    if (request_.predicts) {
      auto drafter =
          std::make_unique<PredictorDrafter>(engine->predictor(), &sampler_, engine->tokenizer());
      reader_ = drafter.get();
      drafter_ = std::move(drafter);
    }
    if (request_.looks_ahead) {
      auto drafter = std::make_unique<LookaheadDrafter>();
      reader_ = drafter.get();
      drafter_ = std::move(drafter);
    }
    if (request_.make_drafter) asked_.emplace(request_.make_drafter(), nullptr);
    if (!request_.form) return;
    matcher_ = grammar::Matcher::build(request_.form->grammar, request_.form->tokens).value();
    state_ = matcher_->start();
  }

  Lane* lane() override { return &lane_; }
  memory::Variant variant() const override { return lane_.selection().variant(); }
  std::span<const Token> prompt() const override { return request_.prompt; }
  std::span<const int32_t> message_starts() const override { return request_.message_starts; }
  memory::ResumePlan plan() override {
    return lane_.plan_reading(request_.prompt, request_.message_starts);
  }
  Status start() override {
    CAIRN_TRY(result_->prompt, lane_.start(request_.prompt, request_.message_starts));
    return Ok{};
  }
  void choose() override {
    if (chosen_ || is_done()) return;
    digest_.add(std::as_bytes(lane_.logits()));
    chosen_ = sample();
  }
  bool chooses_alone() const override { return matcher_ != nullptr; }
  Status advance() override {
    choose();
    CAIRN_TRY(add());
    return is_done() ? Status(Ok{}) : lane_.push(result_->tokens.back());
  }
  DraftedAnswer* drafted() override {
    return request_.draft_seed > 0 || drafter_ != nullptr || asked_ ? this : nullptr;
  }
  // By turns all right, all wrong, right up to somewhere, and anything.
  std::span<const float> propose(int32_t count_max) override {
    drafts_.clear();
    count_max = std::min(count_max, lane_.draft_count_max());
    if (drafter_ != nullptr || asked_) return ask_drafter(count_max);
    const size_t known = result_->tokens.size();
    const uint32_t kind = uint32_t(random_() % 5);
    const size_t right = kind == 0 ? 64 : kind == 1 ? 0 : random_() % 8;
    for (size_t i = 0; i < size_t(std::max(count_max, 0)) && i < 1 + random_() % 20; ++i) {
      const bool is_right = i < right && known + i < request_.known.size();
      const Token next = is_right ? request_.known[known + i] : Token(int32_t(random_() % 384));
      drafts_.push_back(next);
    }
    reach_.assign(drafts_.size(), 1.0f);
    return reach_;
  }
  void check(int32_t count) override { lane_.draft(std::span(drafts_).first(size_t(count))); }
  int32_t take(const StepOutputs& outputs) override {
    const int32_t position = int32_t(lane_.whole_text().size()) - 1;
    lane_.begin_walk(outputs);
    for (;;) {
      choose();
      const std::optional<Token> draft = lane_.next_draft();
      if (!draft || !*chosen_ || **chosen_ != *draft) break;
      EXPECT_TRUE(add());
      if (is_done()) break;
      lane_.confirm_draft();
      ++result_->accepted;
    }
    result_->checked += outputs.count() - 1;
    const int32_t count = lane_.end_walk();
    if (reader_ != nullptr) reader_->take(position, outputs, count);
    return count;
  }
  void learn(double, double) override {}
  bool is_done() const override {
    return has_finished_ || result_->tokens.size() == size_t(request_.token_count);
  }
  bool is_blocked() const override { return is_blocked_; }
  void end(Status status) override {
    if (status && request_.finishes_turn) {
      status = lane_.finish_turn();
    } else if (lane_.sequence().length() > 0) {
      lane_.publish();
    }
    if (!status) result_->error = std::move(status).error();
    result_->digest = digest_.finish();
    result_->has_ended = true;
  }
  void block(bool is_blocked) { is_blocked_ = is_blocked; }

 private:
  std::span<const float> ask_drafter(int32_t count_max) {
    count_max = std::min(count_max, request_.token_count - int32_t(result_->tokens.size()) - 1);
    if (count_max <= 0) return {};
    const draft::View view{.text = lane_.whole_text(), .count_max = count_max};
    if (asked_) {
      if (asked_->off_reason().empty()) asked_->ask(view, vocabulary_count_);
      drafts_.assign(asked_->tokens().begin(), asked_->tokens().end());
      if (!asked_->off_reason().empty()) drafts_.clear();
      result_->drafts_off = asked_->off_reason();
    } else {
      draft::Draft draft;
      drafter_->propose(view, draft);
      drafts_ = std::move(draft.tokens);
      result_->drafts_off = drafter_->off_reason();
    }
    reach_.assign(drafts_.size(), 1.0f);
    return reach_;
  }
  Status add() {
    CAIRN_TRY(const Token token, *std::exchange(chosen_, std::nullopt));
    result_->tokens.push_back(token);
    if (matcher_ == nullptr) return Ok{};
    CAIRN_TRY(state_, matcher_->advance(state_, token));
    has_finished_ = request_.form->tokens->is_end(token) || matcher_->is_finished(state_);
    return Ok{};
  }
  Result<Token> sample() {
    if (matcher_ == nullptr) return lane_.sample(sampler_);
    CAIRN_TRY(const grammar::TokenMask mask, matcher_->mask(state_));
    return lane_.sample(sampler_, &mask);
  }

  Lane lane_;
  SampledRequest request_;
  sample::Sampler sampler_;
  Sampled* result_;
  int32_t vocabulary_count_;
  Sha256 digest_;
  std::optional<Result<Token>> chosen_;
  std::unique_ptr<grammar::Matcher> matcher_;  // Null: the answer is free.
  grammar::State state_{};
  bool is_blocked_ = false, has_finished_ = false;
  std::mt19937 random_;
  std::vector<Token> drafts_;
  std::vector<float> reach_;
  std::unique_ptr<draft::Drafter> drafter_;
  std::optional<draft::AskedDrafter> asked_;
  RowReader* reader_ = nullptr;
};

// What the request answers on an engine that nobody else uses, with the drafts of its draft model.
inline Sampled sampled_alone(Engine& engine, const SampledRequest& request) {
  Sampled result;
  SampledJob job(&engine, request, &result);
  EXPECT_TRUE(job.start());
  LaneBatch batch(&engine, true);
  while (!job.is_done()) {
    while (job.lane()->wants_rows()) {
      const bool is_drafted =
          (request.draft_model != nullptr || request.predicts || request.looks_ahead) &&
          !job.lane()->is_reading();
      EXPECT_TRUE(is_drafted ? batch.step(*job.lane(), job) : batch.step(*job.lane()));
    }
    const Status advanced = job.advance();
    EXPECT_TRUE(advanced) << (advanced ? "" : advanced.error().message);
    if (!advanced) break;
  }
  job.end(Ok{});
  return result;
}

}  // namespace cairn::test
