// Whether something that fails is asked again: after a few failures within a short time it is left
// alone for a while, then for twice as long, so that what is down costs nothing. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <random>

namespace cairn::tier {

class Breaker {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kFailures = 5;
  static constexpr std::chrono::seconds kWithin{10};
  static constexpr std::chrono::seconds kPauseMin{5}, kPauseMax{60};
  static constexpr double kJitter = 0.1;  // Of a pause: machines do not come back all at once.
  // What said something wrong so often within that time is not asked for as long.
  static constexpr size_t kRefusals = 3;
  static constexpr std::chrono::minutes kBlocked{10};

  // Opens after so many failures.
  explicit Breaker(uint64_t seed, size_t failures_max = kFailures)
      : random_(seed), failures_max_(failures_max) {}

  // Whether it may be asked. After a pause, one may: the others wait for what becomes of that.
  bool admits(Clock::time_point now = Clock::now());
  void note_success();
  // It has answered, and what it shall deliver is still to come: others may ask, and what failed
  // before still counts.
  void end_trial();
  // Not of what was asked before a pause began, and heard in it.
  void note_failure(Clock::time_point now = Clock::now());
  // It said something wrong. True: too often, and nobody asks from now on.
  bool note_refusal(Clock::time_point now = Clock::now());
  // Nobody asks for so long, whatever else happens.
  void block(std::chrono::seconds time, Clock::time_point now = Clock::now());
  bool is_open(Clock::time_point now = Clock::now()) const;
  uint64_t opened() const;  // So many times.

 private:
  void pause(Clock::time_point now);

  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  size_t failures_max_;
  std::deque<Clock::time_point> failures_, refusals_;
  Clock::time_point open_until_{}, blocked_until_{};
  std::chrono::seconds pause_{0};  // The last one; zero: it has recovered since.
  bool is_on_trial_ = false;
  uint64_t opened_ = 0;
};

}  // namespace cairn::tier
