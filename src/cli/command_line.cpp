// CLI11 parses; environment variables are read behind it.
#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/env.h"
#include "base/printable.h"
#include "cli/exit_codes.h"

namespace cairn::cli {

namespace {

constexpr char kNotes[] =
    "Every option is also an environment variable: --max-tokens is CAIRN_MAX_TOKENS. The command "
    "line wins.\nExit codes: 0 success, 1 error, 2 wrong usage, 3 a mapped model file shrank, 130 "
    "interrupted.\n";

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
    entry.names.push_back("--" + name);
    for (const auto& [spelling, means] : declarations.spellings) {
      if (means == entry.names.back()) entry.names.push_back(spelling);
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

// Gives options that the command line left out their variables' values.
void take_variables(CLI::App& command, Declarations& declarations) {
  for (CLI::Option* option : command.get_options()) {
    if (!has_variable(command, *option) || option->count() > 0) continue;
    const auto& rivals = option->get_excludes();
    const bool is_excluded = std::any_of(rivals.begin(), rivals.end(),
                                         [](CLI::Option* rival) { return rival->count() > 0; });
    const auto value = is_excluded ? std::nullopt : env(variable_of(*option).c_str());
    if (!value || value->empty()) continue;
    declarations.details[option].is_from_variable = true;
    option->add_result(*value);
    option->run_callback();
  }
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
// name of it, or set its variable, reads that one.
std::string as_typed(const std::string& message, const CLI::App& command,
                     const Declarations& declarations, std::span<char* const> arguments) {
  for (const CLI::Option* option : command.get_options()) {
    const OptionEntry entry = entry_of(command, *option, declarations);
    const std::string name = option->get_name(option->get_lnames().empty());
    if (!message.starts_with(name + ":") && !message.starts_with(name + " ")) continue;
    const auto found = declarations.details.find(option);
    if (found != declarations.details.end() && found->second.is_from_variable) {
      return entry.variable + message.substr(name.size());
    }
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

template <class T>
Option Options::add(const std::string& names, T& value, const std::string& doc) {
  std::string known, last_long;
  for (const std::string& name : CLI::detail::split(names, ',')) {
    if (name.size() > 2 && name[0] == '-' && name[1] != '-') {
      declarations_->spellings[name] = last_long;
      continue;
    }
    if (name.starts_with("--")) last_long = name;
    known += (known.empty() ? "" : ",") + name;
  }
  constexpr bool is_text = std::is_same_v<T, std::string> ||
                           std::is_same_v<T, std::optional<std::string>> ||
                           std::is_same_v<T, std::vector<std::string>>;
  return declare(command_->add_option(known, value, doc), is_text ? "TEXT" : "N");
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
  return declare(command_->add_flag(names, value, doc), "");
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
  std::string shell;
  bool wants_manual = false;
};

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

Result<int> run_parsed(CommandLine& line, const Program& program) {
  for (auto& [parser, action] : line.commands) {
    if (!parser->parsed()) continue;
    CAIRN_TRY(check_arguments(*parser, line.declarations));
    return action();
  }
  CAIRN_TRY(const std::string text, text_without_command(line, program));
  std::fputs(text.c_str(), stdout);
  return kExitFine;
}

}  // namespace

int run_command_line(const Program& program, int argument_count, char** arguments) {
  if (argument_count > 1) {
    const std::string mistake = mistake_of(arguments[1], program.commands);
    if (!mistake.empty()) return complain(mistake, kExitUsage);
  }
  CommandLine line(program);
  const std::span<char* const> words(arguments, size_t(argument_count));
  const auto told = [&](const std::string& message) {
    const CLI::App* parsed = line.parsed();
    return as_typed(message, parsed != nullptr ? *parsed : line.app, line.declarations, words);
  };
  try {
    line.app.parse(words_of(argument_count, arguments, line.declarations.spellings));
    for (auto& [parser, action] : line.commands) {
      if (parser->parsed()) take_variables(*parser, line.declarations);
    }
  } catch (const CLI::CallForHelp&) {
    std::fputs(help_of(line, program).c_str(), stdout);
    return kExitFine;
  } catch (const CLI::CallForVersion& version) {
    std::fprintf(stdout, "%s\n", version.what());
    return kExitFine;
  } catch (const CLI::ParseError& error) {
    const std::string name = line.parsed() != nullptr ? line.parsed()->get_name() + " " : "";
    return complain(fmt::format("{} (see cairn {}--help)", told(error.what()), name), kExitUsage);
  }
  Result<int> code = run_parsed(line, program);
  if (code) return *code;
  const bool is_usage = code.error().code == ErrorCode::invalid_argument;
  return complain(told(code.error().message), is_usage ? kExitUsage : kExitError);
}

Error as_option(const Error& error) {
  return fail(error.code, "--{}", error.message);
}

}  // namespace cairn::cli
