// The command line as data: commands, and the options of each one. A value is looked for on the
// command line, then in the environment variable CAIRN_ and the option's name in capitals; where
// neither has it, in the command's preset, if it has one; else it stays as it is. Knows no command;
// the only user of CLI11, which no header includes. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "command_line/reference.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cairn::command_line {

// What the parser does not know of an option.
struct OptionDetail {
  std::string value;                 // As in OptionEntry.
  std::vector<std::string> choices;  // Likewise.
  bool is_required = false;
  bool is_repeatable = false;
  bool is_preset = false;       // A preset may give the value.
  bool* is_variable = nullptr;  // Becomes true where a variable gives the value.
};

// A value of an option that neither the command line nor a variable has: a preset's.
struct PresetText {
  std::string option;              // Without dashes: "top-k".
  std::vector<std::string> texts;  // As they would be typed.
  std::string source;              // "FILE:LINE".
};
// Called when the rest is known.
using ReadPreset = std::function<Result<std::vector<PresetText>>()>;

// Beside the parser, for all commands.
struct Declarations {
  std::map<const CLI::Option*, OptionDetail> details;
  // Names of one dash and several letters, such as "-sys", and the names that they stand for.
  std::map<std::string, std::string> spellings;
  std::map<const CLI::App*, std::vector<Example>> examples;
  std::map<const CLI::App*, ReadPreset> presets;
};

// How an option is read and what its help shows. A handle: copies mean the same option.
class Option {
 public:
  Option(CLI::Option* option, OptionDetail* detail) : option_(option), detail_(detail) {}

  Option in_range(int32_t min, int32_t max) const;
  Option one_of(std::vector<std::string> texts) const;
  // One value each time; may be given several times, and the last does not replace the others.
  Option repeatable() const;
  // Several values in one word.
  Option separated_by(char separator) const;
  Option excludes(Option other) const;
  // An error where neither the command line nor a variable has it.
  Option required() const;
  // `is_variable`, which has to outlive the parsing, becomes true where a variable gives the value.
  Option notes_variable(bool& is_variable) const;
  // What the help calls the value: FILE, DIR (shells complete these, and "~/" at the beginning is
  // the home folder), N, TEXT. Without: TEXT or N.
  Option takes(const std::string& value) const;
  // Values that shells complete; others are possible, or the command checks them.
  Option suggests(std::vector<std::string> texts) const;
  // The help shows the value that the option has now.
  Option shows_default() const;
  Option with_default_text(const std::string& text) const;
  // Not in the help.
  Option hidden() const;
  // A preset may give the value.
  Option may_be_preset() const;

 private:
  CLI::Option* option_;
  OptionDetail* detail_;
};

// The options of a command. Where values are kept has to outlive the parsing.
class Options {
 public:
  Options(CLI::App* command, Declarations* declarations)
      : command_(command), declarations_(declarations) {}

  // `names`: "-t,--threads", or "MODEL" for an argument that is known by its place, or both. A name
  // such as "-sys" stands behind one with two dashes, and means the same in all commands. T:
  // std::string, int32_t, uint64_t, double, a std::optional or a std::vector of one; the linker
  // says which ones command_line.cpp lacks.
  template <class T>
  Option add(const std::string& names, T& value, const std::string& doc);
  Option add_flag(const std::string& names, bool& value, const std::string& doc);
  // Options that are added from here on stand under this heading of the help. `is_preset`: presets
  // may give their values.
  void begin_group(const std::string& name, bool is_preset = false) {
    group_ = name;
    is_preset_ = is_preset;
  }
  // Where the values of a preset come from, which every command with presets has to know.
  void set_preset(ReadPreset read);
  void add_example(const std::string& line, const std::string& doc);
  // Lines behind the options.
  void set_notes(const std::string& lines);

 private:
  Option declare(CLI::Option* option, std::string value);
  // The names that the parser takes; it knows none of one dash and several letters.
  std::string known_names(const std::string& names);

  CLI::App* command_;
  Declarations* declarations_;
  std::string group_ = "Options";
  bool is_preset_ = false;
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
  std::vector<Example> examples;
  const char* version;            // "0.1.0".
  std::string (*version_text)();  // What --version prints.
  std::string (*welcome)();       // What is printed where no command is named.
};

// Runs the command that the arguments name. Errors become a line on stderr. Returns the exit code.
int run_command_line(const Program& program, int argument_count, char** arguments);

// The error of a module that names a field, "width: …", for a person who typed it: "--width: …".
Error as_option(const Error& error);

}  // namespace cairn::command_line
