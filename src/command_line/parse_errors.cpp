// CLI11's errors are texts of a few forms, each of which is made into ours. One of another form
// stays as it is.
#include "command_line/parse_errors.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/nearest_name.h"
#include "command_line/other_programs.h"

namespace cairn::command_line {

namespace {

// The text around the first `mark`; both empty where it is not there.
std::pair<std::string, std::string> split_at(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

// As they are typed: "--json", and the spellings that the parser does not know.
std::vector<std::string> option_names(const CLI::App& command, const Declarations& declarations) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // Hidden.
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const auto& [spelling, means] : declarations.spellings) {
    if (std::find(names.begin(), names.end(), means) != names.end()) names.push_back(spelling);
  }
  return names;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? "cairn" : "cairn " + command.get_name();
}

bool looks_like_option(std::string_view word) {
  const bool is_negative =
      word.size() > 1 && (word[1] == '.' || (word[1] >= '0' && word[1] <= '9'));
  return word.size() > 1 && word[0] == '-' && !is_negative;
}

// From the second on: "-syss", not "-n4" or "-s-1".
bool has_letters(std::string_view word) {
  return std::all_of(word.begin() + 1, word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// The first command that has it: `cairn -m FILE` lacks its `run`.
std::string command_with(const CLI::App& program, const std::string& typed) {
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_option_no_throw(typed) != nullptr) return command->get_name();
  }
  return "";
}

}  // namespace

std::string mistaken_options(const CLI::App& command, const Declarations& declarations,
                             std::span<const std::string> words) {
  std::string found;
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!looks_like_option(words[i])) continue;
    const std::string typed = words[i].substr(0, words[i].find('='));
    const std::string_view advice = advice_for_option(typed);
    // Behind a short option's letter its value may stand.
    const bool is_long = typed.starts_with("--");
    const std::string name = is_long || !advice.empty() ? typed : typed.substr(0, 2);
    if (const CLI::Option* option = command.get_option_no_throw(name)) {
      const auto detail = declarations.details.find(option);
      const std::string value = detail == declarations.details.end() ? "" : detail->second.value;
      const bool is_no_number = value == "N" && typed.size() > name.size() && has_letters(typed);
      if (!value.empty() && words[i] == name) ++i;
      if (!is_no_number) continue;
    }
    if (const std::string lacking = command_with(command, typed); !lacking.empty()) {
      return fmt::format(
          "expected a command before \"{}\", found none; did you mean `cairn {} {}`?", typed,
          lacking, typed);
    }
    std::string hint;
    if (!advice.empty()) {
      hint = fmt::format(" ({})", advice);
    } else if (const auto nearest = nearest_name(typed, option_names(command, declarations));
               !nearest.empty()) {
      hint = fmt::format(" (did you mean {}?)", nearest);
    }
    found += fmt::format("{}\"{}\"{}", found.empty() ? "" : ", ", typed, hint);
  }
  if (found.empty()) return "";
  return fmt::format("expected options of {}, found {}", full_name(command), found);
}

std::string message_of(const CLI::Error& error) {
  const std::string text = error.what();
  if (const auto [one, other] = split_at(text, " excludes "); !one.empty()) {
    return fmt::format("{}: expected it or {}, found both", one, other);
  }
  if (const auto [name, rest] = split_at(text, ": "); rest.ends_with(" missing")) {
    return fmt::format("{}: expected a value, found none", name);
  }
  if (const auto [name, rest] = split_at(text, " was given a disallowed"); !name.empty()) {
    return fmt::format("{}: expected no value, found one", name);
  }
  // Another value stands where the option is known by its place.
  if (const auto [name, rest] = split_at(text, ": At Most 1 required"); !name.empty()) {
    return fmt::format("{}: expected one value, found more", name);
  }
  if (const auto [none, rest] = split_at(text, "Could not convert: "); !rest.empty()) {
    const auto [name, value] = split_at(rest, " = ");
    return fmt::format("{}: expected a number, found \"{}\"", name, value);
  }
  return text;
}

std::string message_of_extras(const CLI::App& command) {
  std::string arguments;
  for (const CLI::Option* known : command.get_options()) {
    if (known->get_positional()) arguments += " " + known->get_name(true);
  }
  return fmt::format("expected only `{}{}`, found also \"{}\"", full_name(command), arguments,
                     command.remaining().front());
}

}  // namespace cairn::command_line
