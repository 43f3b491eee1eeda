// Answers that are not whole say so: on stderr, in JSON, and by the exit code where a form was
// asked for. Covers what report.cpp and run.cpp make of an answer's end.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/terminal_chat/tool_model.h"

namespace cairn::cli::cut_answers_test {
namespace {

using nlohmann::json;

const std::string kExamples = std::string(CAIRN_SOURCE) + "/docs/examples/";

class CutAnswers : public testing::Test {
 protected:
  std::string random_model() {
    const std::string path = folder_.file("random.gguf");
    EXPECT_EQ(run_program({"synth", "--like", "llama", "--layers", "2", "--vocab", "300", "--width",
                           "64", "-o", path})
                  .exit_code,
              0);
    return path;
  }

  ScratchFolder folder_;
};

TEST_F(CutAnswers, SayWhatTheLimitWas) {
  const std::string tools = folder_.file("tools.gguf");
  terminal_chat::write_model(tools, terminal_chat::kToolTemplate);
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* reason;
    const char* message;
  };
  const char* const kNoForm = "; it does not have the requested form";
  const Case cases[] = {
      {{"run", "-n", "3", "-p", "What is the capital of Italy?"},
       0,
       "length",
       "cairn: the answer was cut off: 3 tokens, as many as were asked for\n"},
      {{"run", "-c", "13", "-p", "What is the capital of France?"},
       0,
       "context",
       "cairn: the answer was cut off: the context of 13 tokens is full\n"},
      {{"run", "-n", "20", "--json-schema", kExamples + "city.json", "-p", "Hi"},
       4,
       "length",
       kNoForm},
      {{"run", "-n", "2", "--regex", "[a-z]{40}", "-p", "Hi"}, 4, "length", kNoForm},
      {{"run", "--json-schema", kExamples + "city.json", "--stop", "\"", "-p", "Hi"},
       4,
       "stop",
       "cairn: the answer ended early; it does not have the requested form\n"},
      {{"run", tools, "--tools", kExamples + "tools.json", "--tool-choice", "required", "-n", "3",
        "-p", "Hi"},
       4,
       "length",
       kNoForm},
  };
  for (const Case& each : cases) {
    const Finished plain = run_program(each.arguments);
    EXPECT_EQ(plain.exit_code, each.exit_code) << plain.err;
    EXPECT_NE(plain.err.find(each.message), std::string::npos) << plain.err;
    std::vector<std::string> arguments = each.arguments;
    arguments.emplace_back("--json");
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.exit_code, each.exit_code) << run.err;
    const json object = json::parse(run.out);
    EXPECT_EQ(object["finish_reason"], each.reason);
    EXPECT_EQ(object["finish"]["reason"], each.reason);
    EXPECT_EQ(object["finish"]["is_cut"], std::string_view(each.reason) != "stop");
    EXPECT_EQ(object["finish"]["fits_form"], each.exit_code == 0);
    EXPECT_EQ("cairn: " + object["finish"]["message"].get<std::string>() + "\n", run.err);
  }
}

TEST_F(CutAnswers, WholeOnesSayNothing) {
  const Finished plain = run_program({"run", "-p", "What is the capital of France?"});
  EXPECT_EQ(plain.exit_code, 0);
  EXPECT_EQ(plain.err, "");
  const Finished formed =
      run_program({"run", "--json", "--choice", "yes,no", "-p", "Is Paris in France?"});
  EXPECT_EQ(formed.exit_code, 0) << formed.err;
  EXPECT_EQ(formed.err, "");
  const json finish = json::parse(formed.out)["finish"];
  EXPECT_EQ(finish, (json{{"reason", "stop"}, {"is_cut", false}, {"fits_form", true}}));
}

// What was said before the memory was full is an answer.
TEST_F(CutAnswers, AFullMemoryKeepsTheText) {
  const std::string model = random_model();
  const std::vector<std::string> base = {
      "run", model, "--raw", "-n", "5000", "--memory-budget", "1M", "--seed", "1", "--ignore-eos"};
  std::vector<std::string> arguments = base;
  arguments.insert(arguments.end(), {"--json", "-p", "Hello"});
  const Finished run = run_program(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json object = json::parse(run.out);
  EXPECT_EQ(object["finish"]["reason"], "memory");
  EXPECT_GT(object["tokens"], 500);
  EXPECT_TRUE(run.err.starts_with("cairn: the answer was cut off: memory budget: ")) << run.err;
  // In a conversation the answer stays, and there is something to go on with.
  arguments = base;
  arguments.insert(arguments.end(), {"--chat", "--sandbox-path", folder_.path().string()});
  const Finished chat = run_program(arguments, "Hello\n/save " + folder_.file("chat.json") + "\n");
  EXPECT_EQ(chat.exit_code, 0);
  EXPECT_NE(chat.err.find("; /continue goes on when there is room\n"), std::string::npos)
      << chat.err;
  const json saved = json::parse(contents_of(folder_.file("chat.json")));
  ASSERT_EQ(saved["messages"].size(), 2u);
  EXPECT_EQ(saved["messages"][1]["content"], object["text"]);
}

// What a shift of the context will leave out is told before it happens.
TEST_F(CutAnswers, ShiftsAreForetold) {
  const Finished run = run_program({"run", "--json", "-c", "64", "--context-policy", "shift", "-p",
                                    "What is the capital of France?"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json context = json::parse(run.out)["context"];
  EXPECT_EQ(context["used_tokens"].get<int>() + context["free_tokens"].get<int>(), 64);
  EXPECT_GT(context["next_shift"]["left_out_tokens"], 0);
  EXPECT_GT(context["next_shift"]["read_tokens"], 0);
  const Finished stops = run_program({"run", "--json", "-c", "64", "-p", "Hello"});
  EXPECT_FALSE(json::parse(stops.out)["context"].contains("next_shift"));
  std::string typed;
  for (int turn = 0; turn < 5; ++turn) typed += "What is the capital of France?\n/memory\n";
  const Finished chat =
      run_program({"run", "--chat", "-c", "64", "--context-policy", "shift"}, typed);
  EXPECT_NE(chat.err.find("when the context is full: leaving out 0 turns ("), std::string::npos)
      << chat.err;
  EXPECT_NE(chat.err.find("when the context is full: leaving out 2 turns ("), std::string::npos)
      << chat.err;
  EXPECT_NE(chat.err.find("\nthe context is full: leaving out 2 turns ("), std::string::npos)
      << chat.err;
}

}  // namespace
}  // namespace cairn::cli::cut_answers_test
