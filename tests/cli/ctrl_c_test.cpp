// Ctrl-C while a model is loaded ends the program at once, and leaves nothing behind.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/terminal_chat/terminal_program.h"

namespace cairn::cli::ctrl_c_test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class CtrlC : public ::testing::Test {
 protected:
  // Large enough that its load can be seen, and no larger.
  void SetUp() override {
    const Finished made = run_program({"synth", "--like", "llama", "--layers", "4", "--width",
                                       "1024", "--type", "Q8_0", "-o", model()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  std::string model() const { return folder_.file("model.gguf"); }

  // Stops the process in the midst of its load: the file is mapped, and nothing was said yet.
  bool halt(pid_t child) const {
    const std::string maps = "/proc/" + std::to_string(child) + "/maps";
    for (int look = 0; look < 100000; ++look) {
      if (contents_of(maps).find(model()) != std::string::npos) return kill(child, SIGSTOP) == 0;
      std::this_thread::sleep_for(100us);
    }
    return false;
  }

  ScratchFolder folder_;
};

TEST_F(CtrlC, EndsALoadAtOnce) {
  const std::string packs = folder_.file("packs");
  std::filesystem::create_directory(packs);
  const std::vector<std::vector<std::string>> commands = {
      {"run", model(), "-p", "1"},
      {"run", model(), "-p", "1", "--pack-cache", packs},
      {"serve", model(), "--port", "0"},
      {"bench", model()},
  };
  for (const std::vector<std::string>& command : commands) {
    const std::string said = folder_.file("said");
    const pid_t child = fork();
    if (child == 0) {
      const int file = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(file, STDOUT_FILENO);
      dup2(file, STDERR_FILENO);
      exec_program(command, {});
    }
    EXPECT_TRUE(halt(child)) << command[0];
    EXPECT_EQ(contents_of(said).find("http://"), std::string::npos) << "it is loaded already";
    kill(child, SIGINT);
    const auto begin = Clock::now();
    kill(child, SIGCONT);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_LT(Clock::now() - begin, 1s) << command[0];
    EXPECT_EQ(exit_code_of(status), 128 + SIGINT) << command[0] << contents_of(said);
  }
  for (const auto& entry : std::filesystem::directory_iterator(packs)) {
    EXPECT_EQ(entry.path().string().find(".partial."), std::string::npos) << entry.path();
  }
}

// The key itself: before a chat takes keys one by one, it is the terminal that makes a signal of
// it.
TEST_F(CtrlC, EndsALoadOnATerminal) {
  terminal_chat::Terminal terminal({"run", model()}, terminal_chat::terminal_environment(folder_));
  ASSERT_TRUE(halt(terminal.process()));
  terminal.type("\x03");
  kill(terminal.process(), SIGCONT);
  const auto begin = Clock::now();
  EXPECT_EQ(terminal.exit_code_after(""), 128 + SIGINT) << terminal.screen();
  EXPECT_LT(Clock::now() - begin, 1s);
  EXPECT_EQ(terminal.screen().find("> "), std::string::npos) << "it is loaded already";
}

}  // namespace
}  // namespace cairn::cli::ctrl_c_test
