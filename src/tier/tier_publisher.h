// Sends to a tier what is likely to be read by another machine: what was used twice, what somebody
// waits for, what a person wanted kept; and all else while the tier has room for it. Records first,
// then the manifest, then the pointers by which it is found, so that nothing is found that was not
// there. A thread of its own, which steps go before; snapshots hold memory, which is given back
// soon after it is asked for. Thread rule: the engine's thread, but for its own one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "store/encoded_record.h"
#include "store/shared_tier.h"
#include "store/snapshot.h"
#include "tier/peers/registrar.h"
#include "tier/peers/shelf.h"
#include "tier/room.h"
#include "tier/servers.h"
#include "tier/tier.h"
#include "tier/use_counts.h"

namespace cairn::tier {

class TierPublisher {
 public:
  using Offer = store::SharedTier::Offer;

  // Errors: io, where the system gives no thread. The tier outlives it, and so does the shelf, on
  // which comes what other machines may ask for; null where the tier has no peers.
  static Result<std::unique_ptr<TierPublisher>> start(Tier* tier, Shelf* shelf);
  ~TierPublisher();  // What waits is not sent.

  // Its blocks stay until it is sent, or passed over: `waiting_bytes_max` may wait, the oldest
  // goes.
  void offer(std::unique_ptr<store::Snapshot> snapshot, Offer offer, uint64_t waiting_bytes_max);
  // Gives back the blocks of what is done.
  void collect();
  // Whether something that waits, or is being sent, holds memory.
  bool holds_memory() const;
  // Waits until nothing does: what waits is passed over, what is being sent is left. False: there
  // was nothing.
  bool drain();
  // Waits until all is sent, for so long at most. For tests and for a server that ends.
  bool flush(std::chrono::milliseconds longest);

 private:
  struct Item {
    std::unique_ptr<store::Snapshot> snapshot;
    Offer offer = Offer::prompt;
    uint64_t lent_bytes_max = 0;
  };

  TierPublisher(Tier* tier, Shelf* shelf);
  void run();
  void work(Item& item);
  Status send(Item& item);
  Status lend(Item& item);
  bool admits();
  void note_failure(const Error& error, std::string_view what);
  void beat();
  Result<int32_t> choose_length(const Item& item, const store::Chain& chain);
  Result<int32_t> wanted_length(const store::Chain& chain, int32_t used, int32_t whole);
  Status look_for_sent();
  Status connect();
  bool is_lost(const Reply& reply);
  Status publish(store::Snapshot& snapshot, int32_t length);
  Status send_records(const store::Snapshot& snapshot, const store::Chain& chain,
                      store::Manifest& manifest);
  Result<bool> send_record(const store::EncodedRecord& record);
  Status send_pointers(const store::Chain& chain, int32_t length, const Sha256Digest& name);
  Result<std::vector<bool>> ask_presence(const std::vector<Sha256Digest>& names);

  Tier* tier_;
  Shelf* shelf_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> waiting_;
  std::vector<Item> done_;  // To be destroyed by the engine's thread.
  bool is_working_ = false, is_closing_ = false;
  std::atomic<bool> gives_up_{false};
  // The thread's own.
  std::unique_ptr<Servers> servers_;
  bool has_lost_ = false;  // Of what is being sent, something that a server of a cluster has.
  std::optional<bool> is_admitted_;  // What is being sent, by the breaker; nothing: not asked yet.
  UseCounts counts_;
  std::optional<Registrar> registrar_;  // None: no peers.
  Clock::time_point next_beat_{};
  Room room_;
  std::map<Sha256Digest, Sha256Digest> digests_;  // Of records that were sent, by name.
  double busy_part_ = 0;                          // Of the time, that it sent something.
  Clock::time_point busy_since_{}, idle_since_{};
  std::thread thread_;
};

}  // namespace cairn::tier
