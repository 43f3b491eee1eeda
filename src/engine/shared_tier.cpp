// Snapshots for the publisher.
#include "engine/shared_tier.h"

#include <utility>

#include "store/keys.h"

namespace cairn {
namespace {

// Of the budget, what waits to be sent holds so much at most; what was evicted, half of that.
constexpr uint64_t kTierWaitingPart = 4;

}  // namespace

Result<std::unique_ptr<SharedTier>> SharedTier::open(const tier::TierOptions& options,
                                                     const memory::Memory* memory,
                                                     const std::string& model) {
  CAIRN_TRY(std::unique_ptr<tier::Tier> tier, tier::Tier::open(options));
  std::unique_ptr<SharedTier> made(new SharedTier(std::move(tier), memory, model));
  CAIRN_TRY(made->publisher_, tier::TierPublisher::start(made->tier_.get()));
  return made;
}

void SharedTier::offer(const memory::Sequence& sequence, const Sha256Digest& fingerprint,
                       tier::TierPublisher::Offer offer) {
  publisher_->collect();
  if (sequence.is_closed() || sequence.length() < store::kChainTokens) return;
  const bool is_evicted = offer == tier::TierPublisher::Offer::evicted;
  const uint64_t bytes_max = memory_->options().budget_bytes / kTierWaitingPart;
  publisher_->offer(std::make_unique<store::Snapshot>(*memory_, sequence, fingerprint, model_),
                    offer, is_evicted ? bytes_max / 2 : bytes_max);
}

}  // namespace cairn
