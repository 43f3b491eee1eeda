// Completions of commands, options and their values for bash, zsh and fish. Where a file is meant,
// the shell completes files.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "command_line/reference.h"

namespace cairn::command_line {

namespace {

// Within single quotes of a shell.
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string first_sentence(const OptionEntry& option) {
  const size_t end = option.doc.find_first_of(";\n");
  return option.doc.substr(0, end);
}

std::string words_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string names_of(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options) {
    std::copy_if(option.names.begin(), option.names.end(), std::back_inserter(names),
                 [](const std::string& name) { return name.starts_with('-'); });
  }
  return words_of(names);
}

std::string command_names(const Reference& reference) {
  std::vector<std::string> names;
  for (const CommandEntry& command : reference.commands) names.push_back(command.name);
  return words_of(names);
}

// What the shell offers behind an option: bash's compgen.
std::string bash_value(const OptionEntry& option) {
  if (!option.choices.empty()) {
    return fmt::format("compgen -W {} -- \"$cur\"", shell_quoted(words_of(option.choices)));
  }
  if (option.value == "DIR") return "compgen -d -- \"$cur\"";
  if (option.value.starts_with("FILE")) return "compgen -f -- \"$cur\"";
  return "";
}

std::string bash_script(const Reference& reference) {
  std::string text = fmt::format(
      "# bash completion of cairn\n_cairn() {{\n"
      "  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} options=\n"
      "  compopt -o filenames 2>/dev/null\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    mapfile -t COMPREPLY < <(compgen -W {} -- \"$cur\")\n    return\n  fi\n"
      "  case ${{COMP_WORDS[1]}} in\n",
      shell_quoted(command_names(reference) + " " + names_of(reference.program)));
  for (const CommandEntry& command : reference.commands) {
    text += fmt::format("    {})\n      options={}\n      case $prev in\n", command.name,
                        shell_quoted(names_of(command)));
    for (const OptionEntry& option : command.options) {
      if (option.value.empty() || option.is_argument) continue;
      const std::string names = fmt::format("{}", fmt::join(option.names, "|"));
      const std::string value = bash_value(option);
      text +=
          fmt::format("        {}) {}return ;;\n", names,
                      value.empty() ? "" : fmt::format("mapfile -t COMPREPLY < <({}); ", value));
    }
    text += "      esac ;;\n";
  }
  return text +
         "  esac\n"
         "  if [[ $cur == -* ]]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
         "  else\n"
         "    mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
         "  fi\n}\ncomplete -F _cairn cairn\n";
}

// In the specifications of zsh's _arguments, brackets and colons have a meaning.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const OptionEntry& option) {
  if (option.value.empty()) return "";
  if (!option.choices.empty()) {
    return fmt::format(":{}:({})", option.value, words_of(option.choices));
  }
  if (option.value == "DIR") return ":DIR:_files -/";
  if (option.value.starts_with("FILE")) return ":FILE:_files";
  return fmt::format(":{}: ", zsh_text(option.value));
}

std::string zsh_script(const Reference& reference) {
  std::string text = "#compdef cairn\n_cairn() {\n  local -a commands\n  commands=(\n";
  for (const CommandEntry& command : reference.commands) {
    text += "    " + shell_quoted(command.name + ":" + zsh_text(command.doc)) + "\n";
  }
  text +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  shift words\n  ((CURRENT--))\n  case $words[1] in\n";
  for (const CommandEntry& command : reference.commands) {
    text += fmt::format("    {})\n      _arguments", command.name);
    for (const OptionEntry& option : command.options) {
      for (const std::string& name : option.names) {
        if (!name.starts_with('-')) continue;
        text += " \\\n        " +
                shell_quoted(fmt::format("{}{}[{}]{}", option.is_repeatable ? "*" : "", name,
                                         zsh_text(first_sentence(option)), zsh_value(option)));
      }
    }
    text += " \\\n        '*:file:_files' ;;\n";
  }
  return text + "  esac\n}\n_cairn \"$@\"\n";
}

std::string fish_script(const Reference& reference) {
  std::string text = "# fish completion of cairn\n";
  for (const CommandEntry& command : reference.commands) {
    text += fmt::format("complete -c cairn -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        shell_quoted(command.doc));
    for (const OptionEntry& option : command.options) {
      std::string names;
      for (const std::string& name : option.names) {
        if (name.starts_with("--")) names += " -l " + name.substr(2);
        if (name.size() == 2 && name[0] == '-') names += " -s " + name.substr(1);
      }
      if (names.empty()) continue;
      std::string value = option.value.empty() ? "" : " -r";
      if (!option.choices.empty()) value = " -x -a " + shell_quoted(words_of(option.choices));
      text += fmt::format("complete -c cairn -n '__fish_seen_subcommand_from {}'{}{} -d {}\n",
                          command.name, names, value, shell_quoted(first_sentence(option)));
    }
  }
  return text;
}

}  // namespace

Result<std::string> completion_script(const Reference& reference, std::string_view shell) {
  if (shell == "bash") return bash_script(reference);
  if (shell == "zsh") return zsh_script(reference);
  if (shell == "fish") return fish_script(reference);
  return fail(ErrorCode::invalid_argument, "--completion: expected bash, zsh or fish, found \"{}\"",
              shell);
}

}  // namespace cairn::command_line
