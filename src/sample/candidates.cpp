// Narrowing a vocabulary with passes over pieces of it, and lists of what the passes find.
#include "sample/candidates.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/elementary.h"

namespace cairn::sample {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
// With fewer candidates than this the list of a selection is cut down too often.
constexpr size_t kSelectionMin = 256;

// The invariants' view of a logit: NaN, which would break every comparison, becomes -infinity.
float usable(float logit) {
  if (std::isnan(logit)) return kNone;
  return std::min(logit, FLT_MAX);
}

bool has_probability(float logit) {
  return logit >= -FLT_MAX;
}

float divided(float logit, float divisor) {
  if (divisor == 1 || !has_probability(logit)) return logit;
  return std::clamp(logit / divisor, -FLT_MAX, FLT_MAX);
}

// The next number below, so that "above it" is "at least x".
float just_below(float x) {
  if (x == 0) return -std::numeric_limits<float>::denorm_min();
  return std::bit_cast<float>(std::bit_cast<int32_t>(x) + (x > 0 ? -1 : 1));
}

bool is_after(const Candidate& a, const Candidate& b) {
  return is_before(b, a);
}

// The k first of the order, in no order; the last of them is at k - 1.
void cut(std::vector<Candidate>& list, size_t k) {
  if (list.size() <= k) return;
  std::nth_element(list.begin(), list.begin() + ptrdiff_t(k) - 1, list.end(), is_before);
  list.resize(k);
}

}  // namespace

Token likeliest(std::span<const float> logits) {
  const Passes& loops = passes();
  float best = kNone;
  size_t best_chunk = 0;
  for (size_t first = 0; first < logits.size(); first += kChunk) {
    const size_t count = std::min(kChunk, logits.size() - first);
    const float largest = loops.largest(logits.data() + first, count);
    if (largest > best) {
      best = largest;
      best_chunk = first;
    }
  }
  if (!has_probability(best)) return Token(-1);
  size_t token = best_chunk;
  while (usable(logits[token]) != best) ++token;
  return Token(token);
}

void Candidates::reset(std::span<const float> logits, const TokenMask* allowed) {
  logits_ = logits;
  allowed_.reset();
  if (allowed != nullptr) allowed_ = *allowed;
  changed_.clear();
  divisor_ = 1;
  list_.clear();
  max_logit_.reset();
  is_whole_ = true;
  is_sorted_ = false;
}

// The logits of tokens from `first` on as they are now, or null where the mask forbids them all.
// `change_at`: the first of changed_ that may lie here; moves to the first behind.
const float* Candidates::chunk_values(size_t first, size_t count, size_t& change_at) {
  const float* values = logits_.data() + first;
  size_t change = change_at;
  while (change_at < changed_.size() && size_t(index_of(changed_[change_at].token)) < first + count)
    ++change_at;
  uint64_t words[kChunk / 64];
  bool is_partial = false;
  if (allowed_) {
    uint64_t any = 0, all = ~uint64_t(0);
    for (size_t k = 0; k < kChunk / 64; ++k) {
      const size_t at = first / 64 + k;
      words[k] = at < allowed_->size() ? (*allowed_)[at] : 0;
      any |= words[k];
      all &= words[k];
    }
    if (any == 0) return nullptr;
    is_partial = all != ~uint64_t(0);
  }
  if (divisor_ != 1) {
    passes().divide(values, count, divisor_, values_);
  } else if (is_partial || change < change_at) {
    std::copy_n(values, count, values_);
  } else {
    return values;
  }
  for (; change < change_at; ++change) {
    values_[size_t(index_of(changed_[change].token)) - first] = changed_[change].logit;
  }
  if (is_partial) passes().keep_allowed(values_, count, words, values_);
  return values_;
}

void Candidates::for_each_chunk(
    FunctionRef<void(const Candidate*, size_t, const float*, size_t)> walk) {
  const size_t total = is_whole_ ? logits_.size() : list_.size();
  size_t change_at = 0;
  for (size_t first = 0; first < total; first += kChunk) {
    const size_t count = std::min(kChunk, total - first);
    if (is_whole_) {
      const float* values = chunk_values(first, count, change_at);
      if (values != nullptr) walk(nullptr, first, values, count);
    } else {
      for (size_t i = 0; i < count; ++i) values_[i] = list_[first + i].logit;
      walk(list_.data() + first, first, values_, count);
    }
  }
}

bool Candidates::is_allowed(Token token) const {
  if (!allowed_) return true;
  const size_t at = size_t(index_of(token));
  return at / 64 < allowed_->size() && ((*allowed_)[at / 64] >> (at % 64) & 1) != 0;
}

float Candidates::whole_logit(size_t token) const {
  if (token >= logits_.size() || !is_allowed(Token(token))) return kNone;
  const auto at = std::lower_bound(
      changed_.begin(), changed_.end(), token,
      [](const Candidate& c, size_t id) { return size_t(index_of(c.token)) < id; });
  if (at != changed_.end() && size_t(index_of(at->token)) == token) return at->logit;
  return divided(usable(logits_[token]), divisor_);
}

std::optional<float> Candidates::logit_of(Token token) const {
  if (is_whole_) {
    const float logit = whole_logit(size_t(index_of(token)));
    return has_probability(logit) ? std::optional(logit) : std::nullopt;
  }
  const auto at = std::find_if(list_.begin(), list_.end(),
                               [token](const Candidate& c) { return c.token == token; });
  return at == list_.end() ? std::nullopt : std::optional(at->logit);
}

float Candidates::max_logit() {
  if (max_logit_) return *max_logit_;
  float best = kNone;
  for_each_chunk([&](const Candidate*, size_t, const float* values, size_t count) {
    best = std::max(best, passes().largest(values, count));
  });
  max_logit_ = best;
  return best;
}

ExpSums Candidates::exp_sums() {
  ExpSums sums;
  const float reference = max_logit();
  for_each_chunk([&](const Candidate*, size_t, const float* values, size_t count) {
    const ExpSums part = passes().exp_sums(values, count, reference);
    sums.total += part.total;
    sums.weighted += part.weighted;
  });
  return sums;
}

ValueSums Candidates::value_sums() {
  ValueSums sums;
  const float reference = max_logit();
  for_each_chunk([&](const Candidate*, size_t, const float* values, size_t count) {
    const ValueSums part = passes().value_sums(values, count, reference);
    sums.total += part.total;
    sums.squares += part.squares;
    sums.count += part.count;
  });
  return sums;
}

// The k best of all: by logit, or by nearness to a logit; best first, with their scores as logits.
// One pass that keeps the best so far, against the worst of which nearly all tokens fail.
std::vector<Candidate>& Candidates::select(size_t k, const float* center) {
  std::vector<Candidate>& best = found_;
  best.clear();
  const size_t room = std::max(2 * k, kSelectionMin);
  best.reserve(std::min(room, (is_whole_ ? logits_.size() : list_.size()) + 1));
  float floor = kNone;
  float scores[kChunk];
  for_each_chunk([&](const Candidate* tokens, size_t first, const float* values, size_t count) {
    if (center != nullptr) {
      passes().nearness(values, count, *center, scores);
      values = scores;
    }
    const size_t found = passes().find_above(values, count, floor, indices_);
    for (size_t i = 0; i < found; ++i) {
      const uint32_t at = indices_[i];
      if (!(values[at] > floor)) continue;
      const Token token = tokens != nullptr ? tokens[at].token : Token(first + at);
      best.push_back({token, std::min(values[at], FLT_MAX)});
      if (best.size() < room) continue;
      cut(best, k);
      // Of tokens with equal scores the first come first; a list, however, has no order of ids.
      floor = tokens == nullptr ? best.back().logit : just_below(best.back().logit);
    }
  });
  cut(best, k);
  std::sort(best.begin(), best.end(), is_before);
  return best;
}

void Candidates::list_from(float floor) {
  const float below = just_below(floor);
  std::vector<Candidate>& kept = found_;
  kept.clear();
  for_each_chunk([&](const Candidate* tokens, size_t first, const float* values, size_t count) {
    const size_t found = passes().find_above(values, count, below, indices_);
    for (size_t i = 0; i < found; ++i) {
      const uint32_t at = indices_[i];
      const Token token = tokens != nullptr ? tokens[at].token : Token(first + at);
      kept.push_back({token, std::min(values[at], FLT_MAX)});
    }
  });
  list_.swap(kept);
  if (is_whole_) is_sorted_ = false;
  is_whole_ = false;
}

void Candidates::keep_top(size_t k) {
  if (is_whole_) {
    list_.swap(select(k, nullptr));
    is_whole_ = false;
    is_sorted_ = true;
    return;
  }
  if (list_.size() <= k) return;
  if (is_sorted_) {
    list_.resize(k);
  } else {
    cut(list_, k);
  }
}

// Takes candidates from a heap one after another to the front, so that only what is kept gets
// sorted.
void Candidates::keep_nucleus(float share, size_t min_keep) {
  if (empty()) return;
  const float reference = max_logit();
  const double wanted = double(share) * exp_sums().total;
  if (is_whole_) {
    // The nucleus is nearly always small; where it is not, more is looked at.
    for (size_t k = std::max(kSelectionMin, min_keep);; k *= 8) {
      std::vector<Candidate>& best = select(k, nullptr);
      double reached = 0;
      for (const Candidate& c : best) reached += double(elementary::exp(c.logit - reference));
      if (reached < wanted && best.size() == k) continue;
      list_.swap(best);
      is_whole_ = false;
      is_sorted_ = true;
      break;
    }
  }
  if (!is_sorted_) std::make_heap(list_.begin(), list_.end(), is_after);
  double reached = 0;
  size_t kept = 0;
  while (kept < list_.size() && (kept == 0 || kept < min_keep || reached < wanted)) {
    if (!is_sorted_) std::pop_heap(list_.begin(), list_.end() - ptrdiff_t(kept), is_after);
    const size_t at = is_sorted_ ? kept : list_.size() - 1 - kept;
    reached += double(elementary::exp(list_[at].logit - reference));
    ++kept;
  }
  if (!is_sorted_) std::reverse(list_.begin(), list_.end());
  list_.resize(kept);
  is_sorted_ = true;
}

void Candidates::keep_from(float floor, size_t min_keep) {
  if (empty()) return;
  const float best = max_logit();
  floor = floor < best ? std::max(floor, -FLT_MAX) : best;  // NaN keeps the likeliest alone.
  if (min_keep > 1) {
    const std::vector<Candidate> first = top(min_keep);
    const bool is_lowered = first.back().logit < floor;
    floor = std::min(floor, first.back().logit);
    // Of those that equal the last one of them, as many as are needed, by their ids.
    list_from(floor);
    if (is_lowered) {
      std::erase_if(list_, [&](const Candidate& c) { return is_before(first.back(), c); });
    }
    return;
  }
  list_from(floor);
}

void Candidates::keep_nearest(float center, float share, size_t min_keep) {
  if (empty()) return;
  const float reference = max_logit();
  const double wanted = double(share) * exp_sums().total;
  for (size_t k = std::max(kSelectionMin, min_keep);; k *= 8) {
    std::vector<Candidate>& best = select(k, &center);
    double reached = 0;
    size_t kept = 0;
    for (; kept < best.size() && (reached <= wanted || kept < min_keep); ++kept) {
      best[kept].logit = *logit_of(best[kept].token);
      reached += double(elementary::exp(best[kept].logit - reference));
    }
    if (kept == best.size() && kept == k) continue;
    best.resize(kept);
    list_.swap(best);
    break;
  }
  max_logit_.reset();
  is_whole_ = is_sorted_ = false;
}

std::vector<Candidate> Candidates::at_least(float floor) {
  Candidates found;
  found.list_ = list_;
  found.logits_ = logits_;
  found.allowed_ = allowed_;
  found.changed_ = changed_;
  found.divisor_ = divisor_;
  found.is_whole_ = is_whole_;
  found.list_from(std::max(floor, -FLT_MAX));
  std::sort(found.list_.begin(), found.list_.end(), is_before);
  return std::move(found.list_);
}

std::vector<Candidate> Candidates::top(size_t k) {
  return select(k, nullptr);
}

void Candidates::divide(float divisor) {
  CHECK(divisor > 0);
  if (is_whole_ && divisor_ != 1) list();
  if (is_whole_) {
    divisor_ = divisor;
    for (Candidate& c : changed_) c.logit = divided(c.logit, divisor);
  } else {
    for (Candidate& c : list_) c.logit = divided(c.logit, divisor);
  }
  if (max_logit_) max_logit_ = divided(*max_logit_, divisor);
}

void Candidates::change(std::span<const Token> tokens, FunctionRef<float(size_t, float)> change) {
  max_logit_.reset();
  if (!is_whole_) {
    for (Candidate& c : list_) {
      const auto at = std::lower_bound(tokens.begin(), tokens.end(), c.token);
      if (at == tokens.end() || *at != c.token) continue;
      c.logit = usable(change(size_t(at - tokens.begin()), c.logit));
    }
    std::erase_if(list_, [](const Candidate& c) { return !has_probability(c.logit); });
    is_sorted_ = false;
    return;
  }
  std::vector<Candidate>& merged = found_;
  merged.clear();
  merged.reserve(changed_.size() + tokens.size());
  auto old = changed_.begin();
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (; old != changed_.end() && old->token < tokens[i]; ++old) merged.push_back(*old);
    const float logit = whole_logit(size_t(index_of(tokens[i])));
    if (old != changed_.end() && old->token == tokens[i]) ++old;
    if (size_t(index_of(tokens[i])) >= logits_.size()) continue;
    merged.push_back({tokens[i], has_probability(logit) ? usable(change(i, logit)) : kNone});
  }
  merged.insert(merged.end(), old, changed_.end());
  changed_.swap(merged);
}

std::span<const Candidate> Candidates::list() {
  if (is_whole_) list_from(-FLT_MAX);
  return list_;
}

void Candidates::change_list(FunctionRef<void(std::vector<Candidate>&)> change) {
  list();
  change(list_);
  is_sorted_ = false;
  max_logit_.reset();
}

}  // namespace cairn::sample
