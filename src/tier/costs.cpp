// Averages that follow the newest measurements, and the rule that is made of them.
#include "tier/costs.h"

#include <algorithm>

#include "base/trace/moving_average.h"

namespace cairn::tier {
namespace {

// Of the newest measurement.
constexpr double kWeight = 0.2;
// Of the newest one for what goes with the depth: a prompt's depths have to be seen together.
constexpr double kSlopeWeight = 0.02;
// Depths that differ less than this say nothing of what goes with them.
constexpr double kDepthSpread = 256;
// A step that takes longer than so many times what was expected counts as that: something else
// happened.
constexpr double kSlowest = 2;
// Fewer tokens of a step, or bytes of a reply, say nothing of the pace.
constexpr int64_t kTokensMin = 16;
constexpr uint64_t kBytesMin = 65536;
// Fetching has to be so much cheaper, since it is known less well.
constexpr double kCheaper = 0.8;
// What was estimated takes so much longer where others are served beside it, and what takes longer
// still is not waited for; nor is more than half of what computing would take, where that leaves
// room for the estimate. Long prompts lose the most where it is given up too soon: with twice the
// estimate a simulated fleet that lends reuses four points less (bench/cluster_simulation).
constexpr double kSlack = 1.25, kPatience = 4, kComputePart = 0.5;
// A thread may have to wait so long for a processor.
constexpr Costs::Seconds kPatienceMin(0.05);

}  // namespace

// Exponentially weighted means and products; the first ones count alike.
void Costs::Slope::add(double its_depth, double its_seconds) {
  ++count;
  const double weight = std::max(kSlopeWeight, 1 / double(count));
  const double from_depth = its_depth - depth, from_seconds = its_seconds - seconds;
  depth += weight * from_depth;
  seconds += weight * from_seconds;
  square += weight * ((1 - weight) * from_depth * from_depth - square);
  product += weight * ((1 - weight) * from_depth * from_seconds - product);
}

double Costs::Slope::value() const {
  return std::max(0.0, product / (square + kDepthSpread * kDepthSpread));
}

// No token costs less than nothing, the first one either.
double Costs::slope() const {
  return depth_ == 0 ? slope_.value() : std::min(slope_.value(), token_seconds_ / depth_);
}

void Costs::note_computed(int64_t tokens, Seconds time, std::optional<double> depth) {
  if (tokens < kTokensMin) return;
  const std::lock_guard lock(mutex_);
  const double seconds = time.count() / double(tokens);
  const double place = depth.value_or(depth_);
  const bool is_first = token_seconds_ == 0;
  // As the newest ones would have it here: a deep step is no slow one.
  const double expected = is_first ? seconds : token_seconds_ + slope() * (place - depth_);
  const double least = kSlowest * 0.5 * token_seconds_;
  const double counted =
      is_first ? seconds : std::min(seconds, std::max(kSlowest * expected, least));
  if (depth) slope_.add(place, counted);
  depth_ += (is_first ? 1 : kWeight) * (place - depth_);
  token_seconds_ = is_first ? seconds : token_seconds_ + kWeight * (counted - token_seconds_);
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

std::optional<Costs::Seconds> Costs::computing(int64_t begin, int64_t end) const {
  const std::lock_guard lock(mutex_);
  if (token_seconds_ == 0) return std::nullopt;
  const double middle = 0.5 * double(begin + end);
  return Seconds(double(end - begin) * (token_seconds_ + slope() * (middle - depth_)));
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

FetchDecision decide_fetch(const Costs& costs, const Fetch& fetch) {
  const auto fetching = costs.fetching(fetch.bytes);
  const auto computing = costs.computing(fetch.begin, fetch.end);
  FetchDecision decision{.is_worth_it = true, .patience = {}};
  Costs::Seconds patience = fetch.patience_unknown;
  if (!fetch.always && fetching && computing) {
    decision.is_worth_it = *fetching < kCheaper * *computing;
    patience =
        std::max(kSlack * *fetching, std::min(kPatience * *fetching, kComputePart * *computing));
    patience = std::max(patience, kPatienceMin);
  } else if (!fetch.always && computing) {
    patience = std::max(kComputePart * *computing, kPatienceMin);
  } else if (fetching) {
    patience = std::max(kPatience * *fetching, fetch.patience_unknown);
  }
  decision.patience = std::chrono::duration_cast<std::chrono::nanoseconds>(patience);
  return decision;
}

}  // namespace cairn::tier
