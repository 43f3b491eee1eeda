// A runtime for tests: a chain of hashes over the tokens stands for the model, so that every
// difference of tokens, and where it is so made also of chunks, is one of the logits. It can be
// made as weak as runtimes are. Thread rule: as runtimes; switches are set before it is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtimes/runtime.h"

namespace cairn::test {

struct FakeSwitches {
  uint32_t capabilities = runtimes::kRewinds | runtimes::kSnapshots;
  runtimes::Exactness claimed = runtimes::Exactness::replay;
  bool depends_on_chunks = true;  // Else the bits are the same whatever the chunks.
  bool has_lossy_snapshots = false;
  bool cancels_late = false;  // The next append() ends, instead of that which runs.
  int fails_at = -1;          // The append(), counted from 0, that fails.
  bool loses_all_on_failure = false;
  int32_t vocabulary_count = 16;
  int32_t context_tokens = 256;
};

class FakeRuntime final : public runtimes::LoadedRuntime {
 public:
  explicit FakeRuntime(FakeSwitches given) : switches(given) {
    claims_ = {given.capabilities, given.claimed, "hashes"};
  }
  const runtimes::Claims& claims() const override { return claims_; }
  int32_t vocabulary_count() const override { return switches.vocabulary_count; }
  int32_t context_tokens() const override { return switches.context_tokens; }
  size_t weight_bytes() const override { return 0; }
  Result<std::unique_ptr<runtimes::RuntimeSession>> open_session() override;

  FakeSwitches switches;
  int append_count = 0;
  size_t token_count = 0;             // Read in all.
  std::atomic<bool> is_slow = false;  // Each append() waits until it is cancelled.

 private:
  runtimes::Claims claims_;
};

class FakeSession final : public runtimes::RuntimeSession {
 public:
  explicit FakeSession(FakeRuntime* runtime)
      : runtime_(runtime), row_(size_t(runtime->vocabulary_count())), peaks_(kPeaks) {}

  Result<std::span<const float>> append(std::span<const Token> tokens) override {
    FakeSwitches& switches = runtime_->switches;
    if (switches.cancels_late && is_cancelled_.exchange(false)) {
      return fail(ErrorCode::cancelled, "cancelled");
    }
    while (runtime_->is_slow) {
      if (is_cancelled_.exchange(switches.cancels_late)) {
        return fail(ErrorCode::cancelled, "cancelled");
      }
      std::this_thread::yield();
    }
    if (runtime_->append_count++ == switches.fails_at) {
      if (switches.loses_all_on_failure) states_ = {kFirst};
      return fail(ErrorCode::io, "the fake fails");
    }
    runtime_->token_count += tokens.size();
    for (const Token token : tokens) {
      const uint64_t size = switches.depends_on_chunks ? tokens.size() : 1;
      states_.push_back(mixed(states_.back() ^ (uint64_t(index_of(token)) + 1) ^ (size << 32)));
    }
    // Some floats of the row, and zeros: a large vocabulary takes no longer.
    for (const size_t peak : peaks_) row_[peak] = 0;
    for (uint64_t index = 0; index < kPeaks; ++index) {
      const uint64_t bits = mixed(states_.back() + index);
      peaks_[index] = row_.size() <= kPeaks ? index % row_.size() : (bits & 0xFFFFFF) % row_.size();
      row_[peaks_[index]] = float(bits >> 40) / 1024.0f;
    }
    return std::span<const float>(row_);
  }
  size_t length() const override { return states_.size() - 1; }
  Status rewind(size_t position) override {
    if (position > 0 && (runtime_->switches.capabilities & runtimes::kRewinds) == 0) {
      return fail(ErrorCode::unsupported, "the fake cannot rewind");
    }
    states_.resize(position + 1);
    return Ok{};
  }
  Result<std::shared_ptr<const runtimes::RuntimeState>> snapshot() override {
    if ((runtime_->switches.capabilities & runtimes::kSnapshots) == 0) {
      return fail(ErrorCode::unsupported, "the fake has no snapshots");
    }
    auto made = std::make_shared<State>();
    made->states = states_;
    if (runtime_->switches.has_lossy_snapshots) made->states.back() &= ~uint64_t(0xFF);
    return std::shared_ptr<const runtimes::RuntimeState>(std::move(made));
  }
  Status restore(const runtimes::RuntimeState& state) override {
    states_ = static_cast<const State&>(state).states;
    return Ok{};
  }
  void cancel() override { is_cancelled_ = true; }

 private:
  static constexpr size_t kPeaks = 16;
  static constexpr uint64_t kFirst = 0x9E3779B97F4A7C15u;
  struct State final : runtimes::RuntimeState {
    size_t bytes() const override { return states.size() * sizeof(uint64_t); }
    std::vector<uint64_t> states;
  };
  static uint64_t mixed(uint64_t value) {
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
  }

  FakeRuntime* runtime_;
  std::vector<uint64_t> states_ = {kFirst};  // Behind each token.
  std::vector<float> row_;
  std::vector<size_t> peaks_;  // Of the row.
  std::atomic<bool> is_cancelled_ = false;
};

inline Result<std::unique_ptr<runtimes::RuntimeSession>> FakeRuntime::open_session() {
  return std::unique_ptr<runtimes::RuntimeSession>(std::make_unique<FakeSession>(this));
}

}  // namespace cairn::test
