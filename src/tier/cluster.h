// The servers of a tier that is a Redis cluster: which of them has which keys, and how each does.
// Learned from what servers say, who may be wrong or late: whoever is sent elsewhere goes there
// once. Knows no connection. Thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tier/breaker.h"
#include "tier/reply_reader.h"
#include "tier/tier_address.h"

namespace cairn::tier {

inline constexpr int32_t kSlots = 16384;

// CRC16 (XMODEM) of the whole key. No key of a tier has braces, which would choose a part of it.
int32_t slot_of(std::string_view key);

// "MOVED 3999 10.0.0.7:6381": another server has this slot; "ASK …": it has this key, perhaps.
struct Redirect {
  bool is_for_good = false;  // MOVED.
  int32_t slot = 0;
  std::string server;  // HOST:PORT; :PORT: the host that was asked.

  static std::optional<Redirect> read(const Reply& reply);
};

// One of the servers. Constant, but for its breakers.
struct Shard {
  Shard(std::string its_name, std::optional<SocketAddress> its_address, uint64_t seed)
      : name(std::move(its_name)), address(its_address), reads(seed), writes(seed + 1) {}

  std::string name;                      // HOST:PORT; empty: that of the URL, whoever that is.
  std::optional<SocketAddress> address;  // None: it announces a name, which nobody looks up.
  Breaker reads, writes;
};

class Cluster {
 public:
  // What is out of date is asked for so often at most.
  static constexpr std::chrono::seconds kRefresh{5};
  // More are not believed in.
  static constexpr size_t kShardsMax = 1000;

  // `home`: where the tier's URL leads.
  Cluster(const TierAddress* home, uint64_t seed);

  // Whether the tier is a cluster: a server has said so.
  bool is_known() const;
  // Who has the slot; null: nobody, or it is not known yet.
  std::shared_ptr<Shard> shard_of(int32_t slot) const;
  // Whether all slots were listed: what has no server then has none.
  bool is_complete() const;
  // By its name; null: there are too many, or it is no name.
  std::shared_ptr<Shard> shard_named(const std::string& name);
  // That of the URL: whom one asks who knows of nobody else.
  std::shared_ptr<Shard> home() const { return home_shard_; }
  // Any of them, another one each time.
  std::shared_ptr<Shard> any_shard();

  // A reply to CLUSTER SLOTS: the servers of all slots. Errors: invalid_data; nothing changes then.
  Status take(const Reply& reply);
  void note_moved(const Redirect& redirect);
  // What is known may be out of date.
  void note_stale();
  // Whether to ask now; then whoever asked has to.
  bool begin_refresh(Breaker::Clock::time_point now = Breaker::Clock::now());

  uint64_t opened() const;  // All breakers together.
  bool is_open() const;     // Of one of those who have slots, as readers know them.

 private:
  std::shared_ptr<Shard> find_or_add(const std::string& name);

  const TierAddress* home_;
  uint64_t seed_;
  std::shared_ptr<Shard> home_shard_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Shard>> shards_;
  std::array<std::shared_ptr<Shard>, kSlots> slots_;
  bool is_known_ = false, is_complete_ = false, is_stale_ = false;
  std::string last_any_;
  std::optional<Breaker::Clock::time_point> refreshed_at_;
};

}  // namespace cairn::tier
