// What stands in for options: environment variables (CAIRN_ and the option's name in capitals), and
// then presets. They give values to options that the command line left out, and errors about those
// values name them.
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
  std::string variable, value;  // Of a preset its file and line.
};

// Gives options that the command line left out their variables' values. Errors: invalid_argument, a
// value that the option refuses; two variables whose options exclude each other. The command line
// wins over a variable that it excludes.
Result<std::vector<Taken>> take_variables(CLI::App& command, const Declarations& declarations);

// Gives options that neither the command line nor a variable has what the command's preset says,
// and adds them to `taken`; does nothing where the command has none. What other commands with
// presets have alone is left out. Errors: those of reading it; invalid_argument, with the file and
// the line: no such option, a value that the option refuses.
Status take_preset(CLI::App& command, const Declarations& declarations, std::vector<Taken>& taken);

// The message, and which of the variables it is about.
std::string with_variables(const std::string& message, std::span<const Taken> taken);

}  // namespace cairn::command_line
