// What the parser objects to, in the words of all other errors: the option, what was expected, what
// was found. Thread-safe: functions.
#pragma once

#include <span>
#include <string>

#include "command_line/command_line.h"

namespace CLI {
class Error;
}

namespace cairn::command_line {

// Of an error about one option.
std::string message_of(const CLI::Error& error);

// What to say of the words that look like options and are none of the command's: for each what to
// do instead, or the nearest that there is. Empty where all are known. `words`: behind the command.
// The parser would take such words for others: "-fa" for "-f a", the value of one for an argument.
std::string mistaken_options(const CLI::App& command, const Declarations& declarations,
                             std::span<const std::string> words);

// Of one argument too many. REQUIRES: parsing `command` left words over.
std::string message_of_extras(const CLI::App& command);

}  // namespace cairn::command_line
