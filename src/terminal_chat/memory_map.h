// A conversation's memory as a drawing: a line for each group of layers, a cell for a stretch of
// tokens. Thread-safe: pure.
#pragma once

#include <span>
#include <string>

#include "memory/memory.h"

namespace cairn::terminal_chat {

// Lines such as
//   kind            tokens            held shared      bytes
//   full              1365      43 pages       43    3.2 MiB  ████████████████
//   window 512         981      31 pages       31   11.0 MiB  ░░░░████▒▒██████
//   recurrent                    4 states       0    221 MiB  |      |     | |
// where a cell is full, part or not held, and a bar is a position with a state.
std::string memory_map(const memory::Memory& memory, const memory::Sequence& sequence);

}  // namespace cairn::terminal_chat
