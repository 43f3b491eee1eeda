// When something is asked again, and when no more: waits that double, or as long as a server asks
// for (Retry-After), and an end after some failures in a row. Thread rule: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "hub/transfers.h"

namespace cairn::hub {

struct PatienceOptions {
  int failures_max = 6;  // In a row.
  std::chrono::milliseconds wait_first{500}, wait_max{30'000};
  std::chrono::seconds asked_max{300};  // A server that asks for more is not waited for.
};

class Patience {
 public:
  explicit Patience(const PatienceOptions& options) : options_(options) {}

  // How long to wait after a failure; nothing: it was one too many. `now`: seconds since 1970, for
  // a Retry-After that is a date.
  std::optional<std::chrono::milliseconds> wait_after(const Head& head, int64_t now);
  // Something came: failures are counted anew.
  void succeed() { failure_count_ = 0; }
  int failure_count() const { return failure_count_; }

 private:
  PatienceOptions options_;
  int failure_count_ = 0;
};

// Answers that may be another one the next time: 408, 425, 429 and the 5xx of what is overloaded.
bool is_passing(int status);

}  // namespace cairn::hub
