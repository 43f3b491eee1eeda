// Pins of the prefix cache, with their times.
#include "session/prompt_pins.h"

#include <algorithm>
#include <span>
#include <utility>

#include "memory/cache/block_counts.h"

namespace cairn::session {

PromptPins::PromptPins(Engine* engine) : engine_(engine) {
  engine->cache().set_pin_quota(engine->memory().usage().budget_bytes / kBudgetShare);
}

int32_t PromptPins::keep(const memory::Sequence& sequence, const PromptPin& pin,
                         Clock::time_point now) {
  Result<memory::Sequence> beginning = engine_->memory().at(sequence, pin.position);
  if (!beginning || beginning->length() == 0) return 0;
  const int32_t length = beginning->length();
  engine_->offer_kept(*beginning);
  const memory::Variant variant = sequence.variant();
  const Sha256Digest tokens = Sha256().add(std::as_bytes(beginning->tokens())).finish();
  const auto same = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.variant == variant && kept.tokens == tokens; });
  if (same != kept_.end()) release(size_t(same - kept_.begin()));
  memory::BlockCounts own;
  own.add(*beginning);
  const size_t bytes = own.held_bytes(), quota = engine_->cache().pin_quota();
  if (bytes > quota) return 0;
  make_room(variant.tenant, quota - bytes);
  for (;;) {
    if (kept_.size() < kPinsMax) {
      Result<memory::PinId> pinned = engine_->cache().pin(std::move(beginning).value());
      if (pinned) {
        kept_.push_back({*pinned, variant, tokens, bytes, now + pin.time});
        return length;
      }
    }
    if (kept_.empty()) return 0;
    release(0);
    beginning = engine_->memory().at(sequence, pin.position);
    if (!beginning) return 0;
  }
}

// With shares a tenant's pins push out that tenant's alone. What several of them hold together is
// counted for each; without shares the cache counts it once.
void PromptPins::make_room(uint64_t tenant, size_t bytes_max) {
  if (!engine_->cache().shares().are_set()) return;
  size_t bytes = 0;
  for (size_t index = kept_.size(); index-- > 0;) {
    if (kept_[index].variant.tenant != tenant) continue;
    bytes += kept_[index].bytes;
    if (bytes > bytes_max) release(index);
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
