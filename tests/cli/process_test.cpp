// What the program forbids itself, and what it says where memory or threads are not to be had or an
// input has no end.
#include <gtest/gtest.h>

#include <csignal>

#include "tests/cli/run_program.h"
#include "tests/sanitized.h"

namespace cairn::cli::process_test {
namespace {

Finished shell(const std::string& script) {
  return run_command({"bash", "-c", script}, "", {{"P", CAIRN_PROGRAM}});
}

TEST(Process, ForbidsItselfWhatItDoesNotNeed) {
  // The chat waits for its input, which the shell holds open.
  const ScratchFolder folder;
  const Finished done =
      shell("umask 022; ulimit -c unlimited; mkfifo " + folder.file("in") + "; $P run --chat < " +
            folder.file("in") + " & cairn=$!; exec 3> " + folder.file("in") +
            "\n"
            "for i in $(seq 1000); do\n"
            "  grep -q '^NoNewPrivs:.1' /proc/$cairn/status && break; sleep 0.02\n"
            "done\n"
            "grep -E '^(NoNewPrivs|Umask):' /proc/$cairn/status; grep core /proc/$cairn/limits\n"
            "exec 3>&-; wait");
  EXPECT_NE(done.out.find("NoNewPrivs:\t1\n"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("Umask:\t0077\n"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("Max core file size        1                    1 "), std::string::npos)
      << done.out;
}

TEST(Process, ThreadsThatTheSystemRefusesAreAnError) {
  if (test::kIsSanitized) GTEST_SKIP() << "needs a limit of the address space";
  for (const char* command :
       {"run -p Hello", "bench assets/nano.gguf -n 1", "synth --like llama -o /dev/null",
        "quantize assets/nano.gguf /dev/null Q8_0"}) {
    const Finished done =
        shell("cd " CAIRN_SOURCE "; ulimit -v 1000000; $P " + std::string(command) + " -t 1000");
    EXPECT_EQ(done.exit_code, 1) << command;
    EXPECT_TRUE(done.err.starts_with("cairn: threads: expected 1000, found that the system gives "))
        << done.err;
  }
}

TEST(Process, TooLittleMemoryIsAnError) {
  if (test::kIsSanitized) GTEST_SKIP() << "needs a limit of the address space";
  const Finished done =
      shell("ulimit -v 400000; head -c 200000000 /dev/zero | $P tokenize " CAIRN_SOURCE
            "/assets/nano.gguf");
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_TRUE(done.err.starts_with("cairn: tokenize: not enough memory: ")) << done.err;
  EXPECT_NE(done.err.find("the process's limit of 391 MiB gives no more"), std::string::npos)
      << done.err;
}

TEST(Process, LinesWithoutAnEndAreErrors) {
  const Finished chat = shell("head -c 70000000 /dev/zero | tr '\\0' x | $P run --chat");
  EXPECT_EQ(chat.exit_code, 1) << chat.err;
  EXPECT_EQ(chat.err, "cairn: a line of input: expected at most 67108864 bytes, found more\n");
  const Finished block = shell(
      "(echo '\"\"\"'; head -c 70000000 /dev/zero | tr '\\0' x | fold -w 1000) | $P run --chat");
  EXPECT_EQ(block.exit_code, 1) << block.err;
  EXPECT_NE(block.err.find("a line of input: expected at most "), std::string::npos) << block.err;
}

// Memory grows with the text by a few bytes for each byte of it.
TEST(Process, LongTextsTakeLittleMemory) {
  if (test::kIsSanitized) GTEST_SKIP() << "needs a limit of the address space";
  const Finished tokens =
      shell("ulimit -v 400000; yes 'a b c d' | head -c 8000000 | $P tokenize --json " CAIRN_SOURCE
            "/assets/nano.gguf | tail -c 40");
  EXPECT_EQ(tokens.exit_code, 0);
  EXPECT_EQ(tokens.err, "");
  EXPECT_TRUE(tokens.out.ends_with("}]\n")) << tokens.out;
}

}  // namespace
}  // namespace cairn::cli::process_test
