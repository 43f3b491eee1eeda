// Help and manual page: text in columns, and man(7).
#include "command_line/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cairn::command_line {

namespace {

constexpr size_t kHelpColumns = 80;
constexpr size_t kDocColumn = 26;  // Where descriptions begin.

// Words are kept whole; one that is longer than a line is cut behind a semicolon where it has one.
// `column`: of the first line, whose beginning is there already.
std::string wrapped(std::string_view text, size_t indent, size_t column) {
  std::string out;
  size_t at = column;
  bool is_first = true;
  while (!text.empty()) {
    size_t end = std::min(text.find_first_of(" \n"), text.size());
    const size_t room = kHelpColumns - indent;
    const size_t cut = end > room ? text.substr(0, room).rfind(';') : std::string_view::npos;
    const bool is_cut = cut != std::string_view::npos;
    if (is_cut) end = cut + 1;
    const std::string_view word = text.substr(0, end);
    if (!is_first && at + 1 + word.size() > kHelpColumns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
      is_first = true;
    }
    if (!is_first) out += ' ';
    at += word.size() + (is_first ? 0 : 1);
    out += word;
    is_first = false;
    const bool breaks = end < text.size() && text[end] == '\n';
    text.remove_prefix(std::min(end + (is_cut ? 0 : 1), text.size()));
    if (breaks) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
      is_first = true;
    }
  }
  return out;
}

// The names that the help shows first: the first of one letter, the first long one. The others
// follow the description.
struct Names {
  std::vector<std::string> shown, others;
};

Names names_of(const OptionEntry& option) {
  Names names;
  bool has_short = false, has_long = false;
  for (const std::string& name : option.names) {
    const bool is_short = name.size() == 2 && name[0] == '-';
    bool& has = is_short ? has_short : has_long;
    const bool is_shown = !has && (is_short || !name.starts_with('-') || name.starts_with("--"));
    (is_shown ? names.shown : names.others).push_back(name);
    has = is_shown && name.starts_with('-') ? true : has;
  }
  return names;
}

std::string doc_of(const OptionEntry& option, const Names& names) {
  std::string doc = option.doc;
  if (!option.default_text.empty()) doc += fmt::format(" [default: {}]", option.default_text);
  if (!names.others.empty()) doc += fmt::format(" (also {})", fmt::join(names.others, ", "));
  return doc;
}

std::string entry_text(const std::string& left, const std::string& doc) {
  std::string line = "  " + left;
  if (doc.empty()) return line + "\n";
  if (line.size() + 2 > kDocColumn) {
    line += '\n' + std::string(kDocColumn, ' ');
  } else {
    line.resize(kDocColumn, ' ');
  }
  return line + wrapped(doc, kDocColumn, kDocColumn) + "\n";
}

std::string option_text(const OptionEntry& option) {
  const Names names = names_of(option);
  // Long names stand below each other, behind the room of a short one.
  std::string left = option.is_argument || names.shown.front().size() == 2 ? "" : "    ";
  left += fmt::format("{}", fmt::join(names.shown, ", "));
  if (!option.value.empty() && !option.is_argument) left += " " + option.value;
  return entry_text(left, doc_of(option, names));
}

std::string usage_of(const CommandEntry& command) {
  std::string usage = "cairn " + command.name + " [OPTIONS]";
  for (const OptionEntry& option : command.options) {
    const std::string value = option.is_argument ? option.names.front() : option.value;
    const std::string typed =
        option.is_argument ? value : fmt::format("{} {}", names_of(option).shown.front(), value);
    const std::string_view more = option.is_repeatable ? "..." : "";
    if (option.is_required) {
      usage += fmt::format(" {}{}", typed, option.is_argument ? more : "");
    } else if (option.is_argument) {
      usage += fmt::format(" [{}]{}", typed, more);
    }
  }
  return usage;
}

// Groups in the order in which each is first used.
std::vector<std::pair<std::string, std::vector<const OptionEntry*>>> groups_of(
    const CommandEntry& command) {
  std::vector<std::pair<std::string, std::vector<const OptionEntry*>>> groups;
  for (const OptionEntry& option : command.options) {
    const std::string name = option.is_argument ? "Arguments" : option.group;
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& group) { return group.first == name; });
    if (found == groups.end()) found = groups.insert(found, {name, {}});
    found->second.push_back(&option);
  }
  return groups;
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = char(text[0] - 'a' + 'A');
  return text;
}

std::string examples_text(const CommandEntry& command) {
  if (command.examples.empty()) return "";
  std::string text = "\nExamples:\n";
  for (const Example& example : command.examples) {
    text += fmt::format("  {}\n      {}\n", example.line, wrapped(example.doc, 6, 6));
  }
  return text;
}

}  // namespace

std::string help_of_command(const Reference& reference, const CommandEntry& command) {
  const std::string usage = "Usage: " + usage_of(command);
  std::string text =
      wrapped(usage, 11, 0) + "\n\n" + wrapped(capitalized(command.doc), 0, 0) + ".\n";
  text += examples_text(command);
  for (const auto& [group, options] : groups_of(command)) {
    text += fmt::format("\n{}:\n", group);
    for (const OptionEntry* option : options) text += option_text(*option);
  }
  if (!command.notes.empty()) text += "\n" + wrapped(command.notes, 0, 0);
  return text + "\n" + wrapped(reference.notes, 0, 0);
}

std::string help_of_program(const Reference& reference) {
  std::string text =
      "Usage: cairn COMMAND [OPTIONS]\n\n" + reference.program.doc + "\n\nCommands:\n";
  for (const CommandEntry& command : reference.commands) {
    text += entry_text(command.name, command.doc);
  }
  text += "\nOptions:\n";
  for (const OptionEntry& option : reference.program.options) text += option_text(option);
  text += examples_text(reference.program);
  return text + "\n`cairn COMMAND --help` shows the options of a command.\n" +
         wrapped(reference.notes, 0, 0);
}

namespace {

// Text of the manual: what troff would take for requests or escapes is none.
std::string manual_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += std::string("\\&") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string manual_option(const OptionEntry& option) {
  std::string head;
  for (const std::string& name : option.names) {
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", manual_text(name));
  }
  if (!option.value.empty() && !option.is_argument) {
    head += fmt::format(" \\fI{}\\fR", manual_text(option.value));
  }
  std::string doc = capitalized(option.doc);
  if (!option.default_text.empty()) doc += fmt::format(" [default: {}]", option.default_text);
  std::string text = fmt::format(".TP\n{}\n{}", head, manual_text(doc));
  if (!option.variable.empty()) text += fmt::format(". Environment: {}.", option.variable);
  return text + "\n";
}

std::string manual_examples(const CommandEntry& command) {
  std::string text;
  for (const Example& example : command.examples) {
    text += fmt::format(".PP\n{}:\n.PP\n.nf\n.RS\n{}\n.RE\n.fi\n",
                        manual_text(capitalized(example.doc)), manual_text(example.line));
  }
  return text;
}

}  // namespace

std::string manual_page(const Reference& reference) {
  std::string text = fmt::format(
      ".TH CAIRN 1 \"\" \"cairn {}\" \"User Commands\"\n.SH NAME\ncairn \\- {}\n"
      ".SH SYNOPSIS\n.B cairn\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n{}\n",
      manual_text(reference.version), "run language models from GGUF files",
      manual_text(reference.program.doc));
  text += manual_examples(reference.program) + ".SH OPTIONS\n";
  for (const OptionEntry& option : reference.program.options) text += manual_option(option);
  text += ".SH COMMANDS\n";
  for (const CommandEntry& command : reference.commands) {
    text += fmt::format(".SS {}\n{}.\n", manual_text(usage_of(command)),
                        manual_text(capitalized(command.doc)));
    for (const auto& [group, options] : groups_of(command)) {
      text += fmt::format(".PP\n.I {}\n", manual_text(group));
      for (const OptionEntry* option : options) text += manual_option(*option);
    }
    if (!command.notes.empty()) text += ".PP\n" + manual_text(command.notes);
    text += manual_examples(command);
  }
  return text + ".SH NOTES\n" + manual_text(reference.notes);
}

}  // namespace cairn::command_line
