// Runs AMX's tile instructions on machines without them: the processor reports each one as an
// illegal instruction, and a signal handler does what the instruction would have done. So the very
// code that runs on a machine with AMX is tested on others, slowly.
#pragma once

namespace cairn::test {

// While it lives, tile instructions work in all threads. One at a time.
class TileEmulator {
 public:
  TileEmulator();
  ~TileEmulator();
  TileEmulator(const TileEmulator&) = delete;
  TileEmulator& operator=(const TileEmulator&) = delete;

  // Instructions emulated since the program started.
  static long count();
};

}  // namespace cairn::test
