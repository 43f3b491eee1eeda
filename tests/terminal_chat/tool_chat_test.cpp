// Tools, reasoning, stop texts and settings through the whole program: the built-in model with a
// template that knows calls. Covers answer.cpp, answer_printer.cpp, chat_settings.cpp,
// chat_loop.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/commands/load.h"
#include "session/chat_session.h"
#include "terminal_chat/chat_settings.h"
#include "tests/session/answered.h"
#include "tests/terminal_chat/tool_model.h"

namespace cairn::terminal_chat::tool_chat_test {
namespace {

using cli::Finished;
using cli::load_engine;
using cli::run_program;
using test::contents_of;
using test::ScratchFolder;
using test::write_to;

using nlohmann::json;

constexpr char kTools[] =
    R"([{"type": "function", "function": {"name": "get_weather", "description": "The weather.",)"
    R"( "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}])";
constexpr char kQuestion[] = "What is the capital of France?";

class ToolChat : public testing::Test {
 protected:
  void SetUp() override {
    write_model(model_, kToolTemplate);
    write_to(tools_, kTools);
    json call = {{"id", "call_1"},
                 {"type", "function"},
                 {"function", {{"name", "get_weather"}, {"arguments", "{\"city\": \"Oslo\"}"}}}};
    const json saved = {
        {"messages",
         {{{"role", "user"}, {"content", "How is it in Oslo?"}},
          {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", json::array({call})}}}}};
    write_to(saved_, saved.dump());
  }
  std::unique_ptr<Engine> engine() const {
    auto made = load_engine(model_, {});
    EXPECT_TRUE(made) << made.error().message;
    return std::move(made).value();
  }

  ScratchFolder folder_;
  std::string model_ = folder_.file("tools.gguf");
  std::string tools_ = folder_.file("tools.json");
  std::string saved_ = folder_.file("chat.json");
};

TEST_F(ToolChat, AnOpenCallTakesItsResult) {
  const auto model = engine();
  session::ChatOptions options{.sampling = {.temperature = 0}, .token_count_max = 8};
  options.tools = kTools;
  session::ChatSession session = session::ChatSession::start(model.get(), options).value();
  ASSERT_TRUE(session.load(saved_));
  ASSERT_EQ(session.open_calls().size(), 1u);
  EXPECT_EQ(session.open_calls()[0].name, "get_weather");
  const std::vector<std::string> none, one{"21 degrees"};
  EXPECT_FALSE(session::answered(session, session.give_results(none)));
  EXPECT_EQ(session.messages().size(), 2u);
  auto answer = session::answered(session, session.give_results(one));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(session.messages().size(), 4u);
  EXPECT_EQ(session.messages()[2].role, "tool");
  EXPECT_EQ(session.messages()[2].call_id, "call_1");
  EXPECT_TRUE(session.open_calls().empty());
  EXPECT_FALSE(session::answered(session, session.give_results(one))) << "there is no open call";
  // Saved and read again, it is the same conversation.
  ASSERT_TRUE(session.save(folder_.file("again.json")));
  session::ChatSession other = session::ChatSession::start(model.get(), options).value();
  ASSERT_TRUE(other.load(folder_.file("again.json")));
  EXPECT_EQ(other.messages()[1].calls, session.messages()[1].calls);
  EXPECT_EQ(other.messages()[2].content, "21 degrees");
  // The call and its result belong to one turn.
  EXPECT_EQ(session.turn_count(), 1);
  ASSERT_TRUE(session.rewind(1));
  EXPECT_TRUE(session.messages().empty());
}

TEST_F(ToolChat, TheProgramAsksForResults) {
  const Finished run =
      run_program({"run", model_, "--chat", "--temp", "0", "-n", "8", "--tools", tools_,
                   "--sandbox-path", folder_.path().string()},
                  "/load " + saved_ + "\n21 degrees\n/save " + folder_.file("after.json") + "\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("call: get_weather({\"city\": \"Oslo\"})"), std::string::npos) << run.err;
  const json after = json::parse(contents_of(folder_.file("after.json")));
  ASSERT_EQ(after["messages"].size(), 4u);
  EXPECT_EQ(after["messages"][2]["content"], "21 degrees");
  EXPECT_EQ(after["messages"][3]["role"], "assistant");
}

TEST_F(ToolChat, ToolsThatNobodyCanCallAreRefused) {
  const Finished no_form = run_program({"run", "-p", "Hi", "--tools", tools_});
  EXPECT_EQ(no_form.exit_code, 1);
  EXPECT_NE(no_form.err.find("expected a form for tool calls, found none"), std::string::npos);
  write_to(tools_, "{}");
  const Finished no_list = run_program({"run", model_, "-p", "Hi", "--tools", tools_});
  EXPECT_EQ(no_list.exit_code, 1);
  EXPECT_NE(no_list.err.find("tools: expected a list, found object"), std::string::npos);
}

constexpr char kStrictTools[] =
    R"([{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",)"
    R"( "properties": {"city": {"type": "string", "maxLength": 10}, "days": {"type": "integer",)"
    R"( "minimum": 2, "maximum": 9}, "unit": {"enum": ["C", "F"]}},)"
    R"( "required": ["city", "unit"]}}},)"
    R"( {"type": "function", "function": {"name": "stop", "parameters": {"type": "object",)"
    R"( "properties": {}}}}])";

// The built-in model was never trained to call tools: once it has begun, it goes on, unless the
// token that ends a turn is made likelier.
constexpr char kEndsSoon[] = "1+8";

TEST_F(ToolChat, CallsFitTheToolsSchemas) {
  write_to(tools_, kStrictTools);
  const auto run = [&](const std::string& choice, const std::string& seed) {
    const Finished done =
        run_program({"run", model_, "-p", kQuestion, "--json", "--tools", tools_, "--tool-choice",
                     choice, "--temp", "1", "--seed", seed, "-n", "400", "-l", kEndsSoon});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return json::parse(done.out);
  };
  for (const char* seed : {"4", "5", "6", "7"}) {  // With others it reasons, which may be all.
    const json named = run("get_weather", seed);
    ASSERT_EQ(named["tool_calls"].size(), 1u) << named;
    EXPECT_EQ(named["finish_reason"], "tool_calls");
    EXPECT_EQ(named["text"], "");
    const json& function = named["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], "get_weather");
    const json arguments = json::parse(function["arguments"].get<std::string>());
    EXPECT_TRUE(arguments["city"].is_string());
    EXPECT_TRUE(arguments["unit"] == "C" || arguments["unit"] == "F");
    EXPECT_GE(arguments.value("days", 2), 2);
    const json required = run("required", seed);
    EXPECT_GE(required["tool_calls"].size(), 1u) << required;
    EXPECT_FALSE(run("none", seed).contains("tool_calls"));
  }
  const Finished free = run_program(
      {"run", model_, "-p", kQuestion, "--tools", tools_, "--tool-choice", "auto", "--temp", "0"});
  EXPECT_EQ(free.out, "The capital of France is Paris.\n") << free.err;
}

// Results are answered by text; and an answer that was cut within its call goes on within it.
TEST_F(ToolChat, RequiredCallsEndAndGoOn) {
  const auto model = engine();
  session::ChatOptions options{.sampling = {.temperature = 0}, .token_count_max = 400};
  options.tools = kStrictTools;
  options.tool_choice = "stop";
  auto session = session::ChatSession::start(model.get(), options);
  ASSERT_TRUE(session) << session.error().message;
  auto asked = session::answered(*session, session->say(kQuestion));
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(asked->finish, session::FinishReason::tool_calls);
  ASSERT_EQ(session->open_calls().size(), 1u);
  const std::string first_id = session->open_calls()[0].id;
  session->options().token_count_max = 12;
  const std::vector<std::string> results{"done"};
  auto answer = session::answered(*session, session->give_results(results));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_TRUE(session->open_calls().empty());
  // Cut every three tokens.
  session->options().token_count_max = 3;
  answer = session::answered(*session, session->say(kQuestion));
  for (int i = 0; answer && answer->finish == session::FinishReason::length && i < 40; ++i) {
    answer = session::answered(*session, session->continue_answer());
  }
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(session->open_calls().size(), 1u);
  EXPECT_EQ(session->open_calls()[0].name, "stop");
  EXPECT_EQ(json::parse(session->open_calls()[0].arguments),
            json::parse(asked->message.calls[0].arguments));
  EXPECT_NE(session->open_calls()[0].id, first_id);
}

TEST_F(ToolChat, ChoicesThatCannotBeAreRefused) {
  struct Case {
    std::vector<std::string> options;
    std::string message;
  };
  write_to(folder_.file("strange.json"), R"([{"name": "f", "parameters": {"type": "string"}}])");
  const Case cases[] = {
      {{"--tools", tools_, "--tool-choice", "fly"}, "expected a tool's name, found \"fly\""},
      {{"--tool-choice", "auto"}, "--tool-choice: expected --tools beside it, found none"},
      {{"--tools", tools_, "--tool-choice", "auto", "--regex", "a"}, "found both"},
      {{"--tools", folder_.file("strange.json"), "--tool-choice", "auto"},
       "tools: f.parameters.type: expected \"object\", found \"string\""},
  };
  for (const auto& [options, message] : cases) {
    std::vector<std::string> arguments = {"run", model_, "-p", "Hi"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
  }
}

TEST_F(ToolChat, ReasoningIsKeptApartAndHasABudget) {
  // The end of the answer is left out of the choice, so that all have as many tokens.
  const auto answer_with = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"run", model_, "--temp",  "0",      "-n",
                                       "24",  "-p",   kQuestion, "--json", "--ignore-eos"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out);
  };
  const json on = answer_with({"--reasoning", "on"});
  EXPECT_FALSE(on["reasoning"].get<std::string>().empty());
  EXPECT_EQ(on["text"], "") << "this model never ends its reasoning";
  EXPECT_EQ(on["reasoning_tokens"], 24);
  const json limited = answer_with({"--reasoning", "3"});
  EXPECT_EQ(limited["tokens"], 24);
  EXPECT_LT(limited["reasoning_tokens"].get<int>(), 24);
  EXPECT_TRUE(
      on["reasoning"].get<std::string>().starts_with(limited["reasoning"].get<std::string>()));
  EXPECT_LT(limited["reasoning"].get<std::string>().size(),
            on["reasoning"].get<std::string>().size());
  EXPECT_FALSE(limited["text"].get<std::string>().empty());
  const json off = answer_with({"--reasoning", "off"});
  EXPECT_FALSE(off.contains("reasoning"));
  EXPECT_EQ(off["text"], answer_with({})["text"]);
  const Finished bad = run_program({"run", model_, "-p", "Hi", "--reasoning", "much"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.err.find("expected on, off or a number of tokens, found \"much\""),
            std::string::npos);
}

TEST_F(ToolChat, StopTextsEndTheAnswerAndProbabilitiesAreTold) {
  const Finished run = run_program({"run", "-p", kQuestion, "--stop", "zzz", "--stop", " France"});
  EXPECT_EQ(run.out, "The capital of\n") << run.err;
  const Finished likely = run_program({"run", "-p", kQuestion, "--json", "--n-probs", "3"});
  const json said = json::parse(likely.out);
  ASSERT_EQ(said["logprobs"]["content"].size(), said["tokens"].get<size_t>());
  const json& first = said["logprobs"]["content"][0];
  EXPECT_EQ(first["top_logprobs"].size(), 3u);
  EXPECT_EQ(first["top_logprobs"][0]["token"], first["token"]) << "the choice was greedy";
}

TEST_F(ToolChat, MessagesMayHaveSeveralLines) {
  const std::string saved = folder_.file("lines.json");
  const Finished run =
      run_program({"run", "--chat", "-n", "1", "--sandbox-path", folder_.path().string()},
                  "\"\"\"one\ntwo\n\"\"\"\n\"\"\"three\"\"\"\n/save " + saved + "\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const json messages = json::parse(contents_of(saved))["messages"];
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0]["content"], "one\ntwo");
  EXPECT_EQ(messages[2]["content"], "three");
}

TEST_F(ToolChat, SettingsChangeByName) {
  const Finished run = run_program(
      {"run", "--chat", "--seed", "5"},
      std::string(kQuestion) +
          "\n/set temperature 0.25\n/set top_k 7\n/set reasoning off\n/show\n"
          "/set nonsense 1\n/set temp x\n/retry temp=0 max_tokens=3\n/show\n/retry temp=0 bad\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("The capital of France is Paris.\n")) << run.out;
  for (const char* line :
       {"temp                0.25", "top-k               7", "reasoning           off",
        "seed                5", "settings: expected a name that /show lists, found \"nonsense\"",
        "temp: expected a number, found \"x\"", "max-tokens          3",
        "settings: expected NAME=VALUE, found \"bad\""}) {
    EXPECT_NE(run.err.find(line), std::string::npos) << line << "\nin\n" << run.err;
  }
}

TEST_F(ToolChat, SettingsHaveOllamasNamesToo) {
  const Finished run =
      run_program({"run", "--chat", "--seed", "5"},
                  "/set parameter top_k 9\n/set parameter num_predict 2\n"
                  "/set parameter num_ctx 4096\n/set nothink\n"
                  "/set system You are Ada.\n/set tempp 1\n/show top-k\n"
                  "/show system\n/show max-tokens\n/show reasoning\n/show weather\n"
                  "/set system\n/show system\n/shov\n/save\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err,
            "cairn: settings: expected one that a conversation can change, found \"num-ctx\"; "
            "--ctx-size is given when cairn starts\n"
            "cairn: settings: expected a name that /show lists, found \"tempp\"; did you mean "
            "temp?\n"
            "top-k               9\n"
            "system              You are Ada.\n"
            "max-tokens          2\n"
            "reasoning           off\n"
            "cairn: /show: expected one of its lines, found \"weather\"\n"
            "system: none\n"
            "/shov: no such command (did you mean /show?); /help lists them. A message may start "
            "with a blank.\n"
            "cairn: /save: expected a file name, found none\n");
}

TEST_F(ToolChat, ContinuingAWholeAnswerSaysWhyNothingComes) {
  const Finished run = run_program({"run", "--chat"}, std::string(kQuestion) + "\n/continue\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("the answer ends here: the model adds nothing\n"), std::string::npos)
      << run.err;
}

TEST(ChatSettings, SeveralAreSetTogetherOrNotAtAll) {
  session::ChatOptions options;
  EXPECT_FALSE(set_settings(options, "temp=0.5 top-k=-3"));
  EXPECT_EQ(options.sampling.temperature, sample::SamplingParams().temperature);
  ASSERT_TRUE(set_settings(options, "temp=0.5  seed=9 max-tokens=-1 reasoning=12"));
  EXPECT_EQ(options.sampling.temperature, 0.5f);
  EXPECT_EQ(options.sampling.seed, 9u);
  EXPECT_EQ(options.reasoning_tokens_max, 12);
  EXPECT_EQ(options.reasoning, chat::ReasoningMode::on);
}

}  // namespace
}  // namespace cairn::terminal_chat::tool_chat_test
