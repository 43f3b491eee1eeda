// What machines share, as those see it who look for stored sequences: finds by the keys of a
// prompt's chain who has something that begins so, the tier itself or another machine that lends
// its records (tier/peers/directory.h), asks what is there before anything is fetched, and says no
// where computing costs less. Who is about to compute much says so to others, and waits for those
// who have said so, while that is cheaper. Thread rule: one thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/record_source.h"
#include "tier/peers/directory.h"
#include "tier/place_reader.h"
#include "tier/tier.h"

namespace cairn::tier {

class TierSource : public store::RecordSource {
 public:
  // The tier outlives it. `is_given_up` ends what waits; outlives it too.
  TierSource(Tier* tier, const std::atomic<bool>* is_given_up)
      : tier_(tier),
        is_given_up_(is_given_up),
        home_(std::make_shared<PlaceReader>(tier, is_given_up)) {}

  Answer look_up(const Question& question) override;

 private:
  // A manifest's name, who has it, and how many links of the prompt it has at least.
  struct Pointer {
    int32_t links = 0;
    bool is_end = false;  // It ends where the prompt does.
    Sha256Digest name{};
    uint64_t node = 0;  // 0: the tier.

    bool operator==(const Pointer&) const = default;
  };
  struct AskedPointer {
    int32_t links = 0;
    bool is_end = false;
    Sha256Digest digest{};  // Of the chain.
  };
  Result<Answer> search(const Question& question);
  Result<std::vector<Pointer>> find_pointers(const store::Chain& chain, const Question& question,
                                             Clock::time_point deadline);
  Result<std::vector<Pointer>> ask_pointers(std::span<const AskedPointer> asked,
                                            Clock::time_point deadline);
  Result<std::optional<store::Match>> find(const Question& question, const store::Chain& chain,
                                           std::span<const Pointer> pointers);
  // Null: it does not live, or is left alone.
  Result<std::shared_ptr<PlaceReader>> reach(uint64_t node);
  std::shared_ptr<PlaceReader> peer_at(uint64_t node, const std::string& address);
  Result<std::optional<store::Match>> ask_peer(const Question& question, const Pointer& pointer,
                                               int32_t least);
  Result<std::chrono::milliseconds> wait_for_lease(const Question& question,
                                                   const store::Chain& chain, int32_t held_links,
                                                   Clock::time_point deadline);
  Result<std::chrono::milliseconds> weigh_lease(const Question& question, const store::Chain& chain,
                                                const std::string& key, Clock::time_point deadline);

  Tier* tier_;
  const std::atomic<bool>* is_given_up_;
  std::shared_ptr<PlaceReader> home_;
  std::map<uint64_t, std::shared_ptr<PlaceReader>> peers_;  // By nodes.
  // Of the look-up that is under way.
  Outcome outcome_ = Outcome::absent;
  bool has_failed_peer_ = false;    // One was waited for in vain: no other one is tried.
  store::TimePoint waits_since_{};  // Of the prompt that waited last, when it was asked first.
};

}  // namespace cairn::tier
