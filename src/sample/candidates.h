// The tokens that may still be sampled, with their logits. Starts as the whole vocabulary without
// copying it: masks, penalties and temperature are applied lazily during a pass; the remaining
// tokens are copied when a stage first narrows them. Never sorts a whole vocabulary. Invariants: no
// logit is NaN or -infinity (such tokens have no probability); +infinity counts as the largest
// finite number. Order, where there is one: likelier first, equal ones by id.
// Thread rule: belongs to one Sampler.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/ids.h"
#include "sample/passes.h"

namespace cairn::sample {

struct Candidate {
  Token token;
  float logit;
};

// One bit for each token, the lowest bit of the first word for token 0; set: allowed. Tokens past
// its end are forbidden.
using TokenMask = std::span<const uint64_t>;

// The order of candidates, likelier ones first.
inline bool is_before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

class Candidates {
 public:
  // Starts again with all tokens of `logits`, or those that `allowed` has; both must stay readable
  // meanwhile.
  void reset(std::span<const float> logits, const TokenMask* allowed = nullptr);

  bool empty() { return max_logit() < -kLargest; }
  float max_logit();  // -infinity where there is none.
  size_t vocabulary_count() const { return logits_.size(); }
  // Whether no stage has narrowed it to a list.
  bool is_whole() const { return is_whole_; }
  // Whether the mask has the token, if there is one.
  bool is_allowed(Token token) const;
  // The token's logit, or nothing if it is no candidate.
  std::optional<float> logit_of(Token token) const;

  // With max_logit() as reference: the probability of x is e^(x - max_logit()) / total.
  ExpSums exp_sums();
  ValueSums value_sums();

  // Keeps the k likeliest. REQUIRES: k > 0.
  void keep_top(size_t k);
  // Top-p: keeps the fewest likeliest tokens whose probabilities, among the candidates, add up to
  // `share`, and at least `min_keep`.
  void keep_nucleus(float share, size_t min_keep);
  // Keeps those whose logit is at least `floor`, and the `min_keep` likeliest. The likeliest always
  // stays.
  void keep_from(float floor, size_t min_keep);
  // Keeps the fewest tokens nearest to the logit `center` that together have more than `share`, and
  // at least `min_keep`.
  void keep_nearest(float center, float share, size_t min_keep);
  // All whose logit is at least `floor`, likeliest first.
  std::vector<Candidate> at_least(float floor);
  // The k likeliest, likeliest first; keeps all others.
  std::vector<Candidate> top(size_t k);

  // logit /= divisor. REQUIRES: divisor > 0.
  void divide(float divisor);
  // Replaces the logits of the tokens (ascending, each once) by change(index in `tokens`, logit).
  // Tokens that become NaN or -infinity are removed; tokens that are no candidates stay out.
  void change(std::span<const Token> tokens, FunctionRef<float(size_t, float)> change);
  // The candidates as a list, in no particular order; it may be changed and shortened.
  void change_list(FunctionRef<void(std::vector<Candidate>&)> change);
  std::span<const Candidate> list();

  // Visits the candidates in pieces of at most kChunk: walk(tokens, first, values, count), where
  // token i is tokens[i] or, if `tokens` is null, first + i. Values without probability may be
  // among them.
  void for_each_chunk(
      FunctionRef<void(const Candidate*, size_t first, const float* values, size_t count)> walk);

 private:
  static constexpr float kLargest = 3.4028234663852886e38f;

  const float* chunk_values(size_t first, size_t count, size_t& override_at);
  float whole_logit(size_t token) const;
  std::vector<Candidate>& select(size_t k, const float* center);  // Lies in found_.
  void list_from(float floor);
  void sort_first(size_t count);

  std::span<const float> logits_;
  std::optional<TokenMask> allowed_;
  std::vector<Candidate> changed_;  // Final logits of some tokens of the whole, by id.
  float divisor_ = 1;               // Of the others.
  std::vector<Candidate> list_;
  std::vector<Candidate> found_;  // Results of a pass; its capacity is reused from token to token.
  std::optional<float> max_logit_;
  bool is_whole_ = false;   // All of logits_; list_ is not filled yet.
  bool is_sorted_ = false;  // list_ has the order.
  float values_[kChunk];
  uint32_t indices_[kChunk];
};

// The likeliest token (ties: lowest id), or Token(-1) where no logit is a number above -infinity.
Token likeliest(std::span<const float> logits);

}  // namespace cairn::sample
