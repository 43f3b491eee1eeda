// What the parser objects to, in the words of all other errors: the option, what was expected, what
// was found. Thread-safe: functions.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace CLI {
class Error;
}

namespace cairn::cli {

// Of an error about one option.
std::string message_of(const CLI::Error& error);

// Of words that belong to no option: the first that looks like one, with the nearest that there is,
// else the first that is one argument too many. REQUIRES: parsing `command` left words over.
std::string message_of_extras(const CLI::App& command, const Declarations& declarations);

}  // namespace cairn::cli
