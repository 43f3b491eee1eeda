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
#include "base/printable.h"
#include "base/process.h"
#include "cli/exit_codes.h"

namespace cairn::cli {

namespace {

constexpr char kFooter[] =
    "Every option is also an environment variable, named in brackets; the command line wins.\n"
    "Exit codes: 0 fine, 1 error, 2 usage, 3 a mapped model file shrank, 130 interrupted.";

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
  return &option != command.get_help_ptr();
}

void name_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (!has_variable(command, *option)) continue;
    option->description(option->get_description() + " [" + variable_of(*option) + "]");
  }
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
Result<std::vector<Taken>> take_variables(CLI::App& command, const Options::Watched& watched) {
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
    if (const auto found = watched.find(option); found != watched.end()) *found->second = true;
  }
  return taken;
}

// Whether a message is about the option: names it, or begins with what it was given.
bool is_about(std::string_view message, const Taken& one) {
  const auto ends_name = [&](size_t at) {
    return at >= message.size() || (message[at] != '-' && std::isalnum(message[at]) == 0);
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
Status check_arguments(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
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
                                  const Options::Spellings& spellings) {
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

int run_command(CLI::App& command, const Action& action, const Options::Watched& watched) {
  Result<std::vector<Taken>> taken = take_variables(command, watched);
  if (!taken) return complain(taken.error().message + " (see cairn --help)", kExitUsage);
  const Status checked = check_arguments(command);
  Result<int> code = checked ? carry_out(command.get_name(), action) : checked.error();
  if (code) return finish_output(*code);
  const bool is_usage = code.error().code == ErrorCode::invalid_argument;
  return complain(with_variables(code.error().message, *taken), is_usage ? kExitUsage : kExitError);
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
  option_->check(CLI::IsMember(std::move(texts)));
  return *this;
}

Option Option::repeatable() const {
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

Option Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::with_default_text(const std::string& text) const {
  option_->default_str(text);
  return *this;
}

Option Option::with_type_text(const std::string& text) const {
  option_->type_name(text);
  return *this;
}

Option Option::hidden() const {
  option_->group("");
  return *this;
}

template <class T>
Option Options::add(const std::string& names, T& value, const std::string& doc) {
  std::string known, last_long;
  for (const std::string& name : CLI::detail::split(names, ',')) {
    if (name.size() > 2 && name[0] == '-' && name[1] != '-') {
      (*spellings_)[name] = last_long;
      continue;
    }
    if (name.starts_with("--")) last_long = name;
    known += (known.empty() ? "" : ",") + name;
  }
  CLI::Option* option = command_->add_option(known, value, doc);
  // The parser takes the least number for the largest, and what is too large for it as well.
  constexpr bool is_unsigned =
      std::is_same_v<T, uint64_t> || std::is_same_v<T, std::optional<uint64_t>>;
  if constexpr (is_unsigned) option->check(&check_unsigned);
  return Option(option);
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
  return Option(command_->add_flag(names, value, doc));
}

void Options::watch(Option option, bool& is_variable) {
  (*watched_)[option.option_] = &is_variable;
}

void Options::set_footer(const std::string& lines) {
  command_->footer(lines + kFooter);
}

int run_command_line(const Program& program, int argument_count, char** arguments) {
  if (argument_count > 1) {
    const std::string mistake = mistake_of(arguments[1], program.commands);
    if (!mistake.empty()) return complain(mistake, kExitUsage);
  }
  CLI::App app(program.doc, "cairn");
  app.set_version_flag("--version", std::function<std::string()>(program.version));
  app.require_subcommand(0, 1);
  app.footer(kFooter);  // Of its commands too.
  std::vector<std::pair<CLI::App*, Action>> commands;
  Options::Spellings spellings;
  Options::Watched watched;
  for (const Command* command : program.commands) {
    CLI::App* parser = app.add_subcommand(command->name, command->doc);
    Options options(parser, &spellings, &watched);
    commands.emplace_back(parser, command->add(options));
    name_variables(*parser);
  }
  try {
    app.parse(words_of(argument_count, arguments, spellings));
  } catch (const CLI::ParseError& error) {
    // Help or version was asked for.
    if (error.get_exit_code() == 0) return finish_output(app.exit(error));
    return complain(std::string(error.what()) + " (see cairn --help)", kExitUsage);
  }
  for (auto& [parser, action] : commands) {
    if (parser->parsed()) return run_command(*parser, action, watched);
  }
  std::fputs(program.welcome().c_str(), stdout);
  return finish_output(kExitFine);
}

Status require(std::string_view option, const std::string& value) {
  if (!value.empty()) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected a value, found none", option);
}

Error as_option(const Error& error) {
  return fail(error.code, "--{}", error.message);
}

}  // namespace cairn::cli
