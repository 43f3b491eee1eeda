// The program from outside: answers, exit codes, messages, variables, files that it writes.
// Covers src/cli/main.cpp, run.cpp, report.cpp, chat_loop.cpp on a pipe, welcome.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/cpu_levels.h"
#include "tests/cli/run_program.h"
#include "tests/sanitized.h"

namespace cairn::cli::program_test {
namespace {

using nlohmann::json;

TEST(Program, AnswersWithTheBuiltInModel) {
  const Finished run = run_program({"run", "-p", "What is the capital of France?"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "The capital of France is Paris.\n");
  EXPECT_EQ(run.err, "");
}

TEST(Program, RemembersWhatItWasTold) {
  const Finished run = run_program({"run", "--chat", "-v"}, "My name is Ada.\nWhat is my name?\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.ends_with("\nYour name is Ada.\n")) << run.out;
  // The second turn reads only what is new.
  const size_t first = run.err.find(", 0 reused");
  EXPECT_NE(first, std::string::npos) << run.err;
  EXPECT_EQ(run.err.find(", 0 reused", first + 1), std::string::npos) << run.err;
}

TEST(Program, PipedInputAndFilesArePrompts) {
  const ScratchFolder folder;
  const std::string question = "What is the opposite of early?";
  write_to(folder.file("prompt"), question + "\n");
  const std::string answer = "The opposite of early is late.\n";
  EXPECT_EQ(run_program({"run"}, question).out, answer);
  EXPECT_EQ(run_program({"run"}, question + "\n").out, answer);
  EXPECT_EQ(run_program({"run", "-f", folder.file("prompt")}).out, answer);
  EXPECT_EQ(run_program({"run", "-f", "-"}, question).out, answer);
}

TEST(Program, EveryBackendAndThreadCountAnswersTheSame) {
  const std::vector<std::string> question{
      "run", "--json", "--seed", "7", "--temp", "1", "-p", "What is the capital of Norway?"};
  const auto text_with = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = question;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out)["text"].get<std::string>();
  };
  const std::string answer = text_with({});
  EXPECT_FALSE(answer.empty());
  EXPECT_EQ(text_with({"--backend", "reference"}), answer);
  for (const IsaLevel level : levels_of(detect_cpu_features())) {
    EXPECT_EQ(text_with({"--isa", std::string(name(level))}), answer);
  }
  EXPECT_EQ(text_with({"-t", "1"}), answer);
  EXPECT_EQ(text_with({"-t", "3"}), answer);
}

TEST(Program, JsonSaysWhatHappened) {
  const Finished run = run_program(
      {"run", "--json", "--seed", "5", "-n", "3", "-p", "What is the capital of Italy?"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json object = json::parse(run.out);
  EXPECT_EQ(object["tokens"], 3);
  EXPECT_EQ(object["finish_reason"], "length");
  EXPECT_EQ(object["text"], "The capital of");
  EXPECT_GT(object["prompt_tokens"], 3);
  EXPECT_EQ(object["reused_tokens"], 0);
  EXPECT_EQ(object["sampling"]["seed"], 5);
  EXPECT_EQ(object["sampling"]["temperature"], 0.0);
  EXPECT_EQ(object["sampling"]["top_p"], 0.95);
  EXPECT_EQ(object["architecture"], "granitehybrid");
  EXPECT_GT(object["memory"]["page_bytes"], 0);
  EXPECT_GT(object["memory"]["state_bytes"], 0);
  EXPECT_GE(object["timings"]["first_token_ms"], object["timings"]["prompt_ms"]);
}

TEST(Program, VariablesStandInForOptionsAndTheCommandLineWins) {
  const Environment environment{{"CAIRN_PROMPT", "What is the capital of Italy?"},
                                {"CAIRN_JSON", "1"},
                                {"CAIRN_MAX_TOKENS", "2"}};
  const Finished from_variables = run_program({"run"}, "", environment);
  EXPECT_EQ(json::parse(from_variables.out)["tokens"], 2) << from_variables.err;
  const Finished from_both = run_program({"run", "-n", "4"}, "", environment);
  EXPECT_EQ(json::parse(from_both.out)["tokens"], 4) << from_both.err;
  EXPECT_EQ(run_program({"run"}, "", {{"CAIRN_MAX_TOKENS", "many"}}).exit_code, 2);
}

TEST(Program, RawPromptsGetNoTemplate) {
  const json raw =
      json::parse(run_program({"run", "--raw", "--json", "-n", "1", "-p", "code"}).out);
  const json chat = json::parse(run_program({"run", "--json", "-n", "1", "-p", "code"}).out);
  EXPECT_LT(raw["prompt_tokens"], chat["prompt_tokens"]);
}

TEST(Program, ExitCodesAndMessagesOfMistakes) {
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
    const char* message;
  };
  const Case cases[] = {
      {{"run", "no-such-file.gguf", "-p", "x"}, 1, "cairn: no-such-file.gguf: "},
      {{"run", CAIRN_SOURCE, "-p", "x"}, 2, "expected a regular file, found a directory"},
      {{"run", CAIRN_SOURCE "/assets/README.md", "-p", "x"}, 1, "cairn: "},
      {{"run", "-p", ""}, 2, "PROMPT: expected at least a character, found none"},
      {{"run", "--temp", "-1", "-p", "x"}, 2, "temp: expected a number from 0 to 100, found -1"},
      {{"run", "--top-k", "1.5", "-p", "x"}, 2, "top-k: expected a whole number"},
      {{"run", "--kv", "q3", "-p", "x"},
       2,
       "--kv: expected one of f32, f16, bf16, q8_0, q4_0, found \"q3\""},
      {{"run", "--isa", "mmx", "-p", "x"}, 2, "mmx"},
      {{"run", "--backend", "abacus", "-p", "x"}, 2, "abacus"},
      {{"run", "--memory-budget", "lots", "-p", "x"}, 2, "found \"lots\""},
      {{"run", "-p", "x", "-f", "y"}, 2, "cairn: "},
      {{"run", "--no-such-option"}, 2, "--no-such-option"},
      {{"dance"}, 2, "dance"},
      {{"logits", "x.gguf"}, 2, "--tokens: expected a value, found none"},
      {{"inspect"}, 2, "MODEL: expected a value, found none"},
      {{"synth", "--like", "abacus", "-o", "x"}, 1, "found \"abacus\""},
      {{"synth", "-o", "x"}, 2, "expected --like or --preset"},
  };
  for (const Case& c : cases) {
    const Finished run = run_program(c.arguments);
    EXPECT_EQ(run.exit_code, c.exit_code) << run.err;
    EXPECT_NE(run.err.find(c.message), std::string::npos) << run.err;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

TEST(Program, TooSmallABudgetIsToldWithBothNumbers) {
  const Finished run = run_program({"run", "--memory-budget", "1K", "-p", "Hello"});
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_TRUE(run.err.starts_with("cairn: ")) << run.err;
}

TEST(Program, SaysWhatItMayTakeAndWhatItTakes) {
  const Finished quiet = run_program({"run", "-p", "hi", "-n", "2"});
  EXPECT_EQ(quiet.err.find("memory:"), std::string::npos) << quiet.err;
  const Finished told = run_program({"run", "-p", "hi", "-n", "2", "-v", "-t", "1"});
  EXPECT_EQ(told.exit_code, 0) << told.err;
  for (const char* words : {"may be taken (limit: ", "for weights", "for conversations",
                            "threads: 1; the process may use "}) {
    EXPECT_NE(told.err.find(words), std::string::npos) << words << "\n" << told.err;
  }
}

// Addresses may be few: what is reserved follows them, and where that cannot be it is said how.
TEST(Program, RunsUnderALimitOfAddresses) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers need addresses";
  const auto run_limited = [](const std::string& kibibytes, const std::string& options) {
    return run_command({"sh", "-c",
                        "ulimit -v " + kibibytes + " && exec \"$0\" run -p hi -n 2 -t 2 " + options,
                        CAIRN_PROGRAM});
  };
  for (const char* kibibytes : {"500000", "1000000", "4000000"}) {
    const Finished finished = run_limited(kibibytes, "");
    EXPECT_EQ(finished.exit_code, 0) << kibibytes << ": " << finished.err;
  }
  const Finished refused = run_limited("4000000", "--memory-budget 16G");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("17179869184"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--memory-budget"), std::string::npos) << refused.err;
}

// The first screen reckons with what the engine reckons with.
TEST(Program, TheWelcomeShowsTheLimitOfTheProcess) {
  if (test::kIsSanitized) GTEST_SKIP() << "sanitizers need addresses";
  const Finished limited =
      run_command({"sh", "-c", "ulimit -v 1000000 && exec \"$0\"", CAIRN_PROGRAM});
  EXPECT_EQ(limited.exit_code, 0) << limited.err;
  EXPECT_NE(limited.out.find("of which cairn may take"), std::string::npos) << limited.out;
  EXPECT_NE(limited.out.find("MiB (limit: ulimit -v)\n"), std::string::npos) << limited.out;
}

TEST(Program, HostileNamesCannotSteerTheTerminal) {
  const ScratchFolder folder;
  const std::string evil = folder.file("\033]52;c;aGk=\a\033[2J.gguf");
  write_to(evil, "GGUF, but not really: too short");
  for (const char* command : {"run", "inspect", "tokenize", "template"}) {
    const Finished run = run_program({command, evil}, "x");
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_EQ(run.err.find('\033'), std::string::npos) << command;
    EXPECT_EQ(run.err.find('\a'), std::string::npos) << command;
    EXPECT_NE(run.err.find("\\x1b]52;"), std::string::npos) << run.err;
  }
}

// What other programs' users type.
TEST(Program, KnowsTheSpellingsOfOthers) {
  const std::string paris = "The capital of France is Paris.\n";
  const std::string question = "What is the capital of France?";
  const ScratchFolder folder;
  const std::string model = CAIRN_SOURCE "/assets/nano.gguf";
  const Environment at_home = {{"HOME", folder.path().string()}};
  write_to(folder.file("prompt.txt"), question);
  EXPECT_EQ(run_program({"run", model, question}).out, paris);
  EXPECT_EQ(run_program({"run", "-m", model, "--temperature", "0", "-p", question}).out, paris);
  EXPECT_EQ(run_program({"run", "-i"}, question + "\n").out, paris);
  EXPECT_EQ(run_program({"run", "-cnv"}, question + "\n").out, paris);
  EXPECT_EQ(run_program({"run", "--file=~/prompt.txt"}, "", at_home).out, paris);
  EXPECT_EQ(run_program({"run"}, "", {{"CAIRN_FILE", "~/prompt.txt"}, at_home[0]}).out, paris);
  EXPECT_EQ(run_program({"run", "-i", "--in-prefix", "What is the capital of "}, "France?\n").out,
            paris);
  const Finished saved =
      run_program({"run", "-i", "--sandbox-path=~/"}, question + "\n/save ~/said.json\n", at_home);
  EXPECT_TRUE(std::filesystem::exists(folder.file("said.json"))) << saved.err;
  const auto tokens = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"run", "--json", "-n", "1", "-no-cnv", "-p"});
    const Finished run = run_program(options);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out)["prompt_tokens"].get<int>();
  };
  EXPECT_EQ(tokens({"a\\nb"}), tokens({"a\nb"}) + 1);
  EXPECT_EQ(tokens({"a\\nb", "-e"}), tokens({"a\nb"}));
}

TEST(Program, MessagesHaveALevelAndAPlace) {
  const ScratchFolder folder;
  const std::string log = folder.file("log");
  const std::vector<std::string> question = {"run", "-p", "hi", "-ngl", "9"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), question.begin(), question.end());
    return run_program(more);
  };
  EXPECT_NE(with({}).err.find("no GPU"), std::string::npos);
  EXPECT_EQ(with({"--log-level", "error"}).err, "");
  EXPECT_NE(with({"--log-level", "info"}).err.find("threads"), std::string::npos);
  const Finished filed = with({"--log-file", log});
  EXPECT_EQ(filed.exit_code, 0);
  EXPECT_EQ(filed.err, "");
  EXPECT_NE(contents_of(log).find("no GPU"), std::string::npos) << contents_of(log);
  EXPECT_EQ(with({"--log-level", "loud"}).exit_code, 2);
  EXPECT_EQ(with({"--log-file", folder.path().string()}).exit_code, 2);
  const Finished mistyped = with({"--log-file", folder.file("none") + "/log"});
  EXPECT_EQ(mistyped.exit_code, 1);
  EXPECT_NE(mistyped.err.find("expected a folder for it, found none at "), std::string::npos)
      << mistyped.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("none")));
}

TEST(Program, HelpAndVersionEverywhere) {
  const Finished version = run_program({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("cairn " CAIRN_VERSION)) << version.out;
  EXPECT_TRUE(version.out.ends_with("\nnumerics: exact-1 (default), fast-1\ninstruction set: " +
                                    std::string(name(best_isa(detect_cpu_features()))) + "\n"))
      << version.out;
  for (const char* command :
       {"run", "inspect", "tokenize", "template", "logits", "verify", "bench", "synth"}) {
    const Finished help = run_program({command, "--help"});
    EXPECT_EQ(help.exit_code, 0) << command;
    EXPECT_NE(help.out.find("CAIRN_"), std::string::npos) << help.out;
    EXPECT_NE(run_program({"--help"}).out.find(command), std::string::npos);
  }
  EXPECT_NE(run_program({"run", "--help"}).out.find("not a chat model"), std::string::npos);
  const std::string built_in = "built-in model\n";
  for (const char* command : {"run", "serve", "verify", "perplexity"}) {
    EXPECT_NE(run_program({command, "--help"}).out.find(built_in), std::string::npos) << command;
  }
  for (const char* command : {"inspect", "tokenize", "logits"}) {
    EXPECT_EQ(run_program({command, "--help"}).out.find(built_in), std::string::npos) << command;
    EXPECT_NE(run_program({command}).exit_code, 0) << command << " without a model";
  }
  const Finished alone = run_program({});
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_NE(alone.out.find("cairn run"), std::string::npos);
}

TEST(Program, UnknownCommandsGetTheListAndTheNearest) {
  const auto message_of = [](const std::string& word) {
    const Finished done = run_program({word, "--help"});
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_EQ(done.out, "");
    EXPECT_NE(done.err.find("expected a command (run, serve, route, pull, list, "),
              std::string::npos);
    return done.err.substr(done.err.find("found"));
  };
  EXPECT_EQ(message_of("rum"), "found \"rum\"; did you mean run?\n");
  EXPECT_EQ(message_of("tokenise"), "found \"tokenise\"; did you mean tokenize?\n");
  EXPECT_EQ(message_of("insepct"), "found \"insepct\"; did you mean inspect?\n");
  EXPECT_EQ(message_of("xy"), "found \"xy\"\n");
  EXPECT_EQ(message_of("frobnicate"), "found \"frobnicate\"\n");
  EXPECT_EQ(message_of("a.gguf"), "found \"a.gguf\"; did you mean `cairn run a.gguf`?\n");
  EXPECT_EQ(message_of(""), "found \"\"\n");
}

// As in `cairn run "$MODEL"` where nobody has set that.
TEST(Program, EmptyArgumentsAreMistakes) {
  for (const char* command :
       {"run", "inspect", "tokenize", "template", "logits", "verify", "perplexity", "embed"}) {
    const Finished done = run_program({command, ""}, "What is the capital of France?");
    EXPECT_EQ(done.exit_code, 2) << command;
    EXPECT_EQ(done.out, "") << command;
    EXPECT_EQ(done.err, "cairn: MODEL: expected at least a character, found none\n");
  }
  // A variable that is set and empty is none.
  const Finished done =
      run_program({"run"}, "What is the capital of France?", {{"CAIRN_MODEL", ""}});
  EXPECT_EQ(done.out, "The capital of France is Paris.\n") << done.err;
}

// As users of other programs type them.
TEST(Program, KnowsOtherSpellings) {
  const std::string model = CAIRN_SOURCE "/assets/nano.gguf", question = "Spell the word tree.";
  const Finished usual = run_program({"run", model, "-p", question, "--system", "You are Ada.",
                                      "--temp", "0.5", "-n", "4", "--seed", "3"});
  EXPECT_EQ(usual.exit_code, 0) << usual.err;
  EXPECT_FALSE(usual.out.empty());
  const std::vector<std::vector<std::string>> others = {
      {"-m", model, "-sys", "You are Ada.", "--temperature", "0.5", "--n-predict", "4"},
      {"--model", model, "-sys=You are Ada.", "--temperature=0.5", "--predict", "4"},
      {"-m" + model, "--system-prompt", "You are Ada.", "--temp=0.5", "-n4"}};
  for (const std::vector<std::string>& spelling : others) {
    std::vector<std::string> arguments{"run", "-p", question, "--seed", "3"};
    arguments.insert(arguments.end(), spelling.begin(), spelling.end());
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.out, usual.out) << spelling[0] << run.err;
    EXPECT_EQ(run.err, usual.err);
  }
  EXPECT_EQ(run_program({"inspect", "-m", model}).out, run_program({"inspect", model}).out);
  EXPECT_EQ(run_program({"inspect", "-m", model, model}).exit_code, 2);
  EXPECT_EQ(run_program({"run", "-m", ""}).exit_code, 2);
}

TEST(Program, SaysWhatItDoesNotDo) {
  const Finished gpu = run_program({"run", "-ngl", "99", "-p", "What is the capital of France?"});
  EXPECT_EQ(gpu.exit_code, 0);
  EXPECT_EQ(gpu.out, "The capital of France is Paris.\n");
  EXPECT_NE(gpu.err.find("--gpu-layers 99: cairn has no GPU backend"), std::string::npos)
      << gpu.err;
}

// Two programs that share nothing but the engine agree: the likeliest next token of `logits` is the
// first token of a raw, greedy `run`.
TEST(Program, SynthAndLogitsAndRunAgree) {
  const ScratchFolder folder;
  const std::string model = folder.file("model.gguf");
  ASSERT_EQ(run_program({"synth", "--like", "granitehybrid", "--layers", "2", "--vocab", "600",
                         "--type", "Q4_K", "--untied", "--seed", "2", "-o", model})
                .exit_code,
            0);
  const json tokens = json::parse(run_program({"tokenize", model, "--json"}, "abc").out);
  std::string ids;
  for (const json& token : tokens) ids += std::to_string(token["id"].get<int>()) + " ";
  write_to(folder.file("ids"), ids + "\n" + "1, 2,3\n");
  std::vector<std::string> results;
  for (const char* batch : {"1", "2", "64"}) {
    const Finished run = run_program({"logits", model, "--tokens", folder.file("ids"), "--batch",
                                      batch, "--kv", "f16", "-o", folder.file("rows")});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    results.push_back(contents_of(folder.file("rows")));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  ASSERT_EQ(results[0].size(), (tokens.size() + 3) * 600 * sizeof(float));
  std::vector<float> row(600);
  std::memcpy(row.data(), results[0].data() + (tokens.size() - 1) * 600 * sizeof(float),
              600 * sizeof(float));
  double sum_squares = 0;
  for (const float logit : row) sum_squares += double(logit) * double(logit);
  EXPECT_GT(std::sqrt(sum_squares / 600), 0.01);
  EXPECT_LT(std::sqrt(sum_squares / 600), 20.0);
  const Finished run =
      run_program({"run", model, "--raw", "--json", "--temp", "0", "-n", "1", "-p", "abc"});
  const auto best = std::max_element(row.begin(), row.end()) - row.begin();
  const std::string text = json::parse(run.out)["text"].get<std::string>();
  const json again = json::parse(run_program({"tokenize", model, "--json"}, text).out);
  // A piece of letters, so that its text has these tokens alone; the seed is chosen for that.
  ASSERT_GE(best, 2 + 256);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0]["id"].get<int64_t>(), best);
}

TEST(Program, LogitsNamesTheBadLine) {
  const ScratchFolder folder;
  ASSERT_EQ(run_program({"synth", "--like", "llama", "--layers", "1", "--vocab", "300", "-o",
                         folder.file("m")})
                .exit_code,
            0);
  write_to(folder.file("ids"), "1 2\n3 300\n");
  const Finished run = run_program(
      {"logits", folder.file("m"), "--tokens", folder.file("ids"), "-o", folder.file("rows")});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.err.find("line 2: expected ids below 300, found \"300\""), std::string::npos)
      << run.err;
  EXPECT_FALSE(std::filesystem::exists(folder.file("rows")));
}

}  // namespace
}  // namespace cairn::cli::program_test
