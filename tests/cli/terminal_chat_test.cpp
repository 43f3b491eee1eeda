// The conversation on a pseudo-terminal: what a person types and sees, Ctrl-C and Ctrl-D, what the
// model says made harmless. Covers chat_loop.cpp, line_editor.cpp, interrupt.cpp on a terminal.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/stat.h>
#include <termios.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "tests/cli/run_program.h"

namespace cairn::cli {
namespace {

// The program on a terminal of its own, as a person at the keyboard.
class Terminal {
 public:
  Terminal(const std::vector<std::string>& arguments, const Environment& environment) {
    child_ = forkpty(&keyboard_, nullptr, nullptr, nullptr);
    if (child_ == 0) exec_program(arguments, environment);
  }
  ~Terminal() {
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(keyboard_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void type(const std::string& keys) {
    ASSERT_EQ(write(keyboard_, keys.data(), keys.size()), ssize_t(keys.size()));
  }

  // Waits until `text` was shown after what earlier calls waited for; false after a minute.
  bool shows(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (true) {
      if (const size_t at = screen_.find(text, seen_); at != std::string::npos) {
        seen_ = at + text.size();
        return true;
      }
      if (std::chrono::steady_clock::now() > end || !read_more(60000)) return false;
    }
  }

  // Waits for the prompt and for the terminal to give keys one by one: what is typed before that
  // is the line discipline's, to which Ctrl-C and Ctrl-D mean something else.
  bool at_prompt() { return shows("> ") && takes_keys(); }
  bool takes_keys() {
    for (int wait = 0; wait < 6000; ++wait) {
      termios mode = {};
      if (tcgetattr(keyboard_, &mode) == 0 && (mode.c_lflag & ICANON) == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // Types `key` until the program ends, as a person would who sees nothing happen; -1 after 30
  // times.
  int exit_code_after(const std::string& key) {
    for (int attempt = 0; attempt < 30; ++attempt) {
      (void)!write(keyboard_, key.data(), key.size());
      for (int wait = 0; wait < 20; ++wait) {
        // A closed terminal answers at once; the program may still be on its way out.
        if (!read_more(50)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        int status = 0;
        if (waitpid(child_, &status, WNOHANG) != child_) continue;
        child_ = -1;
        return exit_code_of(status);
      }
    }
    return -1;
  }

  const std::string& screen() const { return screen_; }

 private:
  bool read_more(int wait_ms) {
    pollfd ready{keyboard_, POLLIN, 0};
    if (poll(&ready, 1, wait_ms) <= 0) return false;
    char bytes[4096];
    const ssize_t count = read(keyboard_, bytes, sizeof bytes);
    if (count <= 0) return false;  // The program closed its terminal.
    screen_.append(bytes, size_t(count));
    return true;
  }

  pid_t child_ = -1;
  int keyboard_ = -1;
  std::string screen_;
  size_t seen_ = 0;
};

class TerminalChat : public testing::Test {
 protected:
  Environment environment() const {
    return {{"XDG_STATE_HOME", folder_.file("state")}, {"TERM", "xterm"}, {"NO_COLOR", "1"}};
  }
  std::string history_path() const { return folder_.file("state") + "/cairn/history"; }

  ScratchFolder folder_;
};

TEST_F(TerminalChat, ConversesAndRemembersLines) {
  Terminal terminal({"run"}, environment());
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  terminal.type("My name is Ada.\n");
  ASSERT_TRUE(terminal.shows("Ada.")) << terminal.screen();
  ASSERT_TRUE(terminal.shows("tokens, ")) << terminal.screen();
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
  ASSERT_TRUE(terminal.shows("tokens, ")) << terminal.screen();
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
  ASSERT_TRUE(terminal.shows("end: interrupted")) << terminal.screen();
  ASSERT_TRUE(terminal.at_prompt()) << terminal.screen();
  // Random weights say any byte; none of them may reach the terminal as a control character.
  for (const char c : terminal.screen()) {
    ASSERT_TRUE(c != '\a' && c != '\0' && c != '\x0e') << int(c);
  }
  EXPECT_EQ(terminal.exit_code_after("/exit\n"), 0);
}

}  // namespace
}  // namespace cairn::cli
