// For tests: a job that answers a prompt of token ids, and the digest of all logits from which its
// tokens were chosen.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "engine/job.h"
#include "sample/sampler.h"

namespace cairn::test {

struct Sampled {
  std::vector<Token> tokens;
  Sha256Digest digest{};
  PromptReport prompt;
  std::optional<Error> error;
  bool has_ended = false;
};

struct SampledRequest {
  std::vector<Token> prompt;
  std::vector<int32_t> message_starts = {};
  int32_t token_count = 1;
  sample::SamplingParams sampling = {.temperature = 0};
  std::optional<Selection> selection = std::nullopt;
};

class SampledJob final : public Job {
 public:
  // `result` must outlive the job.
  SampledJob(Engine* engine, SampledRequest request, Sampled* result)
      : lane_(engine), request_(std::move(request)), sampler_(request_.sampling), result_(result) {
    if (request_.selection) lane_.select(*request_.selection);
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
    if (chosen_) return;
    digest_.add(std::as_bytes(lane_.logits()));
    chosen_ = lane_.sample(sampler_);
  }
  Status advance() override {
    choose();
    CAIRN_TRY(const Token token, *std::exchange(chosen_, std::nullopt));
    result_->tokens.push_back(token);
    return is_done() ? Status(Ok{}) : lane_.push(token);
  }
  bool is_done() const override { return result_->tokens.size() == size_t(request_.token_count); }
  bool is_blocked() const override { return is_blocked_; }
  void end(Status status) override {
    result_->has_ended = true;
    result_->digest = digest_.finish();
    if (!status) result_->error = std::move(status).error();
    if (lane_.sequence().length() > 0) lane_.publish();
  }
  void block(bool is_blocked) { is_blocked_ = is_blocked; }

 private:
  Lane lane_;
  SampledRequest request_;
  sample::Sampler sampler_;
  Sampled* result_;
  Sha256 digest_;
  std::optional<Result<Token>> chosen_;
  bool is_blocked_ = false;
};

}  // namespace cairn::test
