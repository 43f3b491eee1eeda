// Runs AMX's tile instructions on machines without them: the processor reports each one as an
// illegal instruction, and a signal handler does what the instruction would have done. So the very
// code that runs on a machine with AMX is tested on others, slowly. Where the processor has tiles
// it must not be used (tests/backends/tiles_here.h): some instructions would run in the processor.
#pragma once

#include <array>
#include <cstdint>

namespace cairn::test {

#if defined(__x86_64__)
// The sixteen general registers, as instructions number them.
using TileRegisters = std::array<int64_t, 16>;

// Does what the tile instruction at `code` does to the calling thread's emulated tiles and to
// memory; returns the instruction's length. Ends the program, with exit status 99, where it breaks
// a rule or is another instruction. Needs no trap, so that it can be tested on any machine.
int emulate_tile_instruction(const uint8_t* code, const TileRegisters& registers);

// While it lives, tile instructions that trap are emulated in all threads. One at a time.
class TileEmulator {
 public:
  TileEmulator();
  ~TileEmulator();
  TileEmulator(const TileEmulator&) = delete;
  TileEmulator& operator=(const TileEmulator&) = delete;

  // Instructions that trapped since the program started.
  static long count();
};
#endif

}  // namespace cairn::test
