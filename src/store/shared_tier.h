// A store that several machines share, as an engine uses one: who looks for prompts there, what is
// sent, and what both learn from steps. The engine is given a tier by whoever loads it, so that
// programs without one carry no network (tier/tier_member.h is the one that there is). Nothing here
// waits for the network, but drain().
// Thread rule: the engine's thread; the source is its reader's; stats() is thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "store/record_source.h"
#include "store/snapshot.h"

namespace cairn::store {

class DiskStore;

// What became of a look-up, as answers and metrics say it.
enum class TierOutcome : uint8_t {
  fetched,
  absent,       // The tier has nothing that helps.
  slower,       // Computing costs less.
  late,         // It took too long.
  unreachable,  // No connection, or it broke off.
  paused,       // Left alone for a while, since it failed.
  incomplete,   // Records are missing: evicted, or not there yet.
  damaged,      // Not what was asked for: nothing of it was used.
  computed,     // Another machine computed it too, and was waited for in vain.
  busy,         // Another machine has it, and lends to others now.
};
inline constexpr size_t kTierOutcomes = 10;
std::string_view name_of(TierOutcome outcome);
// The word of an answer for which something was found and not taken: there was no room for it, or
// memory had as much by then.
inline constexpr std::string_view kDropped = "dropped";

struct TierStats {
  std::array<uint64_t, kTierOutcomes> outcomes{};
  uint64_t read_bytes = 0, written_bytes = 0;
  uint64_t published = 0;      // Sequences, or beginnings of them.
  uint64_t not_published = 0;  // Since nobody used them twice.
  uint64_t publish_failures = 0;
  uint64_t refused_records = 0;  // Damaged, forged or half written.
  uint64_t lease_waits = 0;      // Prompts that waited for another machine.
  uint64_t breaker_openings = 0;
  // Machines that were asked for records, by what became of it.
  bool has_peers = false;
  std::array<uint64_t, kTierOutcomes> peers{};
  uint64_t peer_read_bytes = 0;
  uint64_t registered = 0;      // Sequences that others were told of.
  uint64_t lent_sequences = 0;  // In memory, for others.
  uint64_t lent_records = 0, lent_bytes = 0;
  // Of the process's port.
  uint64_t peer_strangers = 0;  // Who did not prove that they know the key.
  uint64_t peer_busy = 0;       // Records that were refused, since others were lent to.
  bool is_open = false;         // The breaker of those who read.
  double bytes_per_second = 0;  // Measured.
};

// So many, at this depth of their contexts on average.
struct ComputedTokens {
  int64_t count = 0;
  double depth = 0;
};

class SharedTier {
 public:
  // What is offered, and so what of it is sent where not all is: there is no room, or nobody said
  // so.
  enum class Offer : uint8_t {
    prompt,   // Has been read: what of it was used before, or is waited for.
    turn,     // Has ended, answer included: nothing yet.
    kept,     // Somebody asked that it stays: all of it.
    evicted,  // Leaves memory: nothing.
  };

  virtual ~SharedTier() = default;  // What waits is not sent.

  virtual RecordSource* source() = 0;
  // Its blocks stay until it is sent, or passed over: `waiting_bytes_max` may wait, the oldest
  // goes.
  virtual void offer(std::unique_ptr<Snapshot> snapshot, Offer offer,
                     uint64_t waiting_bytes_max) = 0;
  // Gives back the blocks of what is done.
  virtual void collect() = 0;
  // Whether something that waits, or is being sent, holds memory.
  virtual bool holds_memory() const = 0;
  // Waits until nothing does: what waits is passed over, what is being sent is left. False: there
  // was nothing.
  virtual bool drain() = 0;
  // Somebody waits for memory: what is held only for others goes, with the next collect().
  virtual void give_room() = 0;
  // Records that other machines may have, beside those in memory. Outlives it.
  virtual void lend_folder(DiskStore* folder) = 0;
  // Waits until all is sent, for so long at most. For a server that ends.
  virtual bool flush(std::chrono::milliseconds longest) = 0;
  // A step that computed these tokens of prompts, and nothing else.
  virtual void note_computed(const ComputedTokens& prompt, std::chrono::nanoseconds time) = 0;
  // Something of it was right by its seal and is not what its tokens compute: an alarm.
  virtual void distrust() = 0;
  // Whoever waits for the tier gives up.
  virtual void leave() = 0;
  virtual TierStats stats() const = 0;
};

// Each engine has one of its own. Errors: invalid_argument, io.
using OpenTier = std::function<Result<std::unique_ptr<SharedTier>>()>;

}  // namespace cairn::store
