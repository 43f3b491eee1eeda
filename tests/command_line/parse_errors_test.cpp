// What the parser objects to names the option, what was expected and what was found; mistyped
// options get the nearest.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::command_line::parse_errors_test {
namespace {

using cli::Finished;
using cli::run_program;

std::string error_of(const std::vector<std::string>& arguments) {
  const Finished done = run_program(arguments);
  EXPECT_EQ(done.exit_code, 2) << done.err;
  EXPECT_EQ(done.out, "");
  return done.err;
}

TEST(ParseErrors, ValuesThatAreMissingOrTooMany) {
  EXPECT_EQ(error_of({"run", "-p"}),
            "cairn: -p: expected a value, found none (see cairn run --help)\n");
  EXPECT_EQ(error_of({"run", "--max-tokens"}),
            "cairn: --max-tokens: expected a value, found none (see cairn run --help)\n");
  EXPECT_EQ(error_of({"run", "-p", "x", "-f", "y"}),
            "cairn: -p: expected it or --file, found both (see cairn run --help)\n");
}

TEST(ParseErrors, NumbersThatAreNone) {
  EXPECT_EQ(error_of({"run", "-p", "x", "-n", "many"}),
            "cairn: -n: expected a whole number from -1 to 1073741824, found \"many\" (see cairn "
            "run --help)\n");
  EXPECT_EQ(error_of({"run", "-p", "x", "--max-tokens=99999999999"}),
            "cairn: --max-tokens: expected a whole number from -1 to 1073741824, found "
            "\"99999999999\" (see cairn run --help)\n");
  EXPECT_EQ(error_of({"run", "-p", "x", "--temp", "warm"}),
            "cairn: --temp: expected a number, found \"warm\" (see cairn run --help)\n");
  EXPECT_EQ(error_of({"bench", "x", "-p", "1,some"}),
            "cairn: -p: expected a whole number from 0 to 16777216, found \"some\" (see cairn "
            "bench --help)\n");
  EXPECT_EQ(error_of({"run", "--log-level", "loud"}),
            "cairn: --log-level: expected one of debug, info, warning, error, off, found \"loud\" "
            "(see cairn run --help)\n");
}

TEST(ParseErrors, UnknownOptionsGetTheNearest) {
  EXPECT_EQ(error_of({"run", "--temprature", "1"}),
            "cairn: expected options of cairn run, found \"--temprature\" (did you mean "
            "--temperature?) (see cairn run --help)\n");
  EXPECT_EQ(error_of({"run", "-p", "x", "--topk=3", "--frobnicate", "-z"}),
            "cairn: expected options of cairn run, found \"--topk\" (did you mean --top-k?), "
            "\"--frobnicate\", \"-z\" (see cairn run --help)\n");
  const std::string spelling = error_of({"run", "-syss", "x"});
  EXPECT_NE(spelling.find("did you mean -sys?"), std::string::npos) << spelling;
  EXPECT_EQ(error_of({"--versoin"}),
            "cairn: expected options of cairn, found \"--versoin\" (did you mean --version?) (see "
            "cairn --help)\n");
  EXPECT_EQ(
      error_of({"-m", "a.gguf"}),
      "cairn: expected a command before \"-m\", found none; did you mean `cairn run -m`? (see "
      "cairn --help)\n");
  EXPECT_EQ(error_of({"run", "--version"}),
            "cairn: expected options of cairn run, found \"--version\" (`cairn --version` does "
            "that) (see cairn run --help)\n");
}

// What looks like an option and is a value, or stands behind "--".
TEST(ParseErrors, ValuesAreNoOptions) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"-p", "--frobnicate"},
                                                {"--prompt=--frobnicate"},
                                                {"-p--frobnicate"},
                                                {"-n", "-1", "-p", "-x"},
                                                {"--temp", "0", "-p", "-1.5"}}) {
    std::vector<std::string> arguments{"run", "-n", "2", "-q"};
    if (words[0] == "-n") arguments.erase(arguments.begin() + 1, arguments.begin() + 3);
    arguments.insert(arguments.end(), words.begin(), words.end());
    const Finished done = run_program(arguments);
    EXPECT_EQ(done.exit_code, 0) << words[0] << done.err;
  }
  const Finished behind = run_program({"inspect", "--", "--frobnicate"});
  EXPECT_EQ(behind.exit_code, 1);
  EXPECT_NE(behind.err.find("--frobnicate: "), std::string::npos) << behind.err;
}

TEST(ParseErrors, OneArgumentTooMany) {
  EXPECT_EQ(error_of({"inspect", "a.gguf", "b.gguf"}),
            "cairn: expected only `cairn inspect MODEL`, found also \"b.gguf\" (see cairn inspect "
            "--help)\n");
}

}  // namespace
}  // namespace cairn::command_line::parse_errors_test
