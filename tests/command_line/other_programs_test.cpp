// Words of llama.cpp and Ollama: those that mean something here do it, and all others get advice.
#include "command_line/other_programs.h"

#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::command_line::other_programs_test {
namespace {

using cli::Finished;
using cli::run_program;
using test::ScratchFolder;
using test::write_to;

TEST(OtherPrograms, WholeWordsOnly) {
  for (const char* known :
       {"-fa", "--flash-attn", "--mlock", "--no-mmap", "-b", "-ub", "--format"}) {
    EXPECT_NE(advice_for_option(known), "") << known;
  }
  for (const char* other :
       {"", "-", "--", "--flash", "attn", "-f", "-fa --flash-attn", "fa", "--map"}) {
    EXPECT_EQ(advice_for_option(other), "") << other;
  }
  for (const char* known : {"push", "ls", "search", "create"}) {
    EXPECT_NE(advice_for_command(known), "") << known;
  }
  for (const char* other : {"", " ", "pul", "pull push", "run"}) {
    EXPECT_EQ(advice_for_command(other), "") << other;
  }
}

// All of them at once, and none taken for another: not "-fa" for a file called "a".
TEST(OtherPrograms, OptionsGetAdvice) {
  const Finished done = run_program({"run", "-p", "Hello", "-fa", "--mlock", "-b", "512", "-lv=3"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_EQ(done.out, "");
  for (const char* part :
       {"expected options of cairn run, found \"-fa\" (leave it out: there is one kind of "
        "attention), \"--mlock\" (leave it out: ",
        "\"-b\" (leave it out: the size of a step changes no bit", "\"-lv\" (--log-level LEVEL"}) {
    EXPECT_NE(done.err.find(part), std::string::npos) << part << "\n" << done.err;
  }
}

TEST(OtherPrograms, CommandsGetAdvice) {
  const auto error_of = [](const std::vector<std::string>& words) {
    const Finished done = run_program(words);
    EXPECT_EQ(done.exit_code, 2) << words[0];
    return done.err.substr(std::min(done.err.find("found"), done.err.size()));
  };
  EXPECT_EQ(error_of({"push", "llama3"}),
            "found \"push\"; `cairn pull OWNER/REPO` fetches a model; cairn publishes and searches "
            "none\n");
  EXPECT_EQ(error_of({"info", "x"}), "found \"info\"; `cairn show NAME` does that\n");
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"help", "run"}).out, run_program({"run", "--help"}).out);
  EXPECT_EQ(run_program({"version"}).out, run_program({"--version"}).out);
}

// As Ollama calls models. The name is looked at before a prompt is read or asked for.
TEST(OtherPrograms, NamesOfModelsAreNoFiles) {
  for (const char* name : {"llama3", "llama3.2:1b"}) {
    const Finished done = run_program({"run", name});
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_EQ(done.err, std::string("cairn: ") + name +
                            ": expected a GGUF file or an alias, found nothing of that name here; "
                            "`cairn list` shows the models of this machine, `cairn pull` fetches "
                            "others\n");
  }
}

TEST(OtherPrograms, SpellingsThatMeanTheSame) {
  const auto answer_with = [](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "-p", "Spell the word tree.", "--temp", "1"});
    const Finished done = run_program(options);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  };
  EXPECT_EQ(answer_with({"-s", "5", "-ctk", "q8_0", "-ctv", "q8_0"}),
            answer_with({"--seed", "5", "--kv", "q8_0"}));
  EXPECT_EQ(answer_with({"-s", "5", "-r", "-e"}), answer_with({"--seed", "5", "--stop", "-e"}));
  EXPECT_EQ(answer_with({"-s", "5", "--reverse-prompt", "-e"}),
            answer_with({"--seed", "5", "--stop", "-e"}));
  EXPECT_EQ(answer_with({"-j", R"({"const":7})"}), "7\n");
  EXPECT_EQ(answer_with({"--grammar", "root ::= \"seven\""}), "seven\n");
  const ScratchFolder folder;
  write_to(folder.file("g.gbnf"), "root ::= \"eight\"");
  EXPECT_EQ(answer_with({"--grammar-file", folder.file("g.gbnf")}), "eight\n");
}

}  // namespace
}  // namespace cairn::command_line::other_programs_test
