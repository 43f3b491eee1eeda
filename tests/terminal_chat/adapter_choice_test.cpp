// Adapters as people choose them: on the command line and during a conversation.
#include "terminal_chat/adapter_choice.h"

#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::terminal_chat::adapter_choice_test {
namespace {

using cli::Finished;
using cli::run_program;

TEST(AdapterChoice, NamesWithAndWithoutScales) {
  const auto file = [](const char* text) { return parse_adapter(text).value(); };
  EXPECT_EQ(file("a/b.gguf").path, "a/b.gguf");
  EXPECT_EQ(file("a/b.gguf").scale, 1.0f);
  EXPECT_EQ(file("a:b.gguf:-0.5").path, "a:b.gguf");
  EXPECT_EQ(file("a:b.gguf:-0.5").scale, -0.5f);
  for (const char* wrong : {"a:half", "a:", ":1", "", "a:nan", "a:inf", "a:1e99", "a:1x"}) {
    EXPECT_FALSE(parse_adapter(wrong)) << wrong;
  }
  const std::vector<AdapterUse> two = {{"tone", 1}, {"facts", 0.25f}};
  EXPECT_EQ(parse_adapter_uses("tone  facts:0.25 ").value(), two);
  EXPECT_TRUE(parse_adapter_uses("off").value().empty());
  EXPECT_FALSE(parse_adapter_uses("tone facts:much"));
}

std::string fixture(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/" + name;
}

// Options that may come several times take one value each time: what stands behind is the model.
TEST(AdapterChoice, OneValueForEachOption) {
  const std::string model = fixture("folders/Tiny-Llama-3.1-8B-Instruct.gguf");
  const std::string tone = fixture("adapters/tone.gguf"), facts = fixture("adapters/facts.gguf");
  const auto answer = [](std::vector<std::string> arguments) {
    for (const char* more : {"-p", "hello", "--temp", "0", "-n", "6"}) arguments.emplace_back(more);
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  const std::string expected = answer({"run", model, "--lora", tone, "--lora", facts});
  EXPECT_EQ(answer({"run", "--lora", tone, "--lora", facts, model}), expected);
  EXPECT_EQ(answer({"run", "--lora", tone, "--lora", facts, "--stop", "zzz", model}), expected);
  EXPECT_EQ(answer({"run", "--choice", "yes,no", model}),
            answer({"run", model, "--choice", "yes,no"}));
}

// What is said after a change is what a conversation says that had those adapters from the
// beginning, and the way back costs nothing.
TEST(AdapterChoice, ChangesDuringAConversation) {
  const std::string model = fixture("folders/Tiny-Llama-3.1-8B-Instruct.gguf");
  const std::string tone = fixture("adapters/tone.gguf"), facts = fixture("adapters/facts.gguf");
  const auto chat = [&](const std::vector<std::string>& more, const std::string& input) {
    std::vector<std::string> arguments = {"run", model, "--chat", "--temp", "0", "-n", "6", "-v"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = run_program(arguments, input);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run;
  };
  const auto answer_by = [&](const std::vector<std::string>& more) {
    return chat(more, "hello there\n").out;
  };
  const std::string plain = answer_by({});
  const std::string by_tone = answer_by({"--lora", tone});
  const std::string by_both = answer_by({"--lora", tone + ":0.5", "--lora", facts + ":-1.25"});
  EXPECT_NE(plain, by_tone);
  EXPECT_NE(by_tone, by_both);
  const Finished run =
      chat({"--lora", tone, "--lora", facts + ":0"},
           "/lora\nhello there\n/lora off\n/regen\n/lora facts:-1.25 tone:0.5\n/regen\n"
           "/lora nobody\n/lora tone:x\n/lora tone\n/regen\n");
  EXPECT_EQ(run.out, by_tone + plain + by_both + by_tone) << run.err;
  for (const char* line :
       {"tone   on, scale 1\nfacts  off\n", "tone   off\nfacts  off\n", "plans: 3 selections, ",
        "tone   on, scale 0.5\nfacts  on, scale -1.25\n",
        "adapter: expected one of tone, facts, found nobody",
        "/lora: expected NAME or NAME:SCALE, found \"tone:x\"",
        " 0 reused, the rest read again: other adapters"}) {
    EXPECT_NE(run.err.find(line), std::string::npos) << line << "\nin\n" << run.err;
  }
  const Finished without = chat({}, "/lora\n/lora tone\n");
  EXPECT_NE(without.err.find("no adapters are loaded"), std::string::npos) << without.err;
  EXPECT_NE(without.err.find("none is loaded, found tone"), std::string::npos) << without.err;
}

}  // namespace
}  // namespace cairn::terminal_chat::adapter_choice_test
