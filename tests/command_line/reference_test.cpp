// Help and manual page of the real program: lines that fit a terminal, nothing that one of them has
// and the other lacks, messages that name options as they were typed.
#include "command_line/reference.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/run_program.h"

namespace cairn::command_line::reference_test {
namespace {

using cli::Environment;
using cli::Finished;
using cli::run_program;

constexpr const char* kCommands[] = {"run",     "inspect",  "tokenize",   "template",
                                     "embed",   "logits",   "verify",     "bench",
                                     "convert", "quantize", "perplexity", "synth"};

std::set<std::string> long_names_in(const std::string& text) {
  std::set<std::string> names;
  const std::regex pattern("--[a-z][a-z0-9-]+");
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) {
    names.insert(it->str());
  }
  return names;
}

TEST(Reference, HelpFitsEightyColumns) {
  for (const std::string command : kCommands) {
    std::istringstream lines(run_program({command, "--help"}).out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 80u) << command << ": " << line;
      EXPECT_EQ(line.find("INT:"), std::string::npos) << line;
    }
  }
}

TEST(Reference, UsageShowsWhatIsRequired) {
  EXPECT_EQ(run_program({"quantize", "--help"}).out.substr(0, 47),
            "Usage: cairn quantize [OPTIONS] IN OUT TYPE\n\nWr");
  EXPECT_NE(run_program({"convert", "-h"}).out.find("[OPTIONS] DIR -o FILE\n"), std::string::npos);
  EXPECT_NE(run_program({"run", "-h"}).out.find("run [OPTIONS] [MODEL] [PROMPT]\n"),
            std::string::npos);
}

TEST(Reference, GroupsDefaultsAndOtherNames) {
  const OptionEntry entry{
      .group = "Sampling",
      .names = {"-n", "--count", "--number"},
      .value = "N",
      .doc = "how many words stand in a line that is longer than one line of help",
      .default_text = "3",
      .variable = "CAIRN_COUNT"};
  const OptionEntry file{
      .names = {"FILE", "-m"}, .value = "FILE", .doc = "a file", .is_argument = true};
  const Reference reference{.program = {}, .commands = {}, .notes = "Notes.\n", .version = "1"};
  const CommandEntry command{.name = "count",
                             .doc = "count words",
                             .options = {file, entry},
                             .examples = {{"cairn count a", "words of a"}},
                             .notes = "More.\n"};
  EXPECT_EQ(help_of_command(reference, command),
            "Usage: cairn count [OPTIONS] [FILE]\n"
            "\n"
            "Count words.\n"
            "\n"
            "Examples:\n"
            "  cairn count a\n"
            "      words of a\n"
            "\n"
            "Arguments:\n"
            "  FILE, -m                a file\n"
            "\n"
            "Sampling:\n"
            "  -n, --count N           how many words stand in a line that is longer than one\n"
            "                          line of help [default: 3] (also --number)\n"
            "\n"
            "More.\n"
            "\n"
            "Notes.\n");
}

TEST(Reference, TheManualHasEveryOption) {
  const Finished page = run_program({"--man-page"});
  EXPECT_EQ(page.exit_code, 0);
  EXPECT_TRUE(page.out.starts_with(".TH CAIRN 1 ")) << page.out.substr(0, 80);
  std::string plain;
  for (size_t i = 0; i < page.out.size(); ++i) {
    if (page.out.compare(i, 2, "\\-") != 0) plain += page.out[i];
    if (page.out.compare(i, 2, "\\-") == 0) plain += page.out[++i];
  }
  const std::set<std::string> found = long_names_in(plain);
  for (const std::string command : kCommands) {
    for (const std::string& name : long_names_in(run_program({command, "--help"}).out)) {
      EXPECT_TRUE(found.contains(name)) << command << ": " << name;
    }
  }
}

TEST(Reference, MessagesNameTheOptionAsItWasTyped) {
  const auto message_of = [](const std::vector<std::string>& arguments,
                             const Environment& environment = {}) {
    const Finished done = run_program(arguments, "", environment);
    EXPECT_EQ(done.exit_code, 2) << done.err;
    return done.err.substr(0, done.err.find(':', 7));
  };
  EXPECT_EQ(message_of({"run", "-t", "5000", "-p", "x"}), "cairn: -t");
  EXPECT_EQ(message_of({"run", "--threads=5000", "-p", "x"}), "cairn: --threads");
  EXPECT_EQ(message_of({"run", "-p", "x"}, {{"CAIRN_THREADS", "5000"}}), "cairn: CAIRN_THREADS");
  EXPECT_EQ(message_of({"run", "--kv", "q9", "-p", "x"}), "cairn: --kv");

  EXPECT_EQ(message_of({"run", "--n-predict", "-7", "-p", "x"}), "cairn: --n-predict");
  EXPECT_EQ(message_of({"convert", "."}), "cairn: --output");
}

}  // namespace
}  // namespace cairn::command_line::reference_test
