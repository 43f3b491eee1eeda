// What the program shows of its memory, from outside: `cairn verify`, `cairn bench memory`, the
// commands of a conversation on a pipe, options for full contexts. Covers verify.cpp,
// memory_bench.cpp, memory_scenarios.cpp, memory_costs.cpp, memory_paging.cpp, chat_loop.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "tests/cli/run_program.h"
#include "tests/fast_here.h"
#include "tests/sanitized.h"

namespace cairn::cli::memory_commands_test {
namespace {

using nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Verify, TheBuiltInModelKeepsThePromise) {
  std::vector<std::string> arguments{"verify"};
  if (test::kIsSanitized) arguments.insert(arguments.end(), {"--programs", "2"});
  const Finished run = run_program(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.out.starts_with("operation ")) << run.out;
  EXPECT_TRUE(has(run.out, "differing bits")) << run.out;
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 15) << run.out;
  EXPECT_TRUE(has(run.out, "\nturn ")) << run.out;
  EXPECT_TRUE(has(run.out, "\nfingerprint ")) << run.out;
  EXPECT_EQ(run.err, "");
}

TEST(Verify, JsonAddsUpAndTheSeedDecides) {
  const auto verified = [](const char* seed) {
    const Finished run = run_program({"verify", "--json", "--programs", "2", "--seed", seed});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out);
  };
  const json first = verified("5");
  EXPECT_EQ(first["seed"], 5);
  EXPECT_EQ(first["differing_bits"], 0);
  EXPECT_EQ(first["first_difference"], "");
  int64_t count = 0, computed = 0;
  for (const json& row : first["operations"]) {
    count += row["count"].get<int64_t>();
    computed += row["computed_tokens"].get<int64_t>();
  }
  EXPECT_EQ(count, 2 * 24);
  EXPECT_GT(computed, 0);
  EXPECT_EQ(verified("5"), first);
  EXPECT_NE(verified("6")["operations"], first["operations"]);
}

TEST(Verify, AShortContextIsEnough) {
  for (const char* context : {"2", "17", "64"}) {
    const Finished run = run_program({"verify", "--programs", "2", "-c", context});
    EXPECT_EQ(run.exit_code, 0) << context << ": " << run.err;
  }
  const Finished none = run_program({"verify", "-c", "1"});
  EXPECT_NE(none.exit_code, 0);
  EXPECT_TRUE(has(none.err, "verify: expected a context of at least 2 tokens, found 1"))
      << none.err;
  const Finished more = run_program({"verify", "-c", "64", "--tokens", "64"});
  EXPECT_NE(more.exit_code, 0);
  EXPECT_TRUE(has(more.err, "verify: expected at most 63 tokens in a context of 64, found 64"))
      << more.err;
}

// The windows, chunks and steps of real models, crossed more than once: attention's runs of 256
// positions, windows of 512 and 1024, recurrent states.
TEST(Verify, LongSequencesOnShapesWithRealWindows) {
  const ScratchFolder folder;
  struct Shape {
    std::vector<std::string> options;
    const char* tokens;
  };
  const Shape shapes[] = {
      {{"--like", "gpt-oss"}, "700"},
      {{"--like", "gemma3", "--window", "512"}, "1300"},
      {{"--like", "gemma2", "--window", "1024"}, "2300"},
      {{"--like", "llama4"}, "700"},
      {{"--like", "granitehybrid", "--attention-every", "2"}, "700"},
      {{"--like", "qwen3next", "--attention-every", "2"}, "700"},
  };
  for (const Shape& shape : std::span(shapes).first(test::kIsSanitized ? 1 : std::size(shapes))) {
    const std::string path = folder.file("model.gguf");
    std::vector<std::string> write{"synth",     "--layers", "2",  "--vocab", "300",
                                   "--context", "4096",     "-o", path};
    write.insert(write.end(), shape.options.begin(), shape.options.end());
    const Finished written = run_program(write);
    ASSERT_EQ(written.exit_code, 0) << written.err;
    const Finished run =
        run_program({"verify", path, "--json", "--programs", "2", "--tokens", shape.tokens});
    EXPECT_EQ(run.exit_code, 0) << shape.options[1] << ": " << run.err;
    if (run.exit_code != 0) continue;
    const json report = json::parse(run.out);
    EXPECT_EQ(report["differing_bits"], 0) << shape.options[1];
    int64_t reused = 0;
    for (const json& row : report["operations"]) reused += row["reused_tokens"].get<int64_t>();
    EXPECT_GT(reused, 2 * 24 * 200) << "forks of a long text: " << shape.options[1];
    std::filesystem::remove(path);
  }
}

TEST(Verify, SaysWhatIsMissing) {
  const Finished none = run_program({"verify", "no-such-file.gguf"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(none.err.starts_with("cairn: no-such-file.gguf: ")) << none.err;
  EXPECT_EQ(run_program({"verify", "--programs", "0"}).exit_code, 2);
  const Finished small = run_program({"verify", "--memory-budget", "600K"});
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_TRUE(small.err.starts_with("cairn: ")) << small.err;
  EXPECT_EQ(small.out, "") << "no table where it was not carried out";
}

// Figures depend on the machine, so that they are only looked at for being there.
TEST(BenchMemory, MeasuresAModelThatIsNamed) {
  if (test::kIsSanitized) GTEST_SKIP() << "measures; other tests take the same ways";
  const ScratchFolder folder;
  const std::string model = folder.file("model.gguf");
  ASSERT_EQ(run_program({"synth", "--like", "granitehybrid", "--layers", "2", "--vocab", "600",
                         "--context", "40000", "-o", model})
                .exit_code,
            0);
  const Finished run = run_program({"bench", "memory", model, "--json"});
  EXPECT_TRUE(run.exit_code == 0 || run.exit_code == 1) << run.exit_code << run.err;
  const json models = json::parse(run.out);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0]["model"], model);
  bool all_hold = true;
  EXPECT_GT(models[0]["figures"].size(), 10u);
  for (const json& figure : models[0]["figures"]) {
    EXPECT_FALSE(figure["figure"].get<std::string>().empty());
    EXPECT_TRUE(figure["measured"].is_number()) << figure;
    all_hold = all_hold && figure["holds"].get<bool>();
    // Tokens and bytes are no matter of time: their bars hold on every machine.
    const std::string unit = figure["unit"];
    EXPECT_TRUE(figure["holds"] || (unit != "tokens" && unit != "bytes")) << figure;
  }
  EXPECT_EQ(run.exit_code, all_hold ? 0 : 1);
}

TEST(BenchMemory, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(run_program({"bench", "memory", "no-such-file.gguf"}).exit_code, 1);
  EXPECT_TRUE(has(run_program({"bench", "memory", "--preset", "abacus"}).err, "abacus"));
}

TEST(ChatCommands, GoBackBranchAndChange) {
  const Finished run = run_program({"run", "--chat", "-v"},
                                   "My cat is called Mimi.\n"
                                   "What is 17 + 5?\n"
                                   "/rewind\n"
                                   "/fork aside\n"
                                   "What is my cat called?\n"
                                   "/branches\n"
                                   "/switch main\n"
                                   "/edit I have 12 apples.\n"
                                   "How many apples do I have?\n"
                                   "/regen\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(has(run.out, "\nYour cat is called Mimi.\n")) << run.out;
  EXPECT_TRUE(run.out.ends_with("\nYou have 12 apples.\nYou have 12 apples.\n")) << run.out;
  EXPECT_TRUE(has(run.err, "1 turns left; ")) << run.err;
  EXPECT_TRUE(has(run.err, " tokens stay, 0 to compute")) << run.err;
  EXPECT_TRUE(has(run.err, "now in aside; it shares all 1 turns so far\n")) << run.err;
  EXPECT_TRUE(has(run.err, "  main             2 messages\n* aside            4 messages\n"))
      << run.err;
  EXPECT_TRUE(has(run.err, "now in main, 1 turns; ")) << run.err;
}

TEST(ChatCommands, DrawSaveAndLoad) {
  const ScratchFolder folder;
  const std::string path = folder.file("chat.json");
  const std::vector<std::string> command = {"run", "--chat", "--sandbox-path",
                                            folder.path().string()};
  const Finished run =
      run_program(command, "/memory\nMy cat is called Mimi.\n/memory\n/save " + path + "\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.err.starts_with("nothing is kept yet\n0 tokens, room for ")) << run.err;
  EXPECT_TRUE(has(run.err, "\nrecurrent ")) << run.err;
  EXPECT_TRUE(has(run.err, "2 messages written to " + path)) << run.err;
  EXPECT_EQ(json::parse(contents_of(path))["messages"].size(), 2u);
  const Finished again = run_program(command, "/load " + path + "\nWhat is my cat called?\n");
  EXPECT_EQ(again.out, "Your cat is called Mimi.\n");
  EXPECT_TRUE(has(again.err, "2 messages read from " + path)) << again.err;
}

TEST(ChatCommands, MistakesAreToldAndTheConversationGoesOn) {
  const Finished run = run_program({"run", "--chat"},
                                   "/rewind\n/regen\n/continue\n/edit\n/edit x\n/fork\n/switch\n"
                                   "/switch x\n/save\n/load\n/load no-such-file\n/dance\n"
                                   "Hello\n"
                                   "/rewind 0\n/rewind -1\n/rewind 2\n/rewind 1x\n"
                                   "/rewind 99999999999999999999\n/fork main\n"
                                   "/save no-such-folder/x\n"
                                   "Thanks\n");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "Hello! How can I help you?\nYou are welcome.\n");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 19) << run.err;
  for (const char* message :
       {"/rewind: expected a turn to take back, found none",
        "/rewind: expected 1 to 1 turns, found 0", "/rewind: expected 1 to 1 turns, found -1",
        "/rewind: expected 1 to 1 turns, found 2",
        "/rewind: expected a number of turns, found \"1x\"",
        "/rewind: expected a number of turns, found \"99999999999999999999\"",
        "/fork: expected a conversation, found no message",
        "/fork: expected a new name, found \"main\" again",
        "/switch: expected one of main, found \"\"", "/save: expected a file name",
        "/load: expected a file name", "/dance: no such command"}) {
    EXPECT_TRUE(has(run.err, message)) << message << "\n" << run.err;
  }
}

TEST(FullContexts, StopUnlessToldToShift) {
  const std::string question = "What is the opposite of early? What is the capital of Norway?";
  const std::vector<std::string> base{"run", "--json", "-c", "24", "-p", question + " " + question};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = base;
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  };
  const Finished stopped = with({});
  EXPECT_EQ(stopped.exit_code, 1);
  EXPECT_TRUE(has(stopped.err, "cairn: context: ")) << stopped.err;
  EXPECT_EQ(with({"--context-policy", "stop"}).err, stopped.err);
  const Finished shifted = with({"--context-policy", "shift", "--keep", "4", "-v"});
  ASSERT_EQ(shifted.exit_code, 0) << shifted.err;
  const json object = json::parse(shifted.out);
  EXPECT_GT(object["left_out_tokens"], 0);
  EXPECT_EQ(object["left_out_tokens"].get<int>() % 10, 0) << "halves of the 20 behind the kept";
  EXPECT_LE(object["prompt_tokens"], 24);
  EXPECT_TRUE(has(shifted.err, "; " + object["left_out_tokens"].dump() + " left out"))
      << shifted.err;
  const Finished by_variables = run_program(
      base, "",
      {{"CAIRN_CONTEXT_POLICY", "shift"}, {"CAIRN_KEEP", "4"}, {"CAIRN_KEEP_WINDOWS", "1"}});
  EXPECT_EQ(json::parse(by_variables.out)["text"], object["text"]) << by_variables.err;
}

TEST(FullContexts, WhatCannotBeIsRefused) {
  const Finished unknown = run_program({"run", "--context-policy", "roll", "-p", "x"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(has(unknown.err, "--context-policy: expected \"stop\" or \"shift\", found \"roll\""));
  const Finished useless = run_program({"run", "--keep", "4", "-p", "x"});
  EXPECT_EQ(useless.exit_code, 2);
  EXPECT_TRUE(has(useless.err, "--keep: expected --context-policy shift")) << useless.err;
  EXPECT_EQ(run_program({"run", "--keep", "-1", "-p", "x"}).exit_code, 2);
  const Finished too_many =
      run_program({"run", "-c", "24", "--context-policy", "shift", "--keep", "20", "-p", "x"});
  EXPECT_NE(too_many.exit_code, 0);
  EXPECT_TRUE(has(too_many.err, "found 20 of 24")) << too_many.err;
}

// Windows that are all kept are seen in the memory that an answer holds.
TEST(FullContexts, KeptWindowsCostMemory) {
  const ScratchFolder folder;
  const std::string model = folder.file("model.gguf");
  ASSERT_EQ(
      run_program({"synth", "--like", "gemma3", "--layers", "6", "--vocab", "600", "-o", model})
          .exit_code,
      0);
  std::string text;
  for (int word = 0; word < 600; ++word) text += "abcdefgh ";
  const auto bytes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"run", model, "--json", "-n", "1", "--raw", "-f", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = run_program(arguments, text);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const json object = json::parse(run.out);
    EXPECT_GT(object["prompt_tokens"], 1000);
    return object["memory"]["page_bytes"].get<int64_t>();
  };
  EXPECT_LT(bytes({}), bytes({"--keep-windows"}));
}

TEST(Verify, DraftsChangeNothing) {
  for (const char* numerics : {"exact", "fast"}) {
    if (std::string_view(numerics) == "fast" && !test::has_fast()) continue;
    const Finished run =
        run_program({"verify", "--draft", "--json", "--programs", "4", "--numerics", numerics});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto report = nlohmann::json::parse(run.out);
    ASSERT_EQ(report["drafters"].size(), 9u);
    for (const auto& row : report["drafters"]) {
      EXPECT_EQ(row["answers"], 4) << row;
      EXPECT_EQ(row["differing"], 0) << row;
      EXPECT_GT(row["drafted"], 10) << row;
    }
  }
}

}  // namespace
}  // namespace cairn::cli::memory_commands_test
