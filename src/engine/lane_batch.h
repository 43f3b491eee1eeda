// Steps of lanes that are driven by their caller. Thread rule: that of a lane.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "engine/drafted_answer.h"
#include "engine/lane.h"
#include "engine/schedule/draft_rows.h"

namespace cairn {

// Keeps its arrays, so that a step allocates nothing.
class LaneBatch {
 public:
  // `checks_all_drafts`: as SchedulerOptions has it.
  explicit LaneBatch(Engine* engine, bool checks_all_drafts = false)
      : engine_(engine), draft_rows_(checks_all_drafts) {}

  // One step for the lanes that want rows, in their order, as far as there is room; returns how
  // many were computed. Errors: those of Engine::step(), which are the first such lane's, and of
  // Lane::settle(). REQUIRES: at least one of the lanes wants rows.
  Result<size_t> step(std::span<Lane* const> lanes);
  Status step(Lane& lane) {
    Lane* const one = &lane;
    CAIRN_TRY(step(std::span(&one, 1)));
    return Ok{};
  }

  // The same for a lane that makes an answer, with the answer's drafts.
  Status step(Lane& lane, DraftedAnswer& answer);

 private:
  Engine* engine_;
  DraftRows draft_rows_;
  std::vector<Lane*> stepped_;
  std::vector<StepItem> items_;
};

}  // namespace cairn
