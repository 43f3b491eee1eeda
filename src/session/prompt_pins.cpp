// Pins of the prefix cache, with their times.
#include "session/prompt_pins.h"

#include <algorithm>
#include <span>
#include <utility>

namespace cairn::session {

PromptPins::PromptPins(Engine* engine) : engine_(engine) {
  engine->cache().set_pin_quota(engine->memory().usage().budget_bytes / kBudgetShare);
}

int32_t PromptPins::keep(const memory::Sequence& sequence, const PromptPin& pin,
                         Clock::time_point now) {
  Result<memory::Sequence> beginning = engine_->memory().at(sequence, pin.position);
  if (!beginning || beginning->length() == 0) return 0;
  const int32_t length = beginning->length();
  const memory::Variant variant = sequence.variant();
  const Sha256Digest tokens = Sha256().add(std::as_bytes(beginning->tokens())).finish();
  const auto same = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.variant == variant && kept.tokens == tokens; });
  if (same != kept_.end()) release(size_t(same - kept_.begin()));
  for (;;) {
    if (kept_.size() < kPinsMax) {
      Result<memory::PinId> pinned = engine_->cache().pin(std::move(beginning).value());
      if (pinned) {
        kept_.push_back({*pinned, variant, tokens, now + pin.time});
        return length;
      }
    }
    if (kept_.empty()) return 0;
    release(0);
    beginning = engine_->memory().at(sequence, pin.position);
    if (!beginning) return 0;
  }
}

void PromptPins::release_old(Clock::time_point now) {
  for (size_t index = kept_.size(); index-- > 0;) {
    if (kept_[index].end <= now) release(index);
  }
}

// One that had to give way before is not there any more.
void PromptPins::release(size_t index) {
  (void)engine_->cache().unpin(kept_[index].pin);
  kept_.erase(kept_.begin() + ptrdiff_t(index));
}

}  // namespace cairn::session
