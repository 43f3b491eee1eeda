// `cairn synth` from outside: what it says it wrote, and mistakes by the names of options.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::cli::synth_test {
namespace {

TEST(Synth, TheCommandSaysWhatItWrote) {
  const ScratchFolder folder;
  const Finished done = run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300",
                                     "--untied", "-o", folder.file("out.gguf")});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  // A layer has nine tensors; before them the table, behind them a norm and the output's matrix.
  EXPECT_NE(done.err.find(", 12 tensors, "), std::string::npos) << done.err;
}

TEST(Synth, MistakesNameTheOption) {
  const ScratchFolder folder;
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* message;
  };
  const Case cases[] = {
      {{}, 2, "synth: expected --like or --preset, found neither"},
      {{"--like", "abacus"}, 1, "abacus"},
      {{"--preset", "abacus"}, 1, "cairn: --preset: expected one of llama-1b"},
      {{"--like", "llama", "--type", "Q9"}, 1, "cairn: --type: expected a type such as Q8_0"},
      {{"--like", "llama", "--heads", "0"}, 2, "--heads: "},
      {{"--like", "llama", "--kv-heads", "3"}, 2, "cairn: --kv-heads: expected a divisor of 4"},
  };
  for (const Case& wrong : cases) {
    std::vector<std::string> arguments{"synth", "-o", folder.file("out.gguf")};
    arguments.insert(arguments.end(), wrong.arguments.begin(), wrong.arguments.end());
    const Finished done = run_program(arguments);
    EXPECT_EQ(done.exit_code, wrong.exit_code) << wrong.message;
    EXPECT_NE(done.err.find(wrong.message), std::string::npos) << done.err;
  }
  EXPECT_NE(run_program({"synth", "--like", "llama"}).err.find("--output: expected a value"),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.gguf")));
}

}  // namespace
}  // namespace cairn::cli::synth_test
