// What of all that a machine has computed gets a place in the tier. Whether that has room its users
// may not ask it: what this machine has sent tells. A record that is gone before its time was
// driven out by others. Knows no servers. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/random_stream.h"
#include "base/sha256.h"
#include "tier/tier_options.h"

namespace cairn::tier {

class Room {
 public:
  using Clock = std::chrono::steady_clock;

  // `kept`: so long the tier keeps what nobody uses, where it has room.
  Room(Clock::duration kept, uint64_t seed) : kept_(kept), chance_(seed, 0, 0) {}

  void note_sent(const Sha256Digest& name, Clock::time_point now);
  // One that was sent a while ago and should be there still; none: there is no such one.
  std::optional<Sha256Digest> next(Clock::time_point now);
  // Whether the one that next() has named is there.
  void note_found(bool is_there);
  // Whether what comes now may have a place that nothing else needs: never where something was gone
  // just now; the more were found since then, the more often.
  bool has_place() { return chance_.below(kFoundMax) < uint32_t(found_); }

 private:
  struct Sent {
    Sha256Digest name;
    Clock::time_point at;
  };
  static constexpr int kFoundMax = 512;

  Clock::duration kept_;
  RandomStream chance_;
  std::deque<Sent> sent_;                 // The oldest first.
  uint64_t sent_count_ = 0, stride_ = 1;  // Of so many one is remembered.
  size_t asked_ = 0;                      // Where the one that was named stands.
  int found_ = 0;                         // That were there since one was not.
};

// So many tokens of a prompt are sent of which so many were used before. Conversations that go on
// are likely to go on again: where half of one was used before, all of it is sent.
int32_t admitted_length(Publishing publishing, int32_t used, int32_t whole, bool has_place);

}  // namespace cairn::tier
