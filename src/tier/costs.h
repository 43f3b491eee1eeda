// What it costs to compute tokens and to fetch records, measured while both are done: a prefix is
// fetched where that is cheaper. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cairn::tier {

class Costs {
 public:
  using Seconds = std::chrono::duration<double>;

  // A step that computed so many tokens of prompts.
  void note_computed(int64_t tokens, Seconds time);
  // Bytes that arrived one after another, and the time they took. Small ones are round trips.
  void note_fetched(uint64_t bytes, Seconds time);
  void note_round_trip(Seconds time);

  // None: nothing was measured yet.
  std::optional<Seconds> computing(int64_t tokens) const;
  std::optional<Seconds> fetching(uint64_t bytes) const;
  double bytes_per_second() const;  // 0: not measured.

 private:
  mutable std::mutex mutex_;
  double token_seconds_ = 0, byte_seconds_ = 0, round_trip_seconds_ = 0;
};

// Whether a prefix is fetched, and how long that may take.
struct FetchDecision {
  bool is_worth_it = false;
  std::chrono::nanoseconds patience{0};
};
// `always`: even where computing is cheaper. What was not measured is tried.
FetchDecision decide_fetch(const Costs& costs, uint64_t bytes, int64_t tokens, bool always);

}  // namespace cairn::tier
