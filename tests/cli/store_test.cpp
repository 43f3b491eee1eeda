// `cairn store` and `cairn run --cache-dir`, from outside: a second run computes nothing of the
// first one's prompt, and a conversation moves to another folder.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/scratch_folder.h"

namespace cairn::cli::store_test {
namespace {

using nlohmann::json;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr const char* kPrompt =
    "Repeat this, please: the quick brown fox jumps over the lazy dog, and then it sleeps.";

class StoreCommand : public ::testing::Test {
 protected:
  json answer(const std::string& folder) {
    const Finished run = run_program({"run", "-p", kPrompt, "--json", "--cache-dir", folder});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return json::parse(run.out);
  }
  std::string only_name() {
    const Finished run = run_program({"store", "ls", store_, "--json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const json list = json::parse(run.out);
    EXPECT_EQ(list.size(), 1u);
    return list.empty() ? "" : list[0]["name"].get<std::string>();
  }

  test::ScratchFolder folder_;
  std::string store_ = folder_.file("store");
};

TEST_F(StoreCommand, TheSecondRunComputesNoTokenOfThePrompt) {
  const json first = answer(store_), second = answer(store_);
  const json plain = answer(folder_.file("other"));
  EXPECT_EQ(first["text"], second["text"]);
  EXPECT_EQ(first["text"], plain["text"]);
  EXPECT_EQ(first["from_store"], false);
  EXPECT_EQ(first["reused_tokens"], 0);
  EXPECT_EQ(second["from_store"], true);
  EXPECT_EQ(second["reused_tokens"], second["prompt_tokens"]);
}

TEST_F(StoreCommand, ASequenceIsShownProvedCarriedAndRemoved) {
  answer(store_);
  const std::string name = only_name();
  const Finished shown = run_program({"store", "show", store_, name.substr(0, 8)});
  EXPECT_TRUE(has(shown.out, name)) << shown.out << shown.err;
  EXPECT_TRUE(has(shown.out, "fingerprint ")) << shown.out;
  EXPECT_EQ(run_program({"store", "verify", store_}).exit_code, 0);
  const std::string file = folder_.file("chat.cairn"), other = folder_.file("other");
  ASSERT_EQ(run_program({"store", "export", store_, name, "-o", file}).exit_code, 0);
  const Finished taken = run_program({"store", "import", other, file, "--prove"});
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  EXPECT_TRUE(has(taken.out, "have the same bits")) << taken.out;
  EXPECT_EQ(answer(other)["from_store"], true);
  // Computed with other types of keys and values: another fingerprint.
  const Finished wrong =
      run_program({"store", "import", folder_.file("third"), file, "--prove", "--kv", "q8_0"});
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_TRUE(has(wrong.err, "fingerprint")) << wrong.err;
  ASSERT_EQ(run_program({"store", "rm", store_, name}).exit_code, 0);
  EXPECT_TRUE(has(run_program({"store", "ls", store_}).out, "0 sequences, 0 bytes"));
}

TEST_F(StoreCommand, DamageIsFoundAndNamed) {
  answer(store_);
  for (const auto& file : std::filesystem::recursive_directory_iterator(store_ + "/objects")) {
    if (file.is_directory()) continue;
    std::string bytes = test::contents_of(file.path().string());
    bytes.back() = char(bytes.back() ^ 1);
    std::filesystem::remove(file.path());
    test::write_to(file.path().string(), bytes);
    break;
  }
  const Finished run = run_program({"store", "verify", store_});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(has(run.out, "1 sequences, 1 damaged")) << run.out;
  EXPECT_TRUE(has(run_program({"store", "verify", store_}).out, "1 damaged or missing"));
}

TEST_F(StoreCommand, WhatIsWrongIsSaid) {
  const Finished missing = run_program({"store", "ls", folder_.file("none")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_TRUE(has(missing.err, "expected a folder of stored conversations")) << missing.err;
  EXPECT_FALSE(std::filesystem::exists(folder_.file("none")));
  answer(store_);
  EXPECT_TRUE(has(run_program({"store", "show", store_, "zzzz"}).err, "found \"zzzz\""));
  EXPECT_TRUE(has(run_program({"store", "show", store_}).err, "expected a name"));
  EXPECT_TRUE(has(run_program({"store", "export", store_, only_name()}).err, "-o FILE"));
  EXPECT_EQ(run_program({"store", "sweep", store_}).exit_code, 2);
  const Finished budget = run_program({"run", "-p", "x", "--cache-disk-budget", "1G"});
  EXPECT_TRUE(has(budget.err, "--cache-dir")) << budget.err;
  test::write_to(folder_.file("mine.txt"), "mine");
  const Finished foreign = run_program({"run", "-p", "x", "--cache-dir", folder_.path().string()});
  EXPECT_NE(foreign.exit_code, 0);
  EXPECT_TRUE(has(foreign.err, "expected an empty folder or a store")) << foreign.err;
}

TEST_F(StoreCommand, TheConversationShowsItsStore) {
  const Finished run = run_program({"run", "--chat", "--cache-dir", store_}, "Hello\n/memory\n");
  EXPECT_TRUE(has(run.out + run.err, store_ + ": ")) << run.out << run.err;
}

}  // namespace
}  // namespace cairn::cli::store_test
