// Runs the built program on a pseudo-terminal. For tests only.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <termios.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/run_program.h"

namespace cairn::terminal_chat {

using cli::Environment;
using cli::exec_program;
using cli::exit_code_of;
using cli::run_program;
using test::ScratchFolder;

// What the program takes up on a terminal, without colours; what it keeps lies in `folder`.
inline Environment terminal_environment(const ScratchFolder& folder) {
  return {{"XDG_STATE_HOME", folder.file("state")}, {"TERM", "xterm"}, {"NO_COLOR", "1"}};
}

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
  pid_t process() const { return child_; }

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

}  // namespace cairn::terminal_chat
