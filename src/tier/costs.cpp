// Averages that follow the newest measurements, and the rule that is made of them.
#include "tier/costs.h"

#include <algorithm>

#include "base/trace/moving_average.h"

namespace cairn::tier {
namespace {

// Of the newest measurement.
constexpr double kWeight = 0.2;
// Fewer tokens of a step, or bytes of a reply, say nothing of the pace.
constexpr int64_t kTokensMin = 16;
constexpr uint64_t kBytesMin = 65536;
// Fetching has to be so much cheaper, since it is known less well.
constexpr double kCheaper = 0.8;
// What was estimated takes so much longer now and then, and what takes longer still is not waited
// for; nor is more than half of what computing would take, where that leaves room for the estimate.
constexpr double kSlack = 1.25, kPatience = 2, kComputePart = 0.5;
// A thread may have to wait so long for a processor.
constexpr Costs::Seconds kPatienceMin(0.05), kPatienceUnknown(2);

}  // namespace

void Costs::note_computed(int64_t tokens, Seconds time) {
  if (tokens < kTokensMin) return;
  const std::lock_guard lock(mutex_);
  follow(token_seconds_, time.count() / double(tokens), kWeight);
}

void Costs::note_fetched(uint64_t bytes, Seconds time) {
  if (bytes < kBytesMin) return;
  const std::lock_guard lock(mutex_);
  follow(byte_seconds_, time.count() / double(bytes), kWeight);
}

void Costs::note_round_trip(Seconds time) {
  const std::lock_guard lock(mutex_);
  follow(round_trip_seconds_, time.count(), kWeight);
}

std::optional<Costs::Seconds> Costs::computing(int64_t tokens) const {
  const std::lock_guard lock(mutex_);
  if (token_seconds_ == 0) return std::nullopt;
  return Seconds(token_seconds_ * double(tokens));
}

std::optional<Costs::Seconds> Costs::fetching(uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (byte_seconds_ == 0) return std::nullopt;
  return Seconds(round_trip_seconds_ + byte_seconds_ * double(bytes));
}

double Costs::bytes_per_second() const {
  const std::lock_guard lock(mutex_);
  return byte_seconds_ == 0 ? 0 : 1 / byte_seconds_;
}

FetchDecision decide_fetch(const Costs& costs, uint64_t bytes, int64_t tokens, bool always) {
  const auto fetching = costs.fetching(bytes), computing = costs.computing(tokens);
  FetchDecision decision{.is_worth_it = true, .patience = {}};
  Costs::Seconds patience = kPatienceUnknown;
  if (!always && fetching && computing) {
    decision.is_worth_it = *fetching < kCheaper * *computing;
    patience =
        std::max(kSlack * *fetching, std::min(kPatience * *fetching, kComputePart * *computing));
    patience = std::max(patience, kPatienceMin);
  } else if (!always && computing) {
    patience = std::max(kComputePart * *computing, kPatienceMin);
  } else if (fetching) {
    patience = std::max(kPatience * *fetching, kPatienceUnknown);
  }
  decision.patience = std::chrono::duration_cast<std::chrono::nanoseconds>(patience);
  return decision;
}

}  // namespace cairn::tier
