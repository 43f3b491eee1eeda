// What is written about commands and options: --help, the manual page, the completions of shells.
// All are made from one description, so that none lacks what another has. Thread-safe: functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::command_line {

struct OptionEntry {
  std::string group;  // The heading that it stands under.
  std::vector<std::string>
      names;                 // As they are typed: "-n", "--max-tokens". Of an argument: "FILE".
  std::string value;         // What follows: FILE, N, TEXT…; empty: nothing does.
  std::string doc;           // Plain words; lines that end in "\n" stay lines.
  std::string default_text;  // Empty: not shown.
  std::string variable;      // Of the environment.
  std::vector<std::string> choices;  // All values that there are; empty: not a list.
  bool is_argument = false;          // Known by its place, whether or not it has names too.
  bool is_required = false;
  bool is_repeatable = false;
};

struct Example {
  std::string line;  // "cairn run MODEL.gguf".
  std::string doc;
};

struct CommandEntry {
  std::string name;                  // "run"; empty: the program.
  std::string doc;                   // One line, lower case.
  std::vector<OptionEntry> options;  // In the order of the help.
  std::vector<Example> examples;
  std::string notes;  // Whole lines; may be empty.
};

// All of a program: its own options first, then each command.
struct Reference {
  CommandEntry program;
  std::vector<CommandEntry> commands;
  std::string notes;    // Ends the help of each command.
  std::string version;  // "0.1.0".
};

std::string help_of_program(const Reference& reference);
std::string help_of_command(const Reference& reference, const CommandEntry& command);

// man(7) source of cairn(1).
std::string manual_page(const Reference& reference);

// A script that completes commands, options and files. shell: "bash", "zsh" or "fish". Errors:
// invalid_argument, another shell.
Result<std::string> completion_script(const Reference& reference, std::string_view shell);

}  // namespace cairn::command_line
