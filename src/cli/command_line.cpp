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
#include <utility>

#include "base/env.h"
#include "base/printable.h"
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

// Gives options that the command line left out their variables' values.
void take_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (!has_variable(command, *option) || option->count() > 0) continue;
    const auto& rivals = option->get_excludes();
    const bool is_excluded = std::any_of(rivals.begin(), rivals.end(),
                                         [](CLI::Option* rival) { return rival->count() > 0; });
    const auto value = is_excluded ? std::nullopt : env(variable_of(*option).c_str());
    if (!value || value->empty()) continue;
    option->add_result(*value);
    option->run_callback();
  }
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
  return Option(command_->add_option(known, value, doc));
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
  for (const Command* command : program.commands) {
    CLI::App* parser = app.add_subcommand(command->name, command->doc);
    Options options(parser, &spellings);
    commands.emplace_back(parser, command->add(options));
    name_variables(*parser);
  }
  try {
    app.parse(words_of(argument_count, arguments, spellings));
    for (auto& [parser, action] : commands) {
      if (parser->parsed()) take_variables(*parser);
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // Help or version was asked for.
    return complain(std::string(error.what()) + " (see cairn --help)", kExitUsage);
  }
  for (auto& [parser, action] : commands) {
    if (!parser->parsed()) continue;
    const Status checked = check_arguments(*parser);
    Result<int> code = checked ? action() : checked.error();
    if (code) return *code;
    const bool is_usage = code.error().code == ErrorCode::invalid_argument;
    return complain(code.error().message, is_usage ? kExitUsage : kExitError);
  }
  std::fputs(program.welcome().c_str(), stdout);
  return kExitFine;
}

Status require(std::string_view option, const std::string& value) {
  if (!value.empty()) return Ok{};
  return fail(ErrorCode::invalid_argument, "{}: expected a value, found none", option);
}

Error as_option(const Error& error) {
  return fail(error.code, "--{}", error.message);
}

}  // namespace cairn::cli
