// What `cairn` alone says: the program, the machine, what to type next. Thread-safe: pure.
#pragma once

#include <string>

namespace cairn::cli {

std::string welcome_screen();

}  // namespace cairn::cli
