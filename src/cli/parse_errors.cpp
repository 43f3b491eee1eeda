// CLI11's errors are texts of a few forms, each of which is made into ours. One of another form
// stays as it is.
#include "cli/parse_errors.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/nearest_name.h"

namespace cairn::cli {

namespace {

// The text around the first `mark`; both empty where it is not there.
std::pair<std::string, std::string> split_at(const std::string& text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string::npos) return {};
  return {text.substr(0, at), text.substr(at + mark.size())};
}

// As they are typed: "--json", "-p", and the spellings that the parser does not know.
std::vector<std::string> option_names(const CLI::App& command, const Declarations& declarations) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const auto& [spelling, means] : declarations.spellings) {
    if (std::find(names.begin(), names.end(), means) != names.end()) names.push_back(spelling);
  }
  return names;
}

}  // namespace

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
  if (const auto [none, rest] = split_at(text, "Could not convert: "); !rest.empty()) {
    const auto [name, value] = split_at(rest, " = ");
    return fmt::format("{}: expected a number, found \"{}\"", name, value);
  }
  return text;
}

std::string message_of_extras(const CLI::App& command, const Declarations& declarations) {
  const std::vector<std::string> words = command.remaining();
  const std::string name =
      command.get_parent() == nullptr ? "cairn" : "cairn " + command.get_name();
  const auto option = std::find_if(words.begin(), words.end(), [](const std::string& word) {
    return word.size() > 1 && word[0] == '-';
  });
  if (option == words.end()) {
    std::string arguments;
    for (const CLI::Option* known : command.get_options()) {
      if (known->get_positional()) arguments += " " + known->get_name(true);
    }
    return fmt::format("expected at most {}{}, found also \"{}\"", name, arguments, words.front());
  }
  const std::string typed = option->substr(0, option->find('='));
  const std::string nearest = nearest_name(typed, option_names(command, declarations));
  return fmt::format("expected an option of {}, found \"{}\"{}", name, typed,
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
}

}  // namespace cairn::cli
