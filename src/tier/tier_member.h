// A process's part in a tier: who looks for prompts there and who sends what others are likely to
// ask for, behind what an engine knows of tiers (store/shared_tier.h).
// Thread rule: that of store::SharedTier.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "store/shared_tier.h"
#include "tier/tier.h"
#include "tier/tier_publisher.h"
#include "tier/tier_source.h"

namespace cairn::tier {

class TierMember : public store::SharedTier {
 public:
  // Errors: those of Tier::open() and TierPublisher::start(). Does not connect.
  static Result<std::unique_ptr<store::SharedTier>> open(const TierOptions& options) {
    CAIRN_TRY(std::unique_ptr<Tier> tier, Tier::open(options));
    std::unique_ptr<TierMember> made(new TierMember(std::move(tier)));
    CAIRN_TRY(made->publisher_, TierPublisher::start(made->tier_.get()));
    return std::unique_ptr<store::SharedTier>(std::move(made));
  }

  store::RecordSource* source() override { return &source_; }
  void offer(std::unique_ptr<store::Snapshot> snapshot, Offer offer,
             uint64_t waiting_bytes_max) override {
    publisher_->offer(std::move(snapshot), offer, waiting_bytes_max);
  }
  void collect() override { publisher_->collect(); }
  bool holds_memory() const override { return publisher_->holds_memory(); }
  bool drain() override { return publisher_->drain(); }
  bool flush(std::chrono::milliseconds longest) override { return publisher_->flush(longest); }
  void note_computed(const store::ComputedTokens& prompt,
                     std::chrono::nanoseconds time) override {
    if (prompt.count > 0) tier_->costs().note_computed(prompt.count, time, prompt.depth);
  }
  void distrust() override { tier_->distrust(); }
  void leave() override { is_left_ = true; }
  store::TierStats stats() const override { return tier_->stats(); }

 private:
  explicit TierMember(std::unique_ptr<Tier> tier)
      : tier_(std::move(tier)), source_(tier_.get(), &is_left_) {}

  std::unique_ptr<Tier> tier_;
  std::atomic<bool> is_left_{false};
  TierSource source_;
  std::unique_ptr<TierPublisher> publisher_;
};

// For engines that share this tier; without a URL: none.
inline store::OpenTier opener_of(const TierOptions& options) {
  if (options.url.empty()) return nullptr;
  return [options] { return TierMember::open(options); };
}

}  // namespace cairn::tier
