// A place where records lie, as it is read: the tier itself, or another machine that lends what it
// has. Of a manifest it finds out what is there before anything is fetched, and says what that
// costs. Nothing of what comes is used before its seal was compared.
// Thread rule: one thread, but for origin(), tries_again(), why_lost() and counting.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "store/record_source.h"
#include "tier/servers.h"
#include "tier/tier.h"

namespace cairn::tier {

class PlaceReader : public store::RecordPlace {
 public:
  using Question = store::RecordSource::Question;

  // The tier. It outlives this; `is_given_up` ends what waits, and outlives it too.
  PlaceReader(Tier* tier, const std::atomic<bool>* is_given_up);
  // A machine at an address.
  PlaceReader(Tier* tier, TierAddress peer, const std::atomic<bool>* is_given_up);

  const TierAddress& address() const { return *address_; }
  Breaker& reads() { return *reads_; }
  // What was lost before is tried again.
  void begin_search();
  // For questions; while that is there, they go through questions(). Errors: io, cancelled.
  Status connect(Clock::time_point deadline) { return connect(questions_, deadline); }
  Servers& questions() { return *questions_; }
  // Of a cluster: whether nobody has this reply; the others go on.
  bool is_lost(const Reply& reply);
  // Why a part of a cluster did not answer, since the search began.
  std::optional<Outcome> lost_reply() const { return lost_reply_; }
  // The connection is given up; in a word.
  Outcome note_failure(const Error& error);

  // What the sequence of this manifest gives to the prompt, of what is there; none where that is
  // not more than `least` tokens, where it has gone, or where it is damaged: `why` then says so.
  // REQUIRES: it is connected. Errors: io, cancelled: questions are of no use any more.
  Result<std::optional<store::Match>> find(const Question& question, const Sha256Digest& manifest,
                                           int32_t least, Clock::time_point deadline, Outcome& why);
  // REQUIRES: it was found here.
  FetchDecision weigh(const Question& question, const store::Match& match) const;

  store::Origin origin() const override {
    return own_address_ ? store::Origin::peer : store::Origin::tier;
  }
  Result<std::unique_ptr<store::OpenRecord>> open_record(
      const store::PieceRef& piece, std::optional<store::TimePoint> deadline) override;
  void refuse_record(const store::PieceRef& piece, const std::string& reason) override;
  bool tries_again() const override { return !is_lost_ && !reads_->is_open(); }
  std::string_view why_lost() const override { return name_of(lost_by_.load()); }
  void count_hit(const Sha256Digest& name) override;
  void count_miss() override;
  void count_read(uint64_t bytes) override;

 private:
  friend class PlaceRecord;
  Status connect(std::shared_ptr<Servers>& servers, Clock::time_point deadline);
  Result<std::optional<store::Match>> read_manifest(const Question& question,
                                                    const Sha256Digest& name,
                                                    Clock::time_point deadline, Outcome& why);
  Status check_presence(const Question& question, store::Match& match, int32_t least,
                        Clock::time_point deadline, Outcome& why);
  uint64_t wanted_bytes(const Question& question, const store::Match& match) const;
  Status check_seal(const Sha256Digest& name, std::span<const std::byte> value) const;
  void note_bad(const Sha256Digest& name, std::string_view reason);
  void note_lost_data(const Error& error, const Servers& servers);
  void lose(Outcome why) { lost_by_ = why; }

  Tier* tier_;
  const std::atomic<bool>* is_given_up_;
  std::optional<TierAddress> own_address_;  // None: the tier's.
  std::optional<Breaker> own_reads_;
  const TierAddress* address_;
  Breaker* reads_;
  Cluster* cluster_;  // Null: one server, whatever it says.
  Costs* costs_;
  std::shared_ptr<Servers> questions_, data_;  // Records hold theirs as long as they wait.
  Clock::time_point data_came_at_{};
  Clock::time_point used_at_{};       // When somebody asked last.
  std::atomic<bool> is_lost_{false};  // All that records came by, since the last search.
  std::atomic<Outcome> lost_by_{Outcome::incomplete};
  std::optional<Outcome> lost_reply_;
};

}  // namespace cairn::tier
