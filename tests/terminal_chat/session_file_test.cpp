// `cairn run --session FILE`: a conversation that goes on from one start of the program to the
// next.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace cairn::terminal_chat::session_file_test {
namespace {

using cli::Finished;
using cli::run_program;
using test::contents_of;
using test::ScratchFolder;
using test::write_to;

using nlohmann::json;

class SessionFile : public testing::Test {
 protected:
  Finished run(std::vector<std::string> arguments, const std::string& input = "") const {
    arguments.insert(arguments.begin(), {"run", "--session", path()});
    return run_program(arguments, input);
  }
  std::string path() const { return folder_.file("session.json"); }
  json messages() const { return json::parse(contents_of(path()))["messages"]; }

  ScratchFolder folder_;
};

TEST_F(SessionFile, IsTakenUpAgain) {
  const Finished first = run({"--chat"}, "My cat is called Mimi.\n");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  ASSERT_EQ(messages().size(), 2u);
  EXPECT_TRUE(messages()[1].contains("token_ids"));
  const Finished second = run({"--chat"}, "What is my cat called?\n");
  EXPECT_EQ(second.out, "Your cat is called Mimi.\n") << second.err;
  EXPECT_EQ(messages().size(), 4u);
  // One answer goes on with it as well.
  const Finished third = run({"-p", "What is my cat called?"});
  EXPECT_EQ(third.out, "Your cat is called Mimi.\n") << third.err;
  EXPECT_EQ(messages().size(), 6u);
}

// What is in the file is what there was after the last turn, however the program ended.
TEST_F(SessionFile, IsWrittenAfterEachTurn) {
  const std::string copy = folder_.file("copy.json");
  const Finished run_of_two =
      run({"--chat"}, "My cat is called Mimi.\n/save " + copy + "\nHello\n/rewind\n");
  EXPECT_EQ(run_of_two.exit_code, 0);
  EXPECT_EQ(contents_of(path()), contents_of(copy)) << "a turn that was taken back is not there";
  EXPECT_EQ(run({"--chat"}, "/clear\n").exit_code, 0);
  EXPECT_TRUE(messages().empty());
  std::filesystem::remove(path());
  EXPECT_EQ(run({"--chat"}, "/help\n").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path())) << "nothing was said";
}

TEST_F(SessionFile, KeepsTheSystemMessageUnlessAnotherIsSaid) {
  run({"--system", "The code is 4711.", "-p", "Hello"});
  run({"-p", "Hello"});
  ASSERT_EQ(messages().size(), 5u);
  EXPECT_EQ(messages()[0]["content"], "The code is 4711.");
  run({"--system", "The code is 12.", "-p", "Hello"});
  EXPECT_EQ(messages()[0]["content"], "The code is 12.");
}

TEST_F(SessionFile, WhatIsNoConversationIsNotOverwritten) {
  write_to(path(), "my diary");
  const Finished refused = run({"-p", "Hello"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find(path() + ": "), std::string::npos) << refused.err;
  EXPECT_EQ(contents_of(path()), "my diary");
  const std::string missing = folder_.file("no-such-folder/session.json");
  for (const std::string& file : {missing, std::string("-")}) {
    const Finished nowhere = run_program({"run", "--session", file, "-p", "Hello"});
    EXPECT_NE(nowhere.exit_code, 0);
    EXPECT_EQ(nowhere.out, "") << "refused before the work";
  }
}

TEST(ChatInput, TheEndOfInputEndsABlock) {
  const Finished block =
      run_program({"run", "--chat"}, "\"\"\"\nWhat is the capital\nof France?\n");
  EXPECT_EQ(block.exit_code, 0);
  EXPECT_FALSE(block.out.empty()) << "the block was answered";
  EXPECT_EQ(block.out, run_program({"run", "-p", "What is the capital\nof France?"}).out);
  const Finished line = run_program({"run", "--chat"}, "What is the capital of France?\\\n");
  EXPECT_FALSE(line.out.empty());
}

TEST(ChatInput, EndsByTheNamesThatOthersHave) {
  for (const char* name : {"/quit", "/bye", "/exit"}) {
    const Finished run = run_program({"run", "--chat"}, std::string(name) + "\nHello\n");
    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.out, "") << name;
    EXPECT_EQ(run.err, "") << name;
  }
  EXPECT_EQ(run_program({"run", "--chat"}, "/?\n").err,
            run_program({"run", "--chat"}, "/help\n").err);
}

}  // namespace
}  // namespace cairn::terminal_chat::session_file_test
