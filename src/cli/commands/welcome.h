// What `cairn` alone and `cairn --version` say: the program, the machine, what to type next.
// Thread-safe: pure.
#pragma once

#include <string>

namespace cairn::cli {

std::string welcome_screen();

// Of this machine's processor: "AVX2 FMA F16C".
std::string feature_names();

// The program, the rules by which it rounds, and the instruction set that it chooses here.
std::string version_text();

}  // namespace cairn::cli
