// Environment variables that stand in for options: CAIRN_ and the option's name in capitals. They
// give values to options that the command line left out, and errors about those values name them.
// Thread rule: one thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "command_line/command_line.h"

namespace cairn::command_line {

// Of an option of a command; empty where it has none: --help, and the program's own options.
std::string variable_of(const CLI::App& command, const CLI::Option& option);

// An option whose value is a variable's.
struct Taken {
  const CLI::Option* option;
  std::string variable, value;
};

// Gives options that the command line left out their variables' values. Errors: invalid_argument, a
// value that the option refuses; two variables whose options exclude each other. The command line
// wins over a variable that it excludes.
Result<std::vector<Taken>> take_variables(CLI::App& command, const Declarations& declarations);

// The message, and which of the variables it is about.
std::string with_variables(const std::string& message, std::span<const Taken> taken);

}  // namespace cairn::command_line
