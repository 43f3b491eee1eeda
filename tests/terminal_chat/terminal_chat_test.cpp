// The conversation on a pseudo-terminal: what a person types and sees, Ctrl-C and Ctrl-D, what the
// model says made harmless. Covers chat_loop.cpp, line_editor.cpp, interrupt.cpp on a terminal.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "tests/terminal_chat/terminal_program.h"

namespace cairn::terminal_chat::terminal_chat_test {
namespace {

using cli::Environment;
using cli::run_program;
using test::contents_of;
using test::ScratchFolder;
using test::write_to;

class TerminalChat : public testing::Test {
 protected:
  Environment environment() const { return terminal_environment(folder_); }
  std::string history_path() const { return folder_.file("state") + "/cairn/history"; }

  ScratchFolder folder_;
};

TEST_F(TerminalChat, ConversesAndRemembersLines) {
  Terminal terminal({"run"}, environment());
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("My name is Ada.\n");
  ASSERT_TRUE(terminal.shows("Ada.")) << terminal.screen();
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("What is my name?\n");
  ASSERT_TRUE(terminal.shows("Your name is Ada.")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/help\n");
  ASSERT_TRUE(terminal.shows("/regen")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
  struct stat info = {};
  ASSERT_EQ(stat(history_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_NE(contents_of(history_path()).find("my"), std::string::npos);
}

// The old message stands on the line; what is typed goes behind it or, after Ctrl-A, before.
TEST_F(TerminalChat, EditPutsTheOldMessageOnTheLine) {
  Terminal terminal({"run"}, environment());
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("What is the capital of\n");
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/edit\n");
  ASSERT_TRUE(terminal.shows("edit> ")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("What is the capital of")) << terminal.screen();
  terminal.type(" Norway?\n");
  ASSERT_TRUE(terminal.shows("The capital of Norway is Oslo.")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  // Ctrl-C leaves the conversation as it was.
  terminal.type("/edit\n");
  ASSERT_TRUE(terminal.shows("What is the capital of Norway?")) << terminal.screen();
  ASSERT_TRUE(terminal.takes_keys());
  terminal.type("\x03");
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/rewind\n");
  ASSERT_TRUE(terminal.shows("0 turns left")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
}

TEST_F(TerminalChat, InterruptAtThePromptDropsTheLineAndTwiceEnds) {
  Terminal terminal({"run"}, environment());
  ASSERT_TRUE(terminal.at_prompt());
  terminal.type("half a li\x03");
  ASSERT_TRUE(terminal.shows("again")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("What is the capital of France?\n");
  ASSERT_TRUE(terminal.shows("The capital of France is Paris.")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("\x03");
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x03"), 130);
}

// What is typed goes to the history file, and to nothing that lies in its place.
TEST_F(TerminalChat, TheHistoryIsBoundedPrivateAndItsOwn) {
  const auto type_in_a_chat = [&](std::vector<std::string> arguments,
                                  const std::vector<std::string>& lines) {
    arguments.insert(arguments.begin(), "run");
    Terminal terminal(arguments, environment());
    for (const std::string& line : lines) {
      EXPECT_TRUE(terminal.at_prompt()) << terminal.screen();
      terminal.type(line + "\n");
    }
    EXPECT_TRUE(terminal.at_prompt()) << terminal.screen();
    EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
    return terminal.screen();
  };
  const auto kept = [&] { return contents_of(history_path()); };
  type_in_a_chat({"--no-history"}, {"/show"});
  EXPECT_FALSE(std::filesystem::exists(history_path()));
  type_in_a_chat({}, {"/show", "/" + std::string(5000, 'x'), "/memory"});
  EXPECT_NE(kept().find("/show\n/memory\n"), std::string::npos) << kept();
  // Some lines more than are kept, of a file that others could read.
  std::string many = "_HiStOrY_V2_\n";
  for (int i = 0; i < 1010; ++i) many += "line" + std::to_string(i) + "\n";
  write_to(history_path(), many);
  ASSERT_EQ(chmod(history_path().c_str(), 0644), 0);
  type_in_a_chat({}, {"/show"});
  const std::string lines = kept();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1001);
  EXPECT_TRUE(lines.ends_with("line1009\n/show\n"));
  struct stat info = {};
  ASSERT_EQ(stat(history_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  // A link, and a file of another kind.
  std::filesystem::remove(history_path());
  write_to(folder_.file("precious"), "");
  ASSERT_EQ(symlink(folder_.file("precious").c_str(), history_path().c_str()), 0);
  EXPECT_NE(type_in_a_chat({}, {"/show"}).find("expected a file, found a symbolic link"),
            std::string::npos);
  EXPECT_EQ(contents_of(folder_.file("precious")), "");
  std::filesystem::remove(history_path());
  write_to(history_path(), "a letter\n");
  EXPECT_NE(type_in_a_chat({}, {"/show"}).find("expected a history"), std::string::npos);
  EXPECT_EQ(kept(), "a letter\n");
}

// The figures of an answer are one short line, all of them, or none.
TEST_F(TerminalChat, FiguresAreOneLineUnlessToldOtherwise) {
  for (const char* option : {"--chat", "-v", "-q"}) {
    Terminal terminal({"run", option}, environment());
    ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
    terminal.type("What is the capital of France?\n");
    ASSERT_TRUE(terminal.shows("The capital of France is Paris.\r\n")) << terminal.screen();
    const size_t begin = terminal.screen().rfind("Paris.\r\n") + 8;
    ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
    const std::string line =
        terminal.screen().substr(begin, terminal.screen().find('\r', begin) - begin);
    const std::string_view manner = option;
    EXPECT_EQ(line.find("first token after") != line.npos, manner == "-v") << line;
    EXPECT_EQ(line.find(" tokens · ") != line.npos, manner == "--chat") << line;
    if (manner == "--chat") {
      const auto is_first_byte = [](char c) { return (uint8_t(c) & 0xC0) != 0x80; };
      EXPECT_LE(std::count_if(line.begin(), line.end(), is_first_byte), 80) << line;
    }
    EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
  }
}

// Terminals put marks around what is pasted; line breaks between them are part of the message.
TEST_F(TerminalChat, PastedLinesAreOneMessage) {
  Terminal terminal({"run", "--sandbox-path", folder_.path().string()}, environment());
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_NE(terminal.screen().find("\x1b[?2004h"), std::string::npos);
  const std::string saved = folder_.file("chat.json");
  terminal.type("First: \x1b[200~one\r\ttwo\x07\rthree\r\x1b[201~ end\n");
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/save " + saved + "\n");
  ASSERT_TRUE(terminal.shows("2 messages written")) << terminal.screen();
  EXPECT_NE(contents_of(saved).find("\"First: one\\n\\ttwo\\nthree end\""), std::string::npos)
      << contents_of(saved);
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  // A block of three quotes may be pasted as a whole.
  terminal.type("\x1b[200~\"\"\"\rone\rtwo\r\"\"\"\r\x1b[201~\n");
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("/save " + saved + "\n");
  ASSERT_TRUE(terminal.shows("4 messages written")) << terminal.screen();
  EXPECT_NE(contents_of(saved).find("\"one\\ntwo\""), std::string::npos) << contents_of(saved);
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
  EXPECT_GT(terminal.screen().rfind("\x1b[?2004l"), terminal.screen().rfind("\x1b[?2004h"));
}

TEST_F(TerminalChat, EndOfInputEndsABlockFirst) {
  Terminal terminal({"run"}, environment());
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("\"\"\"What is the capital\n");
  ASSERT_TRUE(terminal.shows(". ")) << terminal.screen();
  ASSERT_TRUE(terminal.takes_keys());
  terminal.type("of France?\n");
  ASSERT_TRUE(terminal.shows(". ")) << terminal.screen();
  ASSERT_TRUE(terminal.takes_keys());
  terminal.type("\x04");
  ASSERT_TRUE(terminal.shows(" tokens · ")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  EXPECT_EQ(terminal.exit_code_after("\x04"), 0);
}

// A model with random weights talks without end, so that there is an answer to interrupt.
TEST_F(TerminalChat, InterruptStopsTheAnswerNotTheChat) {
  const std::string model = folder_.file("model.gguf");
  ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "2", "--context", "100000",
                         "--vocab", "600", "-o", model})
                .exit_code,
            0);
  Terminal terminal({"run", model, "--seed", "1"}, environment());
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("talk\n");
  ASSERT_TRUE(terminal.shows("\n")) << terminal.screen();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  terminal.type("\x03");
  ASSERT_TRUE(terminal.shows(" · interrupted")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  // Random weights say any byte; none of them may reach the terminal as a control character.
  for (const char c : terminal.screen()) {
    ASSERT_TRUE(c != '\a' && c != '\0' && c != '\x0e') << int(c);
  }
  EXPECT_EQ(terminal.exit_code_after("/exit\n"), 0);
}

}  // namespace
}  // namespace cairn::terminal_chat::terminal_chat_test
