// The parser gets a variable's value as if it had been typed.
#include "command_line/variables.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/env.h"
#include "base/text/nearest_name.h"
#include "command_line/parse_errors.h"

namespace cairn::command_line {

namespace {

// Whether another option, of the command line, stands in the way of this one. Errors: one of a
// variable does.
Result<bool> is_excluded(const std::string& variable, const CLI::Option& option,
                         std::span<const Taken> taken) {
  for (const CLI::Option* rival : option.get_excludes()) {
    if (rival->count() == 0) continue;
    const auto other = std::find_if(taken.begin(), taken.end(),
                                    [&](const Taken& one) { return one.option == rival; });
    if (other == taken.end()) return true;
    return fail(ErrorCode::invalid_argument, "{}: expected it or {}, found both", variable,
                other->variable);
  }
  return false;
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

CLI::Option* find_preset_option(const CLI::App& command, const Declarations& declarations,
                                const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    const auto detail = declarations.details.find(option);
    if (detail == declarations.details.end() || !detail->second.is_preset) continue;
    const auto& names = option->get_lnames();
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      return const_cast<CLI::Option*>(option);
    }
  }
  return nullptr;
}

// Whether another command has it. Errors: none has.
Status expect_elsewhere(const Declarations& declarations, const PresetText& value) {
  std::vector<std::string> names;
  for (const auto& [other, read] : declarations.presets) {
    if (find_preset_option(*other, declarations, value.option) != nullptr) return Ok{};
    for (const CLI::Option* option : other->get_options()) {
      const auto detail = declarations.details.find(option);
      if (detail == declarations.details.end() || !detail->second.is_preset) continue;
      for (const std::string& name : option->get_lnames()) names.push_back(name);
    }
  }
  const std::string nearest = nearest_name(value.option, names);
  return fail(ErrorCode::invalid_argument,
              "{}: expected \"model\" or the name of an option that a preset may have, found "
              "\"{}\"{}",
              value.source, value.option,
              nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest));
}

Status give(CLI::Option& option, const PresetText& value) {
  try {
    for (const std::string& text : value.texts) option.add_result(text);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    return fail(ErrorCode::invalid_argument, "{}: {}", value.source, message_of(error));
  }
  return Ok{};
}

}  // namespace

std::string variable_of(const CLI::App& command, const CLI::Option& option) {
  if (command.get_parent() == nullptr || &option == command.get_help_ptr()) return "";
  const auto& names = option.get_lnames();
  std::string variable = "CAIRN_" + (names.empty() ? option.get_name(true) : names.front());
  for (char& c : variable) {
    if (c == '-') c = '_';
    if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
  }
  return variable;
}

Result<std::vector<Taken>> take_variables(CLI::App& command, const Declarations& declarations) {
  std::vector<Taken> taken;
  for (CLI::Option* option : command.get_options()) {
    const std::string variable = variable_of(command, *option);
    if (variable.empty() || option->count() > 0) continue;
    const auto value = env(variable.c_str());
    if (!value || value->empty()) continue;
    CAIRN_TRY(const bool is_left_out, is_excluded(variable, *option, taken));
    if (is_left_out) continue;
    try {
      option->add_result(*value);
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      return fail(ErrorCode::invalid_argument, "{}: {}", variable, message_of(error));
    }
    taken.push_back({option, variable, *value});
    const auto found = declarations.details.find(option);
    if (found != declarations.details.end() && found->second.is_variable != nullptr) {
      *found->second.is_variable = true;
    }
  }
  return taken;
}

Status take_preset(CLI::App& command, const Declarations& declarations, std::vector<Taken>& taken) {
  const auto read = declarations.presets.find(&command);
  if (read == declarations.presets.end()) return Ok{};
  CAIRN_TRY(const std::vector<PresetText> values, read->second());
  for (const PresetText& value : values) {
    CLI::Option* const option = find_preset_option(command, declarations, value.option);
    if (option == nullptr) {
      CAIRN_TRY(expect_elsewhere(declarations, value));
      continue;
    }
    if (option->count() > 0) continue;
    CAIRN_TRY(const bool is_left_out, is_excluded(value.source, *option, taken));
    if (is_left_out || value.texts.empty()) continue;
    CAIRN_TRY(give(*option, value));
    taken.push_back({option, value.source, value.texts.front()});
  }
  return Ok{};
}

std::string with_variables(const std::string& message, std::span<const Taken> taken) {
  std::string variables;
  for (const Taken& one : taken) {
    if (is_about(message, one)) variables += (variables.empty() ? "" : ", ") + one.variable;
  }
  return variables.empty() ? message : message + " (from " + variables + ")";
}

}  // namespace cairn::command_line
