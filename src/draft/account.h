// What drafts have cost and gained one answer in time, and what follows: whether any are checked,
// and how many at most, so that an answer never loses more than 1.5 % of its time and 20 ms (a
// step, where that is less), beside one row. Knows neither tokens nor drafters. Thread rule: the
// engine's thread.
#pragma once

#include <cstdint>
#include <span>

namespace cairn::draft {

class Account {
 public:
  // A step whose drafts were checked (`checked` may be 0). `plain_seconds`: how long it would have
  // taken without them; 0: not known.
  struct Step {
    int32_t checked = 0;
    int32_t accepted = 0;
    double seconds = 0;
    double plain_seconds = 0;
  };
  void add_step(const Step& step);
  // Time of the answer before its first step: its prompt's.
  void add_elapsed(double seconds) { elapsed_ += seconds; }
  // Time in which drafts were looked for.
  void add_drafting(double seconds);
  // Time in which a drafter read what was there before it. It is part of what drafts save or lose,
  // but ends nothing: it is spent, and what drafts gain from then on does not depend on it.
  void add_reading(double seconds);
  // So many of a draft's first rows would be checked by what rows have cost so far. `reach`: of
  // each token, how likely it and all before it are right.
  int32_t worth(std::span<const float> reach) const;
  // Of such rows, which were not checked because drafts are off: the first that would have been
  // accepted.
  void add_shadow(int32_t checked, int32_t accepted);

  // Nothing is checked. Ends where drafts would clearly have gained time for a while; each return
  // that gains nothing doubles that while.
  bool is_off() const { return is_off_; }
  // While off, drafts are looked for only as far as that costs nearly nothing.
  bool may_look() const;
  // So many rows of drafts may all be in vain before the account is empty; at least 1.
  int32_t count_max() const;

  // Against steps without drafts; negative: lost.
  double saved_seconds() const { return saved_ - reading_; }
  double plain_seconds() const { return plain_; }  // Of a step without drafts; 0: not known.

 private:
  double limit() const;
  void settle(double seconds);
  void go_off();
  void consider_return();

  double elapsed_ = 0;   // Steps and drafting.
  double drafting_ = 0;  // That of it.
  double reading_ = 0;   // Likewise, beside drafting.
  double saved_ = 0;
  double lost_ = 0;   // Since drafts last paid: what they gain repays it, and is no credit.
  double plain_ = 0;  // Seconds, a moving average; 0: not known.
  double drafting_seconds_ = 0;  // Of one step, likewise.
  double row_cost_ = 0.25;       // Of a row of a draft, as a part of a plain step, likewise.
  bool is_off_ = false;
  int32_t wait_ = 0;          // Steps that drafts stay off at least.
  int32_t off_steps_ = 0;     // So long they are.
  int32_t shadow_count_ = 0;  // Drafts that were compared since,
  int32_t shadow_steps_ = 0;  // and the steps that these stood for.
  double shadow_gain_ = 0;    // Of these, as a part of a plain step, a moving average.
  double saved_before_ = 0;   // When drafts were last taken up.
};

}  // namespace cairn::draft
