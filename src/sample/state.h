// The memory of an adaptive stage (mirostat, adaptive_p): two numbers for each sampled token, kept
// by position. So it is a function of the sequence: a rewind drops the numbers of later tokens, and
// so does a token that replaces another. A value: a snapshot copies it. Thread rule: belongs to one
// Sampler.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace cairn::sample {

struct StageMemory {
  float first = 0;
  float second = 0;
};

class SamplerState {
 public:
  struct Step {
    int32_t position;
    Token token;
    StageMemory memory;
  };
  SamplerState() = default;
  // REQUIRES: positions ascend.
  explicit SamplerState(std::vector<Step> steps) : steps_(std::move(steps)) {}

  // The memory before `position`, or null if there is none. Drops the numbers of later tokens, and
  // of tokens that differ from those in `history`.
  const StageMemory* before(int32_t position, std::span<const Token> history) {
    size_t kept = 0;
    while (kept < steps_.size() && steps_[kept].position < position &&
           is_in(steps_[kept], history)) {
      ++kept;
    }
    steps_.resize(kept);
    return kept == 0 ? nullptr : &steps_.back().memory;
  }
  // REQUIRES: before(position) was called last.
  void record(int32_t position, Token token, StageMemory memory) {
    steps_.push_back({position, token, memory});
  }
  std::span<const Step> steps() const { return steps_; }  // By position.
  size_t size() const { return steps_.size(); }

 private:
  static bool is_in(const Step& step, std::span<const Token> history) {
    const size_t at = size_t(step.position);
    return at >= history.size() || history[at] == step.token;
  }
  std::vector<Step> steps_;
};

}  // namespace cairn::sample
