// Completions, asked of a real bash; the scripts of the other shells have each command and option.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::command_line::completion_test {
namespace {

using cli::Finished;
using cli::run_command;
using cli::run_program;
using test::ScratchFolder;
using test::write_to;

// What bash offers for a line whose last word is being typed, one candidate a line.
std::string completed(const std::string& words, int index, const std::string& folder) {
  const std::string script = "cd \"$2\"; source <(\"$1\" --completion bash); COMP_WORDS=(" + words +
                             "); COMP_CWORD=" + std::to_string(index) +
                             "; _cairn; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const Finished done = run_command({"bash", "-c", script, "bash", CAIRN_PROGRAM, folder});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  return done.out;
}

TEST(Completion, OfBash) {
  const ScratchFolder folder;
  write_to(folder.file("model one.gguf"), "");
  const std::string at = folder.path().string();
  EXPECT_EQ(completed("cairn qu", 1, at), "quantize\n");
  EXPECT_EQ(completed("cairn run --max", 2, at), "--max-tokens\n");
  EXPECT_EQ(completed("cairn run mod", 2, at), "model one.gguf\n");
  EXPECT_EQ(completed("cairn run --cache-type-k q", 3, at), "q8_0\nq4_0\n");
  EXPECT_EQ(completed("cairn run --file m", 3, at), "model one.gguf\n");
  EXPECT_EQ(completed("cairn run --threads m", 3, at), "\n");
  EXPECT_EQ(completed("cairn tokenize --max", 2, at), "\n");
}

TEST(Completion, OfTheOthers) {
  const std::string zsh = run_program({"--completion", "zsh"}).out;
  EXPECT_TRUE(zsh.starts_with("#compdef cairn\n"));
  EXPECT_NE(zsh.find("'--threads[number of threads]:N: '"), std::string::npos);
  EXPECT_NE(zsh.find("'--cache-type-k[type of the keys in the KV cache]:TYPE:(f32 f16 "),
            std::string::npos);
  EXPECT_NE(zsh.find("'*--stop[end the answer before this text]"), std::string::npos);
  const std::string fish = run_program({"--completion", "fish"}).out;
  EXPECT_NE(
      fish.find("complete -c cairn -n '__fish_seen_subcommand_from run' -s t -l threads -r -d "
                "'number of threads'\n"),
      std::string::npos);
  const Finished wrong = run_program({"--completion", "tcsh"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "cairn: --completion: expected bash, zsh or fish, found \"tcsh\"\n");
}

}  // namespace
}  // namespace cairn::command_line::completion_test
