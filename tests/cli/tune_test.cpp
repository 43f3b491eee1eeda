// `cairn tune skip` from outside: the file beside the model, and what the options of other commands
// make of it.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace cairn::cli::tune_test {
namespace {

using nlohmann::json;

class Tune : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::copy_file(CAIRN_SOURCE "/assets/nano.gguf", model()); }
  std::string model() const { return folder_.file("nano.gguf"); }
  std::string found() const { return folder_.file("nano.skip.json"); }

  ScratchFolder folder_;
};

TEST_F(Tune, FindsLayersThatOtherCommandsSkip) {
  Finished done = run_program({"verify", model(), "--programs", "1", "--skip-layers", "tuned"});
  EXPECT_NE(done.err.find("nano.skip.json: expected what `cairn tune skip` writes"),
            std::string::npos)
      << done.err;
  done = run_program({"tune", "skip", model(), "-c", "64", "--chunks", "2", "--agreement", "50"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(done.out.starts_with("layers  KL divergence  same favourite  which\n")) << done.out;
  const json file = json::parse(contents_of(found()));
  EXPECT_EQ(file["tokens"], 2 * 31);
  ASSERT_EQ(file["steps"].size(), 2u) << "half of 4 layers";
  EXPECT_EQ(file["steps"][0]["layers"].size(), 1u);
  EXPECT_LT(file["steps"][0]["kl_divergence"], file["steps"][1]["kl_divergence"]);
  EXPECT_GE(file["layers"].size(), 1u);
  // What is measured as a program is what the search said of it, on the same text.
  done = run_program({"verify", model(), "--programs", "1", "--skip-layers", "tuned:2", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const json tuned = json::parse(done.out);
  std::string list;
  for (const json& layer : file["steps"][1]["layers"]) {
    list += (list.empty() ? "" : ",") + layer.dump();
  }
  done = run_program({"verify", model(), "--programs", "1", "--skip-layers", list, "--json"});
  EXPECT_EQ(json::parse(done.out)["fingerprint"], tuned["fingerprint"]);
  // Another model's file is not taken.
  std::filesystem::copy_file(std::string(CAIRN_FIXTURES) + "/golden/llama.gguf",
                             folder_.file("llama.gguf"));
  std::filesystem::copy_file(found(), folder_.file("llama.skip.json"));
  done = run_program(
      {"verify", folder_.file("llama.gguf"), "--programs", "1", "--skip-layers", "tuned"});
  EXPECT_NE(done.exit_code, 0);
  EXPECT_NE(done.err.find("llama.skip.json: expected layers of the model "), std::string::npos)
      << done.err;
}

TEST_F(Tune, MeasuresOnATextAndSaysTheSameEachTime) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += "What is the capital of Norway? Oslo. Count: one, two. ";
  write_to(folder_.file("text"), text);
  const auto tuned = [&](const std::string& seed) {
    const Finished done =
        run_program({"tune", "skip", model(), "-f", folder_.file("text"), "-c", "32", "--chunks",
                     "3", "--most", "1", "--json", "--seed", seed});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, contents_of(found()));
    return done.out;
  };
  EXPECT_EQ(tuned("1"), tuned("2")) << "seeds are for texts that the model writes";
}

TEST_F(Tune, LeavesNothingWhereItFails) {
  write_to(folder_.file("text"), "Too short.");
  Finished done = run_program({"tune", "skip", model(), "-f", folder_.file("text")});
  EXPECT_NE(done.err.find("expected at least 256 tokens"), std::string::npos) << done.err;
  done =
      run_program({"tune", "skip", std::string(CAIRN_FIXTURES) + "/golden_embeddings/bert.gguf"});
  EXPECT_NE(done.exit_code, 0);
  done = run_program({"tune", "more", model()});
  EXPECT_NE(done.err.find("skip"), std::string::npos) << done.err;
  EXPECT_FALSE(std::filesystem::exists(found()));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace cairn::cli::tune_test
