// The tokens that may still be chosen, with their logits. Starts as all of a vocabulary without
// copying it; what is kept is copied when a stage first narrows it. Never sorts a whole vocabulary.
// Invariants: no logit is NaN or -infinity (such tokens have no probability); +infinity counts as
// the largest finite number. Order, where there is one: likelier first, equal ones by id.
// Thread rule: belongs to one Sampler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/ids.h"

namespace cairn::sample {

struct Candidate {
  Token token;
  float logit;
};

class Candidates {
 public:
  // Starts over with all tokens of `logits`, which must stay readable while this is used.
  void reset(std::span<const float> logits);

  bool empty() const { return list_.empty() && !whole_; }
  float max_logit() const { return max_logit_; }  // REQUIRES: not empty.

  // Keeps the k likeliest. REQUIRES: k > 0.
  void keep_top(int32_t k);
  // Keeps the fewest likeliest tokens whose probabilities, among those at hand, reach `share`.
  void keep_nucleus(float share);
  // Keeps those whose logit is at least `floor`. The likeliest always stays.
  void keep_from(float floor);
  // logit /= divisor. REQUIRES: divisor > 0.
  void divide(float divisor);

  // The candidates as a list, in no particular order. Valid until the next change.
  std::span<const Candidate> list();

 private:
  void copy_from(float floor);

  std::span<const float> logits_;
  std::vector<Candidate> list_;
  float max_logit_ = 0;
  bool whole_ = false;   // All of logits_; list_ is not filled yet.
  bool sorted_ = false;  // list_ has the order.
};

// The likeliest token (ties: lowest id), or Token(-1) where no logit is a number above -infinity.
Token likeliest(std::span<const float> logits);

}  // namespace cairn::sample
