// What the program's exit codes mean (README.md lists them). 3 is base/mapped_file.h's.
#pragma once

namespace cairn::command_line {

constexpr int kExitFine = 0;
constexpr int kExitError = 1;          // The message on stderr says what.
constexpr int kExitUsage = 2;          // The command line makes no sense.
constexpr int kExitModelGone = 3;      // A mapped model file shrank while it was read.
constexpr int kExitCut = 4;            // The answer was cut off before it had the requested form.
constexpr int kExitDiffers = 5;        // A replay is not what its receipt says.
constexpr int kExitInterrupted = 130;  // Ctrl-C, as shells count it: 128 + SIGINT.

}  // namespace cairn::command_line
