// An engine's part in a tier that machines share: who looks for prompts there, who sends what
// others are likely to ask for, and what both learn from steps. Nothing here waits for the tier.
// Thread rule: the engine's thread; the source is its reader's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "memory/memory.h"
#include "tier/tier.h"
#include "tier/tier_publisher.h"
#include "tier/tier_source.h"

namespace cairn {

class SharedTier {
 public:
  // `model`: its name, for people. Memory outlives it. Errors: those of tier::Tier::open(), io.
  static Result<std::unique_ptr<SharedTier>> open(const tier::TierOptions& options,
                                                  const memory::Memory* memory,
                                                  const std::string& model);

  store::RecordSource* source() { return &source_; }
  tier::Tier& tier() { return *tier_; }
  tier::TierPublisher& publisher() { return *publisher_; }

  // What of it is sent, the publisher knows. Its blocks stay until then, or until it is passed
  // over: no more than a part of the memory's budget waits.
  void offer(const memory::Sequence& sequence, const Sha256Digest& fingerprint,
             tier::TierPublisher::Offer offer);
  // A step of so many tokens of prompts.
  void note_step(int64_t prompt_tokens, std::chrono::nanoseconds time) {
    if (prompt_tokens > 0) tier_->costs().note_computed(prompt_tokens, time);
  }
  // Whoever waits for the tier gives up.
  void leave() { is_left_ = true; }

 private:
  SharedTier(std::unique_ptr<tier::Tier> tier, const memory::Memory* memory, std::string model)
      : tier_(std::move(tier)),
        source_(tier_.get(), &is_left_),
        memory_(memory),
        model_(std::move(model)) {}

  std::unique_ptr<tier::Tier> tier_;
  std::atomic<bool> is_left_{false};
  tier::TierSource source_;
  std::unique_ptr<tier::TierPublisher> publisher_;
  const memory::Memory* memory_;
  std::string model_;
};

}  // namespace cairn
