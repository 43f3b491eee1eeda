// An answer that has drafts: what it proposes, and how it chooses its tokens one after the other
// while a step's rows are there. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <span>

#include "engine/step.h"

namespace cairn {

class DraftedAnswer {
 public:
  virtual ~DraftedAnswer() = default;
  // Tokens that may follow the one whose row its lane wants, `count_max` at most: how likely each
  // and all before it are right. Descends. Valid until the next call.
  virtual std::span<const float> propose(int32_t count_max) = 0;
  // So many of them are checked by the lane's next item.
  virtual void check(int32_t count) = 0;
  // In that step's acceptor, in place of Lane::take().
  virtual int32_t take(const StepOutputs& outputs) = 0;
  // The same of a step without drafts of it, before Lane::take(), which then takes the row.
  virtual void see(const StepOutputs& /*outputs*/) {}
  // What the step took, without propose(), and what it would have taken without this answer's
  // drafts; 0: not known.
  virtual void learn(double step_seconds, double plain_seconds) = 0;
};

}  // namespace cairn
