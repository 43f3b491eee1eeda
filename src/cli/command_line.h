// The command line as data: commands, and the options of each one. A value is looked for on the
// command line, then in the environment variable CAIRN_ and the option's name in capitals; where
// neither has it, it stays as it is. Knows no command; the only user of CLI11, which no header
// includes. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cairn::cli {

// How an option is read and what its help shows. A handle: copies mean the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option in_range(int32_t min, int32_t max) const;
  Option one_of(std::vector<std::string> texts) const;
  // One value each time; may be given several times, and the last does not replace the others.
  Option repeatable() const;
  // Several values in one word.
  Option separated_by(char separator) const;
  Option excludes(Option other) const;
  // The help shows the value that the option has now.
  Option shows_default() const;
  Option with_default_text(const std::string& text) const;
  Option with_type_text(const std::string& text) const;
  // Not in the help.
  Option hidden() const;

 private:
  friend class Options;
  CLI::Option* option_;
};

// The options of a command. Where values are kept has to outlive the parsing.
class Options {
 public:
  // Names of one dash and several letters, such as "-sys", and the names that stand for them.
  using Spellings = std::map<std::string, std::string>;
  // Options, and what becomes true where a variable gives their value.
  using Watched = std::map<const CLI::Option*, bool*>;

  Options(CLI::App* command, Spellings* spellings, Watched* watched)
      : command_(command), spellings_(spellings), watched_(watched) {}

  // `names`: "-t,--threads", or "MODEL" for an argument that is known by its place, or both. A name
  // such as "-sys" stands behind one with two dashes, and means the same in all commands. T:
  // std::string, int32_t, uint64_t, double, a std::optional or a std::vector of one; the linker
  // says which ones command_line.cpp lacks.
  template <class T>
  Option add(const std::string& names, T& value, const std::string& doc);
  Option add_flag(const std::string& names, bool& value, const std::string& doc);
  // `is_variable`, which has to outlive the parsing, becomes true where a variable gives the value.
  void watch(Option option, bool& is_variable);
  // Lines that end the help, before those that end every help.
  void set_footer(const std::string& lines);

 private:
  CLI::App* command_;
  Spellings* spellings_;
  Watched* watched_;
};

// What a command does when its options have been read. Returns the exit code.
using Action = std::function<Result<int>()>;

struct Command {
  const char* name;
  const char* doc;  // One line.
  Action (*add)(Options& options);
};

struct Program {
  const char* doc;
  std::span<const Command* const> commands;  // In the order of the help.
  std::string (*version)();                  // What --version prints.
  std::string (*welcome)();                  // What is printed where no command is named.
};

// Runs the command that the arguments name. Errors become a line on stderr. Returns the exit code.
int run_command_line(const Program& program, int argument_count, char** arguments);

// For what a command cannot do without. Checked by the command, since a variable may give it.
Status require(std::string_view option, const std::string& value);

// The error of a module that names a field, "width: …", for a person who typed it: "--width: …".
Error as_option(const Error& error);

}  // namespace cairn::cli
