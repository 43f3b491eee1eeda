// What it costs to compute tokens and to fetch records, measured while both are done: a prefix is
// fetched where that is cheaper. A token costs a + b × depth: the deeper it stands in its context,
// the more there is to look at. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cairn::tier {

class Costs {
 public:
  using Seconds = std::chrono::duration<double>;

  // A step that computed so many tokens of prompts, at this depth on average; none: not known.
  void note_computed(int64_t tokens, Seconds time, std::optional<double> depth = std::nullopt);
  // Bytes that arrived one after another, and the time they took. Small ones are round trips.
  void note_fetched(uint64_t bytes, Seconds time);
  void note_round_trip(Seconds time);

  // None: nothing was measured yet.
  // Of the tokens from position `begin` to `end`.
  std::optional<Seconds> computing(int64_t begin, int64_t end) const;
  std::optional<Seconds> fetching(uint64_t bytes) const;
  double bytes_per_second() const;  // 0: not measured.

 private:
  // How steps' seconds for a token go with their depths, of some fifty of them.
  struct Slope {
    int64_t count = 0;
    double depth = 0, seconds = 0;   // Means.
    double square = 0, product = 0;  // Of the depth's distances from its mean, and of both.

    void add(double its_depth, double its_seconds);
    double value() const;  // Seconds for a token and one of depth; never negative.
  };
  double slope() const;

  mutable std::mutex mutex_;
  // A token's at the depth beside it, which follow the newest ones.
  double token_seconds_ = 0, depth_ = 0;
  Slope slope_;
  double byte_seconds_ = 0, round_trip_seconds_ = 0;
};

// What could be fetched, in place of computing the tokens from `begin` to `end`.
struct Fetch {
  uint64_t bytes = 0;
  int64_t begin = 0, end = 0;
  bool always = false;                 // Even where computing is cheaper.
  Costs::Seconds patience_unknown{2};  // Where nothing was measured yet.
};

// Whether a prefix is fetched, and how long that may take.
struct FetchDecision {
  bool is_worth_it = false;
  std::chrono::nanoseconds patience{0};
};
// What was not measured is tried.
FetchDecision decide_fetch(const Costs& costs, const Fetch& fetch);

}  // namespace cairn::tier
