// `cairn perplexity` from outside: its report and its mistakes.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::cli::perplexity_test {
namespace {

constexpr char kText[] =
    "What is the capital of Norway? Oslo is the capital of Norway. My name is Ada. Hello Ada, it "
    "is good to meet you. What is my name? Your name is Ada. Count from one to five: one, two, "
    "three, four, five. The opposite of hot is cold, and the opposite of day is night. Spell the "
    "word river: r i v e r. Copy this: seven green apples lie on the table by the window.";

TEST(Perplexity, TheCommandAndItsMistakes) {
  const ScratchFolder folder;
  write_to(folder.file("text"), kText);
  Finished done =
      run_program({"perplexity", "-f", folder.file("text"), "-c", "32", "--json", "--chunks", "1"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("\"chunks\":1"), std::string::npos) << done.out;
  done = run_program({"perplexity", "-f", folder.file("text"), "-c", "32"});
  EXPECT_TRUE(done.out.starts_with("perplexity ")) << done.out;
  done = run_program({"perplexity", "-f", folder.file("text"), "-c", "32", "--skip-layers", "1"});
  EXPECT_TRUE(done.out.starts_with("program               all but layer 1\nperplexity "))
      << done.out << done.err;
  for (const char* part :
       {"perplexity of all", "tokens per second", "KL divergence", "same favourite"}) {
    EXPECT_NE(done.out.find(part), std::string::npos) << part;
  }
  done = run_program(
      {"perplexity", "-f", folder.file("text"), "-c", "32", "--exit-layer", "3", "--json"});
  EXPECT_NE(done.out.find("\"whole_perplexity\":"), std::string::npos) << done.out;
  EXPECT_NE(done.out.find("\"program\":\"all but layer 3\""), std::string::npos) << done.out;
  done = run_program({"perplexity", "-f", folder.file("text"), "-c", "4096"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_NE(done.err.find("expected at least"), std::string::npos) << done.err;
  done = run_program({"perplexity"});
  EXPECT_NE(done.err.find("--file: expected a value"), std::string::npos) << done.err;
  done = run_program({"perplexity", "--kl", folder.file("text")});
  EXPECT_NE(done.err.find("saved logits"), std::string::npos) << done.err;
}

}  // namespace
}  // namespace cairn::cli::perplexity_test
