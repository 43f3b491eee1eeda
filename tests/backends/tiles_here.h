// Who runs AMX's tile instructions in the tests: the processor where it has tiles and the system
// lends them, else the emulator. Never both: where the system has not been asked, LDTILECFG and
// TILERELEASE run in the processor while all other tile instructions trap (Intel SDM volume 1,
// 13.14), so that an emulator would see tiles without sizes.
#pragma once

#include <optional>
#include <string_view>

#include "tests/backends/tile_emulator.h"

namespace cairn::test {

enum class TilesBy { processor, emulator, nobody };

std::string_view name(TilesBy by);

// What decides.
struct TileFacts {
  bool processor_has = false;        // CPUID names tiles, and the system saves them.
  bool system_grants = false;        // It was asked for their data, as the program asks.
  bool configuration_traps = false;  // LDTILECFG does; then all tile instructions do.
};

TilesBy choose_tiles(const TileFacts& facts);

// For this process. The first call asks the system, for good; REQUIRES: no emulator lives then.
TilesBy tiles_here();

// Whether tiles multiply pairs of bf16 here, too.
bool tiles_take_pairs();

// While it lives, tile instructions work in all threads, unless nobody runs them. One at a time.
class UsableTiles {
 public:
  explicit UsableTiles(TilesBy by = tiles_here());

 private:
#if defined(__x86_64__)
  std::optional<TileEmulator> emulator_;
#endif
};

}  // namespace cairn::test
