// Answers that must look like something, with the built-in model, which was never trained to: the
// command line's options, going on with an answer that was cut, and what is said of mistakes.
// Covers constraint.cpp.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "cli/commands/load.h"
#include "session/chat_session.h"
#include "session/constraint.h"
#include "tests/cli/run_program.h"
#include "tests/session/answered.h"

namespace cairn::cli::structured_test {
namespace {

using nlohmann::json;

constexpr char kSchema[] =
    R"({"type":"object","properties":{"city":{"type":"string","maxLength":12},
        "population":{"type":"integer","minimum":1000,"maximum":99999},
        "capital":{"type":"boolean"}},"required":["city","population","capital"]})";
constexpr char kQuestion[] = "What is the capital of France?";

std::string answer_of(std::vector<std::string> options) {
  options.insert(options.begin(), {"run", "-p", kQuestion});
  const Finished run = run_program(options);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.out;
}

TEST(Structured, SchemasFromTextAndFile) {
  const ScratchFolder folder;
  write_to(folder.file("schema.json"), kSchema);
  const std::string text = answer_of({"--json-schema", kSchema});
  EXPECT_EQ(answer_of({"--json-schema", folder.file("schema.json")}), text);
  const json object = json::parse(text);
  EXPECT_TRUE(object["city"].is_string());
  EXPECT_GE(object["population"].get<int>(), 1000);
  EXPECT_TRUE(object["capital"].is_boolean());
  EXPECT_EQ(object.size(), 3u);
}

TEST(Structured, GrammarsRegexesAndChoices) {
  const ScratchFolder folder;
  write_to(folder.file("grammar.gbnf"), "root ::= \"- \" [A-Z] [a-z]{3,9} \"!\"");
  EXPECT_TRUE(std::regex_match(answer_of({"--grammar", folder.file("grammar.gbnf")}),
                               std::regex("- [A-Z][a-z]{3,9}!\n")));
  EXPECT_TRUE(std::regex_match(answer_of({"--regex", "\\d{3}-[xyz]{1,9}ok", "-n", "40"}),
                               std::regex("[0-9]{3}-[xyz]{1,9}ok\n")));
  EXPECT_TRUE(std::regex_match(answer_of({"--choice", "Rome,Paris,Oslo"}),
                               std::regex("(Rome|Paris|Oslo)\n")));
  EXPECT_EQ(answer_of({"--choice", "Rome", "--choice", "Oslo"}).size(), 5u);
}

TEST(Structured, MistakesSayWhereAndWhy) {
  const ScratchFolder folder;
  write_to(folder.file("bad.gbnf"), "root ::= \"a\"\nroot ::= x");
  struct Case {
    std::vector<std::string> options;
    std::string message;
    int exit_code = 2;
  };
  const Case cases[] = {
      {{"--grammar", folder.file("bad.gbnf")}, "line 2, column 1: rule \"root\" is there twice"},
      {{"--json-schema", "{\"type\":\"strin\"}"},
       "line 1, column 9: expected the name of a type, found \"strin\""},
      {{"--regex", "(a"}, "regex: line 1, column 1: this parenthesis is never closed"},
      {{"--json-schema", folder.file("none.json")}, "none.json", 1},
      {{"--regex", "a", "--choice", "b"}, "--regex: expected it or --choice, found both"},
  };
  for (const auto& [options, message, exit_code] : cases) {
    std::vector<std::string> arguments = {"run", "-p", kQuestion};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    EXPECT_NE(run.err.find(message), std::string::npos) << run.err;
  }
}

// Where an answer stands in its grammar is known again from its tokens: wherever it is cut, the
// rest is the same.
TEST(Structured, CutAnswersGoOnAsTheyWould) {
  auto engine = load_engine("", {});
  ASSERT_TRUE(engine);
  auto matcher = session::make_matcher({.json_schema = kSchema}, (*engine)->text());
  ASSERT_TRUE(matcher) << matcher.error().message;
  session::ChatOptions options{.matcher = matcher->get()};
  options.sampling.seed = 5;
  auto whole_session = session::ChatSession::start(engine->get(), options);
  auto whole = session::answered(*whole_session, whole_session->say(kQuestion));
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->finish, session::FinishReason::stop);
  options.token_count_max = 3;
  auto session = session::ChatSession::start(engine->get(), options);
  auto answer = session::answered(*session, session->say(kQuestion));
  for (int i = 0; answer && answer->finish == session::FinishReason::length && i < 200; ++i) {
    answer = session::answered(*session, session->continue_answer());
  }
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(session->messages().back().content, whole->text);
  EXPECT_EQ(session->messages().back().tokens, whole->tokens);
  // There is nothing to go on with.
  auto nothing = session::answered(*session, session->continue_answer());
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->text, "");
}

}  // namespace
}  // namespace cairn::cli::structured_test
