// A process's part in a tier: who looks for prompts there, who sends what others are likely to ask
// for, and what is lent to other machines, behind what an engine knows of tiers
// (store/shared_tier.h). Thread rule: that of store::SharedTier.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "store/shared_tier.h"
#include "tier/peers/peer_server.h"
#include "tier/peers/shelf.h"
#include "tier/tier.h"
#include "tier/tier_publisher.h"
#include "tier/tier_source.h"

namespace cairn::tier {

class TierMember : public store::SharedTier {
 public:
  // Errors: those of Tier::open() and TierPublisher::start(). Does not connect. `peers`: where this
  // process lends; null: it does not.
  static Result<std::unique_ptr<store::SharedTier>> open(const TierOptions& options,
                                                         std::shared_ptr<PeerServer> peers) {
    CAIRN_TRY(std::unique_ptr<Tier> tier, Tier::open(options, std::move(peers)));
    std::unique_ptr<TierMember> made(new TierMember(std::move(tier)));
    CAIRN_TRY(made->publisher_, TierPublisher::start(made->tier_.get(), made->lent()));
    return std::unique_ptr<store::SharedTier>(std::move(made));
  }
  ~TierMember() override {
    if (lent() != nullptr) tier_->peers()->take_away(&shelf_);
  }

  store::RecordSource* source() override { return &source_; }
  void offer(std::unique_ptr<store::Snapshot> snapshot, Offer offer,
             uint64_t waiting_bytes_max) override {
    publisher_->offer(std::move(snapshot), offer, waiting_bytes_max);
  }
  void collect() override {
    publisher_->collect();
    shelf_.collect();
  }
  bool holds_memory() const override { return publisher_->holds_memory() || shelf_.is_leaving(); }
  bool drain() override {
    const bool had_any = publisher_->drain();
    return shelf_.drain() || had_any;
  }
  void give_room() override { shelf_.clear(); }
  void lend_folder(store::DiskStore* folder) override { shelf_.lend_folder(folder); }
  bool flush(std::chrono::milliseconds longest) override { return publisher_->flush(longest); }
  void note_computed(const store::ComputedTokens& prompt, std::chrono::nanoseconds time) override {
    if (prompt.count <= 0) return;
    tier_->costs().note_computed(prompt.count, time, prompt.depth);
    tier_->peer_costs().note_computed(prompt.count, time, prompt.depth);
  }
  void distrust() override { tier_->distrust(); }
  void leave() override { is_left_ = true; }
  store::TierStats stats() const override {
    store::TierStats stats = tier_->stats();
    if (tier_->peers() == nullptr) return stats;
    const Shelf::Counts lent = shelf_.counts();
    const PeerServer::Counts all = tier_->peers()->counts();
    stats.lent_sequences = lent.sequences;
    stats.lent_records = lent.records;
    stats.lent_bytes = lent.bytes;
    stats.peer_strangers = all.strangers;
    stats.peer_busy = all.busy;
    return stats;
  }

 private:
  explicit TierMember(std::unique_ptr<Tier> tier)
      : tier_(std::move(tier)), source_(tier_.get(), &is_left_) {
    if (tier_->peers() != nullptr) tier_->peers()->lend(&shelf_);
  }
  Shelf* lent() { return tier_->peers() != nullptr ? &shelf_ : nullptr; }

  std::unique_ptr<Tier> tier_;
  std::atomic<bool> is_left_{false};
  Shelf shelf_;
  TierSource source_;
  std::unique_ptr<TierPublisher> publisher_;
};

// For engines that share this tier; without a URL: none.
inline store::OpenTier opener_of(const TierOptions& options,
                                 std::shared_ptr<PeerServer> peers = nullptr) {
  if (options.url.empty()) return nullptr;
  return [options, peers] { return TierMember::open(options, peers); };
}

}  // namespace cairn::tier
