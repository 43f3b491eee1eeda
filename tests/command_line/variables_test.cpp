// Variables that stand for options: which of several speaks, and errors that name them. Seeds,
// whose numbers are checked as they are typed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace cairn::command_line::variables_test {
namespace {

using cli::Environment;
using cli::Finished;
using cli::run_program;
using test::ScratchFolder;
using test::write_to;

using nlohmann::json;

void expect_error(const std::vector<std::string>& arguments, const Environment& environment,
                  const std::string& message) {
  const Finished done = run_program(arguments, "", environment);
  EXPECT_EQ(done.exit_code, 2) << done.err;
  EXPECT_EQ(done.err, "cairn: " + message + "\n");
  EXPECT_EQ(done.out, "");
}

TEST(Variables, ErrorsNameThem) {
  expect_error(
      {"run", "-p", "x"}, {{"CAIRN_MAX_TOKENS", "many"}},
      "CAIRN_MAX_TOKENS: --max-tokens: expected a whole number from -1 to 1073741824, found "
      "\"many\" (see cairn run --help)");
  expect_error({"run", "-p", "x"}, {{"CAIRN_TEMP", "-1"}},
               "--temp: expected a number from 0 to 100, found -1 (from CAIRN_TEMP)");
  expect_error({"run", "-p", "x"}, {{"CAIRN_MEMORY_BUDGET", "lots"}},
               "--memory-budget: expected a size such as 512M or 4G, found \"lots\" (from "
               "CAIRN_MEMORY_BUDGET)");
  const Finished missing =
      run_program({"run", "-p", "x"}, "", {{"CAIRN_MODEL", "no-such-file.gguf"}});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.err,
            "cairn: no-such-file.gguf: cannot open: No such file or directory (from "
            "CAIRN_MODEL)\n");
  // The command line's own mistakes are nobody else's.
  const Finished typed =
      run_program({"run", "--temp", "-1", "-p", "x"}, "", {{"CAIRN_TEMP", "0.5"}});
  EXPECT_EQ(typed.err, "cairn: --temp: expected a number from 0 to 100, found -1\n");
}

TEST(Variables, OnlyOneOfThoseThatExcludeEachOther) {
  expect_error({"run"}, {{"CAIRN_PROMPT", "x"}, {"CAIRN_FILE", "y"}},
               "CAIRN_FILE: expected it or CAIRN_PROMPT, found both (see cairn run --help)");
  expect_error({"run", "-p", "x"}, {{"CAIRN_GRAMMAR", "x"}, {"CAIRN_REGEX", "y"}},
               "CAIRN_REGEX: expected it or CAIRN_GRAMMAR, found both (see cairn run --help)");
  // The command line wins.
  const Finished won = run_program({"run", "--choice", "yes", "-p", "Hello"}, "",
                                   {{"CAIRN_GRAMMAR", "no-such-file"}});
  EXPECT_EQ(won.out, "yes\n") << won.err;
}

TEST(Variables, PipedInputIsNotBeatenSilently) {
  const Environment environment = {{"CAIRN_PROMPT", "What is the capital of Italy?"}};
  const Finished piped = run_program({"run"}, "What is the capital of France?\n", environment);
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_EQ(piped.out, "The capital of France is Paris.\n");
  EXPECT_NE(piped.err.find("CAIRN_PROMPT: expected no piped input beside it"), std::string::npos)
      << piped.err;
  const Finished alone = run_program({"run"}, "", environment);
  EXPECT_EQ(alone.out, "The capital of Italy is Rome.\n");
  EXPECT_EQ(alone.err, "");
  const Finished typed = run_program({"run", "-p", "What is the capital of Italy?"}, "unread");
  EXPECT_EQ(typed.out, alone.out);
}

TEST(Variables, AModelForAllCommandsDoesNotDisturbBench) {
  const ScratchFolder folder;
  for (const char* name : {"one.gguf", "other.gguf"}) {
    ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300", "-o",
                           folder.file(name)})
                  .exit_code,
              0);
  }
  const Environment environment = {{"CAIRN_MODEL", folder.file("one.gguf")}};
  for (const std::vector<std::string>& model :
       {std::vector<std::string>{}, {folder.file("other.gguf")}}) {
    std::vector<std::string> arguments = {"bench", "-p", "4", "-n", "4", "-r", "1", "--json"};
    arguments.insert(arguments.end(), model.begin(), model.end());
    const Finished done = run_program(arguments, "", environment);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_TRUE(json::accept(done.out)) << done.out;
  }
}

TEST(Variables, AMistypedFolderIsNotMadeAtTheRoot) {
  const std::string folder = "/no-such-folder-of-cairn/cache";
  expect_error({"run", "-p", "x"}, {{"CAIRN_PACK_CACHE", folder}},
               "--pack-cache: expected a folder, or a place for one in another, found " + folder +
                   ", of which nothing exists (from CAIRN_PACK_CACHE)");
  EXPECT_FALSE(std::filesystem::exists("/no-such-folder-of-cairn"));
  const ScratchFolder scratch;
  write_to(scratch.file("file"), "");
  expect_error({"run", "-p", "x", "--pack-cache", scratch.file("file") + "/cache"}, {},
               "--pack-cache: expected a folder, found the file " + scratch.file("file"));
  const Finished made =
      run_program({"run", "-p", "Hello", "--pack-cache", scratch.file("new") + "/cache"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_FALSE(std::filesystem::is_empty(scratch.file("new") + "/cache"));
}

TEST(Seeds, MinusOneIsRandomAndTold) {
  const std::vector<std::string> asking = {"run", "--json", "--temp", "1",
                                           "-n",  "4",      "-p",     "Hello"};
  const auto seed_of = [&](const std::string& seed) {
    std::vector<std::string> arguments = asking;
    arguments.insert(arguments.end(), {"--seed", seed});
    const Finished done = run_program(arguments);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const uint64_t used = json::parse(done.out)["sampling"]["seed"].get<uint64_t>();
    const std::string told = "cairn: seed " + std::to_string(used) + "\n";
    EXPECT_EQ(done.err.find(told) != std::string::npos, seed == "-1") << done.err;
    return used;
  };
  EXPECT_EQ(seed_of("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(seed_of("0"), 0u);
  EXPECT_NE(seed_of("-1"), seed_of("-1"));
}

TEST(Seeds, NumbersThatAreNoneAreRefused) {
  for (const char* seed : {"18446744073709551616", "-2", "1e3", "0x10", "1 "}) {
    expect_error({"run", "-p", "x", "--seed", seed}, {},
                 "--seed: expected a whole number from 0 to 18446744073709551615, or -1 for a new "
                 "one, found \"" +
                     std::string(seed) + "\"");
    expect_error({"verify", "--seed", seed}, {},
                 "--seed: expected a whole number from 0 to 18446744073709551615, found \"" +
                     std::string(seed) + "\" (see cairn verify --help)");
  }
  const Finished chat = run_program({"run", "--chat"},
                                    "/set seed 18446744073709551616\n"
                                    "/set seed -1\n/show\n");
  EXPECT_NE(chat.err.find("seed: expected a number, found \"18446744073709551616\""),
            std::string::npos);
  EXPECT_EQ(chat.err.find("18446744073709551615"), std::string::npos) << chat.err;
}

}  // namespace
}  // namespace cairn::command_line::variables_test
