// CLI11 parses; what the command line leaves out may be variables'.
#include "command_line/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/env.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process.h"
#include "base/text/nearest_name.h"
#include "command_line/exit_codes.h"
#include "command_line/other_programs.h"
#include "command_line/parse_errors.h"
#include "command_line/variables.h"

namespace cairn::command_line {

namespace {

constexpr const char* kLevels[] = {"debug", "info", "warning", "error", "off"};  // log::Level.

constexpr char kNotes[] =
    "Every option is also an environment variable: --max-tokens is CAIRN_MAX_TOKENS. The command "
    "line wins.\nExit codes: 0 success, 1 error, 2 wrong usage, 3 a mapped model file shrank, 4 "
    "the answer was cut off before it had the requested form, 5 a replay differs from its receipt, "
    "130 interrupted.\n";

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
  entry.variable = variable_of(command, option);
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

// The arguments behind the program's name.
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
  // `cairn help run` and `cairn version`, as with other programs.
  if (!words.empty() && words[0] == "version") words[0] = "--version";
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
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
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::memory_full, "{}: {}", command, exception_text());
  } catch (...) {
    return fail(ErrorCode::io, "{}: {}", command, exception_text());
  }
}

// What to say of a first word that is no command; empty where it is one or an option.
std::string mistake_of(const std::string& word, std::span<const Command* const> commands) {
  if (word.starts_with('-') || word == "help" || word == "version") return "";
  std::vector<std::string> names;
  for (const Command* command : commands) names.emplace_back(command->name);
  if (std::find(names.begin(), names.end(), word) != names.end()) return "";
  const std::string nearest = nearest_name(word, names);
  std::string hint;
  if (const std::string_view advice = advice_for_command(word); !advice.empty()) {
    hint = fmt::format("; {}", advice);
  } else if (word.ends_with(".gguf")) {
    hint = fmt::format("; did you mean `cairn run {}`?", word);
  } else if (!nearest.empty()) {
    hint = fmt::format("; did you mean {}?", nearest);
  }
  return fmt::format("expected a command ({}), found \"{}\"{}", fmt::join(names, ", "), word, hint);
}

// A message where the text is no whole number within the limits.
template <class T>
std::string check_integer(const std::string& text, T min, T max) {
  T number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && min <= number && number <= max) return "";
  return fmt::format("expected a whole number from {} to {}, found \"{}\"", min, max, text);
}

}  // namespace

Option Option::in_range(int32_t min, int32_t max) const {
  option_->check([=](const std::string& text) { return check_integer(text, min, max); });
  return *this;
}

Option Option::one_of(std::vector<std::string> texts) const {
  detail_->choices = texts;
  option_->check([texts = std::move(texts)](const std::string& text) {
    if (std::find(texts.begin(), texts.end(), text) != texts.end()) return std::string();
    return fmt::format("expected one of {}, found \"{}\"", fmt::join(texts, ", "), text);
  });
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

Option Option::may_be_preset() const {
  detail_->is_preset = true;
  return *this;
}

void Options::set_preset(ReadPreset read) {
  declarations_->presets[command_] = std::move(read);
}

Option Options::declare(CLI::Option* option, std::string value) {
  option->group(group_);
  OptionDetail& detail = declarations_->details[option];
  detail.value = std::move(value);
  detail.is_preset = is_preset_;
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
  if constexpr (is_unsigned) {
    option->check(
        [](const std::string& text) { return check_integer(text, uint64_t(0), UINT64_MAX); });
  }
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

  // What to say of options that the command in the first word does not have.
  std::string mistaken(std::span<const std::string> words) const {
    const CLI::App* command = &app;
    for (const auto& [parser, action] : commands) {
      if (!words.empty() && parser->get_name() == words[0]) command = parser;
    }
    const bool is_named = command != &app;
    const std::string message =
        mistaken_options(*command, declarations, words.subspan(is_named ? 1 : 0));
    if (message.empty()) return message;
    return fmt::format("{} (see cairn {}--help)", message,
                       is_named ? command->get_name() + " " : "");
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
  if (Status preset = take_preset(command, declarations, *taken); !preset) {
    return complain(preset.error().message, kExitUsage);
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
  std::vector<std::string> typed = words_of(argument_count, arguments, line.declarations.spellings);
  if (const std::string mistaken = line.mistaken(typed); !mistaken.empty()) {
    return complain(mistaken, kExitUsage);
  }
  try {
    std::reverse(typed.begin(), typed.end());  // The parser's order.
    line.app.parse(std::move(typed));
  } catch (const CLI::CallForHelp&) {
    return print(help_of(line, program));
  } catch (const CLI::CallForVersion& version) {
    return print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    const CLI::App& parsed = line.parsed() != nullptr ? *line.parsed() : line.app;
    const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const std::string message = has_extras ? message_of_extras(parsed) : message_of(error);
    const std::string name = line.parsed() != nullptr ? parsed.get_name() + " " : "";
    return complain(fmt::format("{} (see cairn {}--help)",
                                as_typed(message, parsed, line.declarations, words), name),
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

}  // namespace cairn::command_line
