// Who runs tile instructions is decided once, from three facts; here for every machine that there
// may be. The last test says which of them this one is.
#include "tests/backends/tiles_here.h"

#include <gtest/gtest.h>

#if defined(__x86_64__)
#include <signal.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace cairn::test::tiles_here_test {
namespace {

TEST(TilesHere, AreTheProcessorsWhereTheSystemLendsThem) {
  const TilesBy processor = TilesBy::processor, emulator = TilesBy::emulator;
  EXPECT_EQ(choose_tiles({true, true, false}), processor) << "AMX";
  EXPECT_EQ(choose_tiles({false, false, true}), emulator) << "no AMX, or its registers not saved";
  EXPECT_EQ(choose_tiles({true, false, true}), emulator) << "named by CPUID, but all of it traps";
  // LDTILECFG runs in the processor, the loads do not: neither of the two would be right.
  EXPECT_EQ(choose_tiles({true, false, false}), TilesBy::nobody) << "the system refuses";
  EXPECT_EQ(choose_tiles({false, false, false}), TilesBy::nobody) << "hidden from CPUID";
}

// The handler of illegal instructions at present.
auto handler() {
  struct sigaction action = {};
  ::sigaction(SIGILL, nullptr, &action);
  return action.sa_sigaction;
}

TEST(TilesHere, TakeTrapsOnlyForTheEmulator) {
  const auto before = handler();
  for (const TilesBy by : {TilesBy::processor, TilesBy::nobody}) {
    const UsableTiles tiles(by);
    EXPECT_EQ(handler(), before) << name(by);
  }
  {
    const UsableTiles tiles(TilesBy::emulator);
    EXPECT_NE(handler(), before);
  }
  EXPECT_EQ(handler(), before);
}

// As the kernels do: sizes, a tile of zeros, and its rows in memory.
void store_zeros(int32_t* rows) {
  alignas(64) uint8_t config[64] = {1};
  config[16] = 64;  // Bytes of a row of tile 0,
  config[48] = 16;  // and its rows.
  asm volatile("ldtilecfg %0" : : "m"(config));
  asm volatile("tilezero %tmm0");
  asm volatile("tilestored %%tmm0, (%0,%1,1)" : : "r"(rows), "r"(int64_t{64}) : "memory");
  asm volatile("tilerelease");
}

TEST(TilesHere, SayWhoRunsThem) {
  const TilesBy by = tiles_here();
  RecordProperty("tiles_by", std::string(name(by)));
  std::printf("AMX tiles by: %s\n", std::string(name(by)).c_str());
  if (by == TilesBy::nobody) GTEST_SKIP() << "the system lends no tiles, and not all of them trap";
  std::vector<int32_t> rows(256, 1);
  const long before = TileEmulator::count();
  const UsableTiles tiles;
  store_zeros(rows.data());
  EXPECT_EQ(rows, std::vector<int32_t>(256, 0));
  EXPECT_EQ(TileEmulator::count() - before, by == TilesBy::emulator ? 4 : 0);
}

}  // namespace
}  // namespace cairn::test::tiles_here_test
#endif
