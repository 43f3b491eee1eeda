// Rows side by side on the engine's threads.
#include "session/prompt_probabilities.h"

namespace cairn::session {

void PromptProbabilityReader::take(int32_t position, const StepOutputs& rows) {
  TaskCounter counter;
  threads_->run_skipping_busy_workers([&](int) {
    for (;;) {
      const int32_t row = int32_t(counter.claim(1));
      if (row >= rows.count()) return;
      const size_t next = size_t(position) + size_t(row) + 1;
      if (next >= prompt_.size()) return;
      (*made_)[next - 1] = sample::log_probabilities(rows.logits(row), prompt_[next], top_count_);
    }
  });
}

Result<std::shared_ptr<const PromptProbabilities>> PromptProbabilityReader::made() const {
  for (const sample::LogProbabilities& one : *made_) {
    if (!one.top.empty()) continue;
    return fail(ErrorCode::invalid_data, "logits: expected numbers, found none above -infinity");
  }
  return std::shared_ptr<const PromptProbabilities>(made_);
}

}  // namespace cairn::session
