// For benchmarks: a job that answers a prompt of token ids, and when each token came.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/schedule/job.h"
#include "sample/sampler.h"

namespace cairn::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct TimedAnswer {
  std::vector<Token> tokens;
  Clock::time_point asked;
  std::vector<Clock::time_point> times;  // Of each token.
  std::optional<Error> error;
  bool has_ended = false;

  double first_wait() const { return seconds_between(asked, times.front()); }
  // Seconds between a token and the one before, of tokens from `first` (at least 1) on.
  std::vector<double> gaps(size_t first = 1) const {
    std::vector<double> gaps;
    for (size_t at = first; at < times.size(); ++at) {
      gaps.push_back(seconds_between(times[at - 1], times[at]));
    }
    return gaps;
  }
};

struct TimedRequest {
  std::vector<Token> prompt;
  std::vector<int32_t> message_starts = {};
  int32_t token_count = 1;
  uint64_t seed = 0;
};

class TimedJob final : public Job {
 public:
  // `answer` must outlive the job.
  TimedJob(Engine* engine, TimedRequest request, TimedAnswer* answer)
      : lane_(engine),
        request_(std::move(request)),
        sampler_({.seed = request_.seed}),
        answer_(answer) {
    answer_->asked = Clock::now();
  }

  Lane* lane() override { return &lane_; }
  memory::Variant variant() const override { return lane_.selection().variant(); }
  std::span<const Token> prompt() const override { return request_.prompt; }
  memory::ResumePlan plan() override {
    return lane_.plan_reading(request_.prompt, request_.message_starts);
  }
  Status start() override {
    CAIRN_TRY(lane_.start(request_.prompt, request_.message_starts));
    return Ok{};
  }
  void choose() override {
    if (!chosen_) chosen_ = lane_.sample(sampler_);
  }
  Status advance() override {
    choose();
    CAIRN_TRY(const Token token, *std::exchange(chosen_, std::nullopt));
    answer_->times.push_back(Clock::now());
    answer_->tokens.push_back(token);
    return lane_.push(token);  // The last one too: what follows goes on behind it.
  }
  bool is_done() const override {
    return answer_->tokens.size() == size_t(request_.token_count) && !lane_.wants_rows();
  }
  void end(Status status) override {
    answer_->has_ended = true;
    if (status) status = lane_.finish_turn();
    if (!status) answer_->error = std::move(status).error();
  }

 private:
  Lane lane_;
  TimedRequest request_;
  sample::Sampler sampler_;
  TimedAnswer* answer_;
  std::optional<Result<Token>> chosen_;
};

}  // namespace cairn::bench
