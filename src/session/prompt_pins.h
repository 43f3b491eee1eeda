// Beginnings of prompts that stay in memory for a while, though nobody uses them: those that
// requests ask for by name (Anthropic's cache_control). All of them hold a part of the memory at
// most, and those of one of several tenants an even part of that; where it is full, the one that
// was asked for longest ago goes, and all of them go before a request fails for lack of memory. No
// bit depends on it. Thread rule: the engine's thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/sha256.h"
#include "engine/engine.h"
#include "memory/cache/prefix_cache.h"

namespace cairn::session {

// Of a prompt.
struct PromptPin {
  int32_t position = 0;  // Tokens of the beginning.
  std::chrono::seconds time{0};
};

class PromptPins {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kBudgetShare = 4;  // Of the conversations' memory, one part of so many.
  static constexpr size_t kPinsMax = 256;

  // The engine must outlive it.
  explicit PromptPins(Engine* engine);

  // Keeps what the sequence holds up to that position, or the last one before from which it can go
  // on; what is kept already is kept for that time from now. Returns how many tokens are kept; 0:
  // there is no room. REQUIRES: the sequence has so many tokens.
  int32_t keep(const memory::Sequence& sequence, const PromptPin& pin,
               Clock::time_point now = Clock::now());
  // Lets go of those whose time is over: they are kept like all others then.
  void release_old(Clock::time_point now = Clock::now());

 private:
  struct Kept {
    memory::PinId pin;
    memory::Variant variant;
    Sha256Digest tokens;
    size_t bytes;  // That it holds, whoever else does.
    Clock::time_point end;
  };

  void make_room(uint64_t tenant, size_t bytes_max);
  void release(size_t index);

  Engine* engine_;
  std::vector<Kept> kept_;  // In the order in which they were asked for.
};

}  // namespace cairn::session
