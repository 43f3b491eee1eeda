// The facts are found out once: CPUID, the system's answer to the program's own question, and
// whether a first LDTILECFG traps.
#include "tests/backends/tiles_here.h"

#include "backends/cpu/product/tiles_check.h"
#include "base/cpu_features.h"

namespace cairn::test {
namespace {

#if defined(__x86_64__)
// What traps is run by the emulator. A configuration of no tiles is the initial state.
bool configuration_traps() {
  const TileEmulator emulator;
  const long before = TileEmulator::count();
  alignas(64) const uint8_t no_tiles[64] = {1};
  asm volatile("ldtilecfg %0" : : "m"(no_tiles));
  asm volatile("tilerelease");
  return TileEmulator::count() > before;
}

TilesBy find_out() {
  const CpuFeatures features = detect_cpu_features();
  TileFacts facts{.processor_has = features.amx_int8 || features.amx_bf16};
  facts.system_grants = facts.processor_has && cpu::ask_for_tiles();
  facts.configuration_traps = configuration_traps();
  return choose_tiles(facts);
}
#endif

}  // namespace

std::string_view name(TilesBy by) {
  switch (by) {
    case TilesBy::processor:
      return "processor";
    case TilesBy::emulator:
      return "emulator";
    case TilesBy::nobody:
      return "nobody";
  }
  return "unknown";
}

TilesBy choose_tiles(const TileFacts& facts) {
  if (facts.processor_has && facts.system_grants) return TilesBy::processor;
  return facts.configuration_traps ? TilesBy::emulator : TilesBy::nobody;
}

TilesBy tiles_here() {
#if defined(__x86_64__)
  static const TilesBy by = find_out();
  return by;
#else
  return TilesBy::nobody;
#endif
}

bool tiles_take_pairs() {
  const TilesBy by = tiles_here();
  return by == TilesBy::emulator || (by == TilesBy::processor && detect_cpu_features().amx_bf16);
}

UsableTiles::UsableTiles([[maybe_unused]] TilesBy by) {
#if defined(__x86_64__)
  if (by == TilesBy::emulator) emulator_.emplace();
#endif
}

}  // namespace cairn::test
