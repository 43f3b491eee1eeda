// Which files belong to what, and `cairn run` in its sandbox from outside.
#include "cli/options/sandbox_argument.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/cli/run_program.h"

namespace cairn::cli::sandbox_argument_test {
namespace {

bool has(const std::vector<std::string>& paths, const std::string& path) {
  return std::ranges::find(paths, path) != paths.end();
}

TEST(SandboxRules, AModelHasItsPartsAndWhatStandsBesideIt) {
  SandboxRules rules;
  allow_model("", rules);
  EXPECT_TRUE(rules.readable.empty());
  allow_model("a/big-00001-of-00003.gguf", rules);
  EXPECT_TRUE(has(rules.readable, "a/big-00003-of-00003.gguf"));
  EXPECT_FALSE(has(rules.readable, "a"));
  EXPECT_TRUE(rules.writable.empty());
}

TEST(SandboxRules, AFolderOfModelsHasWhatItsLinksLeadTo) {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder.path() / "models");
  const std::string link = folder.file("models/a.gguf");
  std::filesystem::create_symlink(folder.file("elsewhere.gguf"), link);
  SandboxRules rules;
  allow_model(folder.file("models"), rules);
  EXPECT_TRUE(has(rules.readable, link));
}

TEST(SandboxRules, AnEngineHasAdaptersDraftsAndItsStore) {
  const ScratchFolder folder;
  EngineOptions options;
  options.adapters = {{.path = "adapter.gguf"}};
  options.draft_model.path = "draft.gguf";
  options.cache_dir = folder.file("store");
  SandboxRules rules;
  allow_engine(options, rules);
  EXPECT_TRUE(has(rules.readable, "adapter.gguf") && has(rules.readable, "draft.gguf"));
  EXPECT_TRUE(has(rules.writable, folder.file("store")));
  EXPECT_TRUE(std::filesystem::is_directory(folder.file("store"))) << "to be named, it is there";
}

TEST(SandboxRules, FilesThatAreReplacedHaveTheirFolder) {
  SandboxRules rules;
  allow_output("/etc/here/file", rules);
  allow_output("", rules);
  allow_output("-", rules);
  EXPECT_EQ(rules.writable, std::vector<std::string>{"/etc/here"});
  allow_replaced("keys", rules);
  EXPECT_TRUE(has(rules.readable, "."));
}

class SandboxedRun : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = sandbox_support().why_not;
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
  const ScratchFolder folder_;
};

// All that one answer reads and writes, with the sandbox and without: the same bits.
TEST_F(SandboxedRun, AnswersWithTheSameBits) {
  std::string answers[2], receipts[2];
  for (const bool is_on : {false, true}) {
    const std::string receipt = folder_.file(is_on ? "on.json" : "off.json");
    const Finished run =
        run_program({"run",          CAIRN_SOURCE "/assets/nano.gguf",
                     "-p",           "What is the capital of France?",
                     "--temp",       "1",
                     "--seed",       "7",
                     "--sandbox",    is_on ? "on" : "off",
                     "--cache-dir",  folder_.file(is_on ? "store-on" : "store-off"),
                     "--pack-cache", folder_.file(is_on ? "pack-on" : "pack-off"),
                     "--receipt",    receipt,
                     "--session",    folder_.file(is_on ? "session-on" : "session-off"),
                     "--trace",      folder_.file(is_on ? "trace-on" : "trace-off")});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_FALSE(std::filesystem::is_empty(folder_.file(is_on ? "pack-on" : "pack-off")));
    answers[is_on] = run.out;
    receipts[is_on] = contents_of(receipt);
  }
  EXPECT_NE(answers[0], "");
  EXPECT_EQ(answers[0], answers[1]);
  EXPECT_EQ(receipts[0], receipts[1]);
}

TEST_F(SandboxedRun, AConversationHasItsFolderAndThoseThatAreNamed) {
  const ScratchFolder elsewhere;
  const std::string out = elsewhere.file("saved.json");
  const std::string input = "Hello\n/save " + out + "\n";
  const std::vector<std::string> command = {"run", "--chat", "--sandbox", "on"};
  const Finished refused = run_program(command, input);
  EXPECT_NE(refused.err.find("Permission denied"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--sandbox-path"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  std::vector<std::string> named = command;
  named.insert(named.end(), {"--sandbox-path", elsewhere.path().string()});
  const Finished saved = run_program(named, input);
  EXPECT_TRUE(std::filesystem::exists(out)) << saved.err;
  EXPECT_EQ(saved.out, refused.out);
}

}  // namespace
}  // namespace cairn::cli::sandbox_argument_test
