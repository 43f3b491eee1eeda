// CLI11 parses; environment variables are read behind it.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/env.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process.h"
#include "cli/exit_codes.h"

namespace cairn::cli {

namespace {

constexpr const char* kLevels[] = {"debug", "info", "warning", "error", "off"};  // log::Level.

constexpr char kNotes[] =
    "Every option is also an environment variable: --max-tokens is CAIRN_MAX_TOKENS. The command "
    "line wins.\nExit codes: 0 success, 1 error, 2 wrong usage, 3 a mapped model file shrank, 4 "
    "the "
    "answer was cut off before it had the requested form, 130 interrupted.\n";

// "--top-k" → "CAIRN_TOP_K"; positional MODEL → "CAIRN_MODEL".
std::string variable_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  std::string variable = "CAIRN_" + (names.empty() ? option.get_name(true) : names.front());
  for (char& c : variable) {
    if (c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  }
  return variable;
}

bool has_variable(const CLI::App& command, const CLI::Option& option) {
  return command.get_parent() != nullptr && &option != command.get_help_ptr();
}

OptionEntry entry_of(const CLI::App& command, const CLI::Option& option,
                     const Declarations& declarations) {
  OptionEntry entry{.group = option.get_group(), .doc = option.get_description()};
  entry.is_argument = option.get_positional();
  if (entry.is_argument) entry.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) {
    const std::string typed = "--" + name;
    entry.names.push_back(typed);
    for (const auto& [spelling, means] : declarations.spellings) {
      if (means == typed) entry.names.push_back(spelling);
    }
  }
  if (has_variable(command, option)) entry.variable = variable_of(option);
  const auto found = declarations.details.find(&option);
  if (found == declarations.details.end()) return entry;
  entry.value = found->second.value;
  entry.choices = found->second.choices;
  entry.is_required = found->second.is_required;
  entry.is_repeatable = found->second.is_repeatable || option.get_items_expected_max() > 1;
  entry.default_text = option.get_default_str();
  if (entry.default_text.starts_with('[')) {  // A list.
    entry.default_text = entry.default_text.substr(1, entry.default_text.size() - 2);
  }
  return entry;
}

CommandEntry entry_of(const CLI::App& command, const Declarations& declarations) {
  CommandEntry entry{.name = command.get_name(), .doc = command.get_description()};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // Hidden.
    entry.options.push_back(entry_of(command, *option, declarations));
  }
  // Arguments stand first, --help last.
  std::stable_partition(entry.options.begin(), entry.options.end(),
                        [](const OptionEntry& option) { return option.is_argument; });
  const auto help =
      std::find_if(entry.options.begin(), entry.options.end(), [](const auto& option) {
        return std::find(option.names.begin(), option.names.end(), "--help") != option.names.end();
      });
  if (help != entry.options.end()) std::rotate(help, help + 1, entry.options.end());
  const auto found = declarations.examples.find(&command);
  if (found != declarations.examples.end()) entry.examples = found->second;
  entry.notes = command.get_footer();
  return entry;
}

// An option whose value is a variable's.
struct Taken {
  const CLI::Option* option;
  std::string variable, value;
};

// Whether another option, of the command line, stands in the way of this one. Errors: one of a
// variable does.
Result<bool> is_excluded(const CLI::Option& option, std::span<const Taken> taken) {
  for (const CLI::Option* rival : option.get_excludes()) {
    if (rival->count() == 0) continue;
    const auto other = std::find_if(taken.begin(), taken.end(),
                                    [&](const Taken& one) { return one.option == rival; });
    if (other == taken.end()) return true;
    return fail(ErrorCode::invalid_argument, "{}: expected it or {}, found both",
                variable_of(option), other->variable);
  }
  return false;
}

// Gives options that the command line left out their variables' values.
Result<std::vector<Taken>> take_variables(CLI::App& command, const Declarations& declarations) {
  std::vector<Taken> taken;
  for (CLI::Option* option : command.get_options()) {
    if (!has_variable(command, *option) || option->count() > 0) continue;
    const std::string variable = variable_of(*option);
    const auto value = env(variable.c_str());
    if (!value || value->empty()) continue;
    CAIRN_TRY(const bool is_left_out, is_excluded(*option, taken));
    if (is_left_out) continue;
    try {
      option->add_result(*value);
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      return fail(ErrorCode::invalid_argument, "{}: {}", variable, error.what());
    }
    taken.push_back({option, variable, *value});
    const auto found = declarations.details.find(option);
    if (found != declarations.details.end() && found->second.is_variable != nullptr) {
      *found->second.is_variable = true;
    }
  }
  return taken;
}

// Whether a message is about the option: names it, or begins with what it was given.
bool is_about(std::string_view message, const Taken& one) {
  const auto ends_name = [&](size_t at) {
    return at >= message.size() || (message[at] != '-' && std::isalnum(uint8_t(message[at])) == 0);
  };
  std::vector<std::string> names = one.option->get_lnames();
  if (one.option->get_positional()) names.push_back(one.option->get_name(true));
  for (const std::string& name : names) {
    if (message.starts_with(name + ":")) return true;
    const size_t at = message.find("--" + name);
    if (at != std::string_view::npos && ends_name(at + 2 + name.size())) return true;
  }
  return message.starts_with(one.value + ":");
}

std::string with_variables(std::string message, std::span<const Taken> taken) {
  std::string variables;
  for (const Taken& one : taken) {
    if (is_about(message, one)) variables += (variables.empty() ? "" : ", ") + one.variable;
  }
  return variables.empty() ? message : message + " (from " + variables + ")";
}

// An argument that is there and empty is a variable of the shell that was never set. It must not
// mean the same as no argument.
Status check_arguments(const CLI::App& command, const Declarations& declarations) {
  for (const CLI::Option* option : command.get_options()) {
    const auto found = declarations.details.find(option);
    if (found != declarations.details.end() && found->second.is_required && option->empty()) {
      return fail(ErrorCode::invalid_argument, "{}: expected a value, found none",
                  option->get_name(option->get_positional()));
    }
    const auto& words = option->results();
    const auto empty = std::find(words.begin(), words.end(), "");
    if (!option->get_positional() || empty == words.end()) continue;
    const std::string which = option->get_items_expected_max() > 1
                                  ? fmt::format(" {}", empty - words.begin() + 1)
                                  : std::string();
    return fail(ErrorCode::invalid_argument, "{}{}: expected at least a character, found none",
                option->get_name(true), which);
  }
  return Ok{};
}

// The arguments behind the program's name in the parser's order, which is the reverse.
std::vector<std::string> words_of(int argument_count, char** arguments,
                                  const std::map<std::string, std::string>& spellings) {
  std::vector<std::string> words(arguments + std::min(argument_count, 1),
                                 arguments + argument_count);
  for (std::string& word : words) {
    if (word == "--") break;
    const size_t end = std::min(word.find('='), word.size());
    const auto found = spellings.find(word.substr(0, end));
    if (found != spellings.end()) word.replace(0, end, found->second);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

// Messages begin with an option's first long name, or that of an argument. Whoever typed another
// name of it reads that one.
std::string as_typed(const std::string& message, const CLI::App& command,
                     const Declarations& declarations, std::span<char* const> arguments) {
  for (const CLI::Option* option : command.get_options()) {
    const OptionEntry entry = entry_of(command, *option, declarations);
    const std::string name = option->get_name(option->get_lnames().empty());
    if (!message.starts_with(name + ":") && !message.starts_with(name + " ")) continue;
    for (const std::string_view word : arguments) {
      const std::string typed(word.substr(0, word.find('=')));
      if (std::find(entry.names.begin(), entry.names.end(), typed) == entry.names.end()) continue;
      return typed + message.substr(name.size());
    }
  }
  return message;
}

// A message of one line, whatever it quotes.
int complain(std::string_view message, int exit_code) {
  std::string line = printable(message);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::fprintf(stderr, "cairn: %s\n", line.c_str());
  return exit_code;
}

// The exit code of a command that has printed all, or that of an output that did not take it.
int finish_output(int exit_code) {
  if (exit_code != kExitFine || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)) {
    return exit_code;
  }
  return complain(fmt::format("standard output: cannot write: {}", std::strerror(errno)),
                  kExitError);
}

// The action's result, also where memory or threads are not to be had.
Result<int> carry_out(const std::string& command, const Action& action) {
  try {
    return action();
  } catch (...) {
    return fail(ErrorCode::no_room, "{}: {}", command, exception_text());
  }
}

// How many letters have to be put in, left out or changed to make one word of the other.
size_t distance_of(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({changed, row[j] + 1, row[j + 1] + 1}));
    }
  }
  return row.back();
}

// What to say of a first word that is no command; empty where it is one or an option.
std::string mistake_of(std::string_view word, std::span<const Command* const> commands) {
  if (word.starts_with('-')) return "";
  std::string names;
  std::string_view nearest;
  size_t nearest_distance = 3;  // A word with more mistakes than two is another one.
  for (const Command* command : commands) {
    if (word == command->name) return "";
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command->name);
    const size_t distance = distance_of(word, command->name);
    if (distance < std::min(nearest_distance, std::string_view(command->name).size())) {
      nearest = command->name;
      nearest_distance = distance;
    }
  }
  std::string hint;
  if (word.ends_with(".gguf")) {
    hint = fmt::format("; did you mean `cairn run {}`?", word);
  } else if (!nearest.empty()) {
    hint = fmt::format("; did you mean {}?", nearest);
  }
  return fmt::format("expected a command ({}), found \"{}\"{}", names, word, hint);
}

// A message where the text is no number of 64 bits.
std::string check_unsigned(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end) return "";
  return fmt::format("expected a whole number from 0 to {}, found \"{}\"", UINT64_MAX, text);
}

}  // namespace

Option Option::in_range(int32_t min, int32_t max) const {
  option_->check(CLI::Range(min, max));
  return *this;
}

Option Option::one_of(std::vector<std::string> texts) const {
  detail_->choices = texts;
  option_->check(CLI::IsMember(std::move(texts)));
  return *this;
}

Option Option::repeatable() const {
  detail_->is_repeatable = true;
  option_->expected(1)->allow_extra_args(false)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeAll);
  return *this;
}

Option Option::separated_by(char separator) const {
  option_->delimiter(separator)->allow_extra_args(false);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::required() const {
  detail_->is_required = true;
  return *this;
}

Option Option::takes(const std::string& value) const {
  detail_->value = value;
  if (value.starts_with("FILE") || value == "DIR") option_->transform(&with_home);
  return *this;
}

Option Option::notes_variable(bool& is_variable) const {
  detail_->is_variable = &is_variable;
  return *this;
}

Option Option::suggests(std::vector<std::string> texts) const {
  detail_->choices = std::move(texts);
  return *this;
}

Option Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::with_default_text(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Option Option::hidden() const {
  option_->group("");
  return *this;
}

Option Options::declare(CLI::Option* option, std::string value) {
  option->group(group_);
  OptionDetail& detail = declarations_->details[option];
  detail.value = std::move(value);
  return Option(option, &detail);
}

std::string Options::known_names(const std::string& names) {
  std::string known, last_long;
  for (const std::string& name : CLI::detail::split(names, ',')) {
    if (name.size() > 2 && name[0] == '-' && name[1] != '-') {
      declarations_->spellings[name] = last_long;
      continue;
    }
    if (name.starts_with("--")) last_long = name;
    known += (known.empty() ? "" : ",") + name;
  }
  return known;
}

template <class T>
Option Options::add(const std::string& names, T& value, const std::string& doc) {
  constexpr bool is_text = std::is_same_v<T, std::string> ||
                           std::is_same_v<T, std::optional<std::string>> ||
                           std::is_same_v<T, std::vector<std::string>>;
  CLI::Option* option = command_->add_option(known_names(names), value, doc);
  // The parser takes the least number for the largest, and what is too large for it as well.
  constexpr bool is_unsigned =
      std::is_same_v<T, uint64_t> || std::is_same_v<T, std::optional<uint64_t>>;
  if constexpr (is_unsigned) option->check(&check_unsigned);
  return declare(option, is_text ? "TEXT" : "N");
}

template Option Options::add(const std::string&, std::string&, const std::string&);
template Option Options::add(const std::string&, int32_t&, const std::string&);
template Option Options::add(const std::string&, uint64_t&, const std::string&);
template Option Options::add(const std::string&, std::optional<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::optional<int32_t>&, const std::string&);
template Option Options::add(const std::string&, std::optional<uint64_t>&, const std::string&);
template Option Options::add(const std::string&, std::optional<double>&, const std::string&);
template Option Options::add(const std::string&, std::vector<std::string>&, const std::string&);
template Option Options::add(const std::string&, std::vector<int32_t>&, const std::string&);

Option Options::add_flag(const std::string& names, bool& value, const std::string& doc) {
  return declare(command_->add_flag(known_names(names), value, doc), "");
}

void Options::add_example(const std::string& line, const std::string& doc) {
  declarations_->examples[command_].push_back({line, doc});
}

void Options::set_notes(const std::string& lines) {
  command_->footer(lines);
}

namespace {

// A parser of all commands, what was declared beside it, and what each command does.
struct CommandLine {
  explicit CommandLine(const Program& program) : app(program.doc, "cairn") {
    app.set_version_flag("--version", std::function<std::string()>(program.version_text),
                         "show the version, the numerics and the instruction set");
    app.set_help_flag("-h,--help", "show this help");
    app.require_subcommand(0, 1);
    Options own(&app, &declarations);
    own.add("--completion", shell, "print the completions of bash, zsh or fish").takes("SHELL");
    own.add_flag("--man-page", wants_manual, "print the manual page (man 7 source)");
    for (const Example& example : program.examples) own.add_example(example.line, example.doc);
    for (const Command* command : program.commands) {
      CLI::App* parser = app.add_subcommand(command->name, command->doc);
      Options options(parser, &declarations);
      commands.emplace_back(parser, command->add(options));
      options.begin_group("Messages");
      options.add("--log-level", log_level, "show messages of this level and above")
          .takes("LEVEL")
          .one_of({std::begin(kLevels), std::end(kLevels)});
      options
          .add("--log-file", log_file,
               "append messages to this file instead of writing them to stderr")
          .takes("FILE");
    }
  }

  Reference reference(const Program& program) const {
    Reference all{.program = entry_of(app, declarations),
                  .commands = {},
                  .notes = kNotes,
                  .version = program.version};
    for (const auto& [parser, action] : commands) {
      all.commands.push_back(entry_of(*parser, declarations));
    }
    return all;
  }

  const CLI::App* parsed() const {
    for (const auto& [parser, action] : commands) {
      if (parser->parsed()) return parser;
    }
    return nullptr;
  }

  CLI::App app;
  Declarations declarations;
  std::vector<std::pair<CLI::App*, Action>> commands;
  std::string shell, log_level, log_file;
  bool wants_manual = false;
};

// Before the command runs: its own defaults come first.
Status set_log(const CommandLine& line) {
  const auto level = std::find(std::begin(kLevels), std::end(kLevels), line.log_level);
  if (level != std::end(kLevels)) log::set_level(log::Level(level - std::begin(kLevels)));
  return line.log_file.empty() ? Ok{} : log::set_file(line.log_file);
}

std::string help_of(const CommandLine& line, const Program& program) {
  const Reference reference = line.reference(program);
  if (line.parsed() == nullptr) return help_of_program(reference);
  return help_of_command(reference, entry_of(*line.parsed(), line.declarations));
}

// What is printed where no command is named.
Result<std::string> text_without_command(const CommandLine& line, const Program& program) {
  if (!line.shell.empty()) return completion_script(line.reference(program), line.shell);
  if (line.wants_manual) return manual_page(line.reference(program));
  return program.welcome();
}

int run_command(const CommandLine& line, CLI::App& command, const Action& action,
                std::span<char* const> arguments) {
  const Declarations& declarations = line.declarations;
  Result<std::vector<Taken>> taken = take_variables(command, declarations);
  if (!taken) {
    return complain(
        fmt::format("{} (see cairn {} --help)", taken.error().message, command.get_name()),
        kExitUsage);
  }
  Status checked = check_arguments(command, declarations);
  if (checked) checked = set_log(line);
  Result<int> code = checked ? carry_out(command.get_name(), action) : checked.error();
  if (code) return finish_output(*code);
  const bool is_usage = code.error().code == ErrorCode::invalid_argument;
  const std::string message = with_variables(code.error().message, *taken);
  return complain(as_typed(message, command, declarations, arguments),
                  is_usage ? kExitUsage : kExitError);
}

int print(Result<std::string> text) {
  if (!text) return complain(text.error().message, kExitUsage);
  std::fwrite(text->data(), 1, text->size(), stdout);
  return finish_output(kExitFine);
}

}  // namespace

int run_command_line(const Program& program, int argument_count, char** arguments) {
  if (argument_count > 1) {
    const std::string mistake = mistake_of(arguments[1], program.commands);
    if (!mistake.empty()) return complain(mistake, kExitUsage);
  }
  CommandLine line(program);
  const std::span<char* const> words(arguments, size_t(argument_count));
  try {
    line.app.parse(words_of(argument_count, arguments, line.declarations.spellings));
  } catch (const CLI::CallForHelp&) {
    return print(help_of(line, program));
  } catch (const CLI::CallForVersion& version) {
    return print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    const CLI::App& parsed = line.parsed() != nullptr ? *line.parsed() : line.app;
    const std::string name = line.parsed() != nullptr ? parsed.get_name() + " " : "";
    return complain(fmt::format("{} (see cairn {}--help)",
                                as_typed(error.what(), parsed, line.declarations, words), name),
                    kExitUsage);
  }
  for (auto& [parser, action] : line.commands) {
    if (parser->parsed()) return run_command(line, *parser, action, words);
  }
  return print(text_without_command(line, program));
}

Error as_option(const Error& error) {
  return fail(error.code, "--{}", error.message);
}

}  // namespace cairn::cli
