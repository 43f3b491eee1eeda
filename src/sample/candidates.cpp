// Narrowing a vocabulary with passes and heaps instead of sorting it.
#include "sample/candidates.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

#include "base/elementary.h"

namespace cairn::sample {

namespace {

// The invariants' view of a logit: NaN, which would break every comparison, becomes -infinity.
float usable(float logit) {
  if (std::isnan(logit)) return -std::numeric_limits<float>::infinity();
  return std::min(logit, FLT_MAX);
}

bool has_probability(float logit) {
  return logit >= -FLT_MAX;
}

// "Likelier", as a strict order of all candidates.
bool before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

bool after(const Candidate& a, const Candidate& b) {
  return before(b, a);
}

}  // namespace

Token likeliest(std::span<const float> logits) {
  size_t best = logits.size();
  float best_logit = -std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < logits.size(); ++i) {
    // A comparison with NaN is false, so NaN is never taken.
    if (logits[i] > best_logit) {
      best = i;
      best_logit = logits[i];
    }
  }
  return best == logits.size() ? Token(-1) : Token(best);
}

void Candidates::reset(std::span<const float> logits) {
  logits_ = logits;
  list_.clear();
  sorted_ = false;
  const Token best = likeliest(logits);
  whole_ = best != Token(-1);
  if (whole_) max_logit_ = usable(logits[size_t(best)]);
}

void Candidates::copy_from(float floor) {
  if (!whole_) return;
  whole_ = false;
  for (size_t i = 0; i < logits_.size(); ++i) {
    const float logit = usable(logits_[i]);
    if (logit >= floor && has_probability(logit)) list_.push_back({Token(i), logit});
  }
}

void Candidates::keep_top(int32_t k) {
  if (whole_) {
    // A heap of the best so far with the worst of them on top; nearly all tokens fail against it.
    whole_ = false;
    for (size_t i = 0; i < logits_.size(); ++i) {
      const Candidate candidate{Token(i), usable(logits_[i])};
      if (!has_probability(candidate.logit)) continue;
      if (list_.size() == size_t(k)) {
        if (!before(candidate, list_.front())) continue;
        std::pop_heap(list_.begin(), list_.end(), before);
        list_.back() = candidate;
      } else {
        list_.push_back(candidate);
      }
      std::push_heap(list_.begin(), list_.end(), before);
    }
    std::sort_heap(list_.begin(), list_.end(), before);
    sorted_ = true;
    return;
  }
  if (list_.size() <= size_t(k)) return;
  if (!sorted_) std::nth_element(list_.begin(), list_.begin() + k, list_.end(), before);
  list_.resize(size_t(k));
}

void Candidates::keep_nucleus(float share) {
  copy_from(-FLT_MAX);
  double total = 0;
  for (const Candidate& c : list_) total += double(elementary::exp(c.logit - max_logit_));
  const double wanted = double(share) * total;
  // Taken from a heap one after another, so that only what is kept gets sorted.
  if (!sorted_) std::make_heap(list_.begin(), list_.end(), after);
  double reached = 0;
  size_t kept = 0;
  while (kept < list_.size() && (kept == 0 || reached < wanted)) {
    if (!sorted_) std::pop_heap(list_.begin(), list_.end() - ptrdiff_t(kept), after);
    const size_t at = sorted_ ? kept : list_.size() - 1 - kept;
    reached += double(elementary::exp(list_[at].logit - max_logit_));
    ++kept;
  }
  if (!sorted_) std::reverse(list_.begin(), list_.end());
  list_.resize(kept);
  sorted_ = true;
}

void Candidates::keep_from(float floor) {
  floor = std::min(floor, max_logit_);
  if (whole_) return copy_from(floor);
  std::erase_if(list_, [floor](const Candidate& c) { return c.logit < floor; });
}

void Candidates::divide(float divisor) {
  copy_from(-FLT_MAX);
  // A tiny divisor may overflow; the largest numbers then tie, as they nearly do anyway.
  const auto divided = [divisor](float logit) {
    return std::clamp(logit / divisor, -FLT_MAX, FLT_MAX);
  };
  for (Candidate& c : list_) c.logit = divided(c.logit);
  max_logit_ = divided(max_logit_);
}

std::span<const Candidate> Candidates::list() {
  copy_from(-FLT_MAX);
  return list_;
}

}  // namespace cairn::sample
