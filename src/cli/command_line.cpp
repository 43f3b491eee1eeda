// CLI11 parses; environment variables are read behind it.
#include "cli/command_line.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdio>
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

// A message of one line, whatever it quotes.
int complain(std::string_view message, int exit_code) {
  std::string line = printable(message);
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  std::fprintf(stderr, "cairn: %s\n", line.c_str());
  return exit_code;
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

template <class T>
Option Options::add(const std::string& names, T& value, const std::string& doc) {
  return Option(command_->add_option(names, value, doc));
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
  CLI::App app(program.doc, "cairn");
  app.set_version_flag("--version", std::string("cairn ") + CAIRN_VERSION);
  app.require_subcommand(0, 1);
  app.footer(kFooter);  // Of its commands too.
  std::vector<std::pair<CLI::App*, Action>> commands;
  for (const Command* command : program.commands) {
    CLI::App* parser = app.add_subcommand(command->name, command->doc);
    Options options(parser);
    commands.emplace_back(parser, command->add(options));
    name_variables(*parser);
  }
  try {
    app.parse(argument_count, arguments);
    for (auto& [parser, action] : commands) {
      if (parser->parsed()) take_variables(*parser);
    }
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // Help or version was asked for.
    return complain(std::string(error.what()) + " (see cairn --help)", kExitUsage);
  }
  for (auto& [parser, action] : commands) {
    if (!parser->parsed()) continue;
    Result<int> code = action();
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
