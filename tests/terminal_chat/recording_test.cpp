// docs/terminal-chat.md shows what the program really does: each session is held again on a
// pseudo-terminal and compared, but for numbers that differ from run to run.
#include <gtest/gtest.h>

#include <regex>

#include "tests/terminal_chat/terminal_program.h"
#include "tests/terminal_chat/tool_model.h"

namespace cairn::terminal_chat::recording_test {
namespace {

using cli::Environment;
using test::contents_of;
using test::ScratchFolder;

// What is left on the screen's lines: escapes and what was drawn over taken away.
std::string lines_of(const std::string& screen) {
  static const std::regex escape("\\x1b(\\[[0-9;?]*[A-Za-z]|[=>])");
  const std::string plain = std::regex_replace(screen, escape, "");
  std::string all, line;
  size_t column = 0;
  for (const char letter : plain) {
    if (letter == '\n') {
      all += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line.clear();
      column = 0;
    } else if (letter == '\r') {
      column = 0;
    } else if (letter == '\b') {
      column -= column > 0;
    } else {
      if (column == line.size()) line += ' ';
      line[column++] = letter;
    }
  }
  return all + line;
}

std::string without_numbers(const std::string& text) {
  static const std::regex amount("[0-9][0-9.]*( (s|ms|µs|B|KiB|MiB|GiB|TiB)\\b)?");
  return std::regex_replace(text, amount, "N");
}

// One session of the page: the line that starts it, and what is typed.
struct Session {
  std::vector<std::string> arguments;
  std::vector<std::string> typed;  // At each prompt.
};

std::string recorded(const Session& session, const Environment& environment) {
  Terminal terminal(session.arguments, environment);
  for (const std::string& line : session.typed) {
    EXPECT_TRUE(terminal.at_prompt()) << terminal.screen();
    terminal.type(line + "\n");
  }
  EXPECT_TRUE(terminal.at_prompt()) << terminal.screen();
  std::string lines = lines_of(terminal.screen());
  lines.resize(lines.rfind('\n') + 1);  // The last prompt.
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
  return lines;
}

TEST(Recording, ThePageShowsWhatHappens) {
  const ScratchFolder folder;
  const std::string page = contents_of(std::string(CAIRN_SOURCE) + "/docs/terminal-chat.md");
  const std::string tools = std::string(CAIRN_SOURCE) + "/docs/examples/tools.json";
  const std::string schema = std::string(CAIRN_SOURCE) + "/docs/examples/city.json";
  write_model(folder.file("tools.gguf"), kToolTemplate);
  const Environment environment = {
      {"XDG_STATE_HOME", folder.file("state")}, {"TERM", "dumb"}, {"NO_COLOR", "1"}};
  const Session sessions[] = {
      {{"run", folder.file("tools.gguf"), "--tools", tools, "--tool-choice", "get_weather",
        "--temp", "0"},
       {"What is the capital of France?", "21 degrees and dry", "/rewind"}},
      {{"run", "--json-schema", schema},
       {"What is the capital of Norway?", "What is the capital of France?"}},
  };
  for (const Session& session : sessions) {
    std::string lines = recorded(session, environment);
    // The model's folder is the test's own.
    const std::string place = folder.file("");
    if (lines.starts_with(place)) lines.erase(0, place.size());
    EXPECT_NE(without_numbers(page).find(without_numbers(lines)), std::string::npos)
        << "docs/terminal-chat.md lacks:\n"
        << lines;
  }
}

}  // namespace
}  // namespace cairn::terminal_chat::recording_test
