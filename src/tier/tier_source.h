// A tier as those see it who look for stored sequences: finds by the keys of a prompt's chain, asks
// what is there before anything is fetched, and says no where computing costs less. Who is about to
// compute much says so to others, and waits for those who have said so, while that is cheaper.
// Nothing of what comes is used before its seal was compared.
// Thread rule: one thread, but for tries_again() and counting.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/record_source.h"
#include "tier/servers.h"
#include "tier/tier.h"

namespace cairn::tier {

class TierSource : public store::RecordSource {
 public:
  // The tier outlives it. `is_given_up` ends what waits; outlives it too.
  TierSource(Tier* tier, const std::atomic<bool>* is_given_up)
      : tier_(tier), is_given_up_(is_given_up) {}

  bool is_shared() const override { return true; }
  Answer look_up(const Question& question) override;
  Result<std::unique_ptr<store::OpenRecord>> open_record(
      const store::PieceRef& piece, std::optional<store::TimePoint> deadline) override;
  void refuse_record(const store::PieceRef& piece, const std::string& reason) override;
  bool tries_again() const override { return !is_lost_ && !tier_->reads().is_open(); }
  std::string_view why_lost() const override { return name_of(lost_by_); }
  void count_hit(const Sha256Digest& name) override;
  void count_miss() override;
  void count_read(uint64_t bytes) override;

 private:
  friend class TierRecord;
  // A manifest's name, and how many links of the prompt it has at least.
  struct Pointer {
    int32_t links = 0;
    bool is_end = false;  // It ends where the prompt does.
    Sha256Digest name{};
  };
  struct AskedPointer {
    int32_t links = 0;
    std::string key;
  };
  Result<Answer> search(const Question& question);
  Result<std::optional<store::Match>> find(const Question& question, const store::Chain& chain,
                                           std::span<const Pointer> pointers);
  Status connect(std::shared_ptr<Servers>& servers, Clock::time_point deadline);
  Result<std::vector<Pointer>> find_pointers(const store::Chain& chain, const Question& question,
                                             Clock::time_point deadline);
  Result<std::vector<Pointer>> ask_pointers(std::span<const AskedPointer> asked,
                                            Clock::time_point deadline);
  Result<std::optional<store::Match>> read_manifest(const Question& question,
                                                    const Sha256Digest& name,
                                                    Clock::time_point deadline);
  Status check_presence(const Question& question, store::Match& match, int32_t least,
                        Clock::time_point deadline);
  uint64_t wanted_bytes(const Question& question, const store::Match& match) const;
  Result<std::chrono::milliseconds> wait_for_lease(const Question& question,
                                                   const store::Chain& chain, int32_t held_links,
                                                   Clock::time_point deadline);
  Result<std::chrono::milliseconds> weigh_lease(const Question& question, const store::Chain& chain,
                                                const std::string& key, Clock::time_point deadline);
  Status check_seal(const Sha256Digest& name, std::span<const std::byte> value) const;
  Outcome outcome_of_failure(const Error& error);
  bool is_lost(const Reply& reply);
  void note_lost_data(const Error& error, const Servers& servers);
  void lose(Outcome why) { lost_by_ = why; }

  Tier* tier_;
  const std::atomic<bool>* is_given_up_;
  std::shared_ptr<Servers> questions_, data_;  // Records hold theirs as long as they wait.
  Clock::time_point data_came_at_{};
  std::atomic<bool> is_lost_{false};  // All that records came by, since the last search.
  std::atomic<Outcome> lost_by_{Outcome::incomplete};
  Outcome outcome_ = Outcome::absent;  // Of the look-up that is under way.
  store::TimePoint waits_since_{};     // Of the prompt that waited last, when it was asked first.
  std::optional<Outcome> lost_reply_;  // Why a part of a cluster did not answer it.
};

}  // namespace cairn::tier
