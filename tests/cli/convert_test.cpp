// The command that converts, and what the others say to a folder.
#include <gtest/gtest.h>

#include "tests/cli/run_program.h"

namespace cairn::cli::convert_test {
namespace {

std::string fixture(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/folders/" + name;
}

TEST(Convert, WritesTheTypeThatWasAskedFor) {
  const ScratchFolder folder;
  const std::string out = folder.file("out.gguf");
  const Finished usual = run_program({"convert", fixture("phi3-tiny"), "-o", out});
  EXPECT_EQ(usual.exit_code, 0) << usual.err;
  EXPECT_NE(usual.err.find("phi3, "), std::string::npos) << usual.err;
  EXPECT_NE(usual.err.find("tensors in f16, 384 tokens (llama, default)"), std::string::npos)
      << usual.err;
  EXPECT_EQ(contents_of(out), contents_of(fixture("phi3-tiny.gguf")));
  const Finished wide =
      run_program({"convert", fixture("phi3-tiny"), "-o", out, "--outtype", "f32"});
  EXPECT_EQ(wide.exit_code, 0) << wide.err;
  const Finished seen = run_program({"inspect", out, "--json"});
  EXPECT_EQ(seen.out.find("\"F16\""), std::string::npos);
  EXPECT_NE(seen.out.find("\"F32\""), std::string::npos);
}

TEST(Convert, SaysWhatIsMissing) {
  EXPECT_EQ(run_program({"convert"}).exit_code, 2);
  EXPECT_EQ(run_program({"convert", fixture("phi3-tiny")}).exit_code, 2);
  const ScratchFolder folder;
  const Finished nothing =
      run_program({"convert", folder.path().string(), "-o", folder.file("out.gguf")});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_NE(nothing.err.find("config.json"), std::string::npos) << nothing.err;
}

TEST(Convert, AFileIsNoFolder) {
  const ScratchFolder folder;
  write_to(folder.file("model.gguf"), "GGUF");
  const Finished done =
      run_program({"convert", folder.file("model.gguf"), "-o", folder.file("out")});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_EQ(done.err, "cairn: " + folder.file("model.gguf") +
                          ": expected a folder with config.json, found a file\n");
}

TEST(Convert, IsWhatOtherCommandsAskForWhenTheyGetAFolder) {
  const Finished run = run_program({"run", fixture("phi3-tiny"), "-p", "hello"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("cairn convert DIR"), std::string::npos) << run.err;
}

TEST(Adapters, AreOptionsOfWhatComputes) {
  const ScratchFolder folder;
  write_to(folder.file("tokens"), "5 6 7\n");
  const auto logits = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"logits",   fixture("Tiny-Llama-3.1-8B-Instruct.gguf"),
                                          "--tokens", folder.file("tokens"),
                                          "-o",       folder.file("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = run_program(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return contents_of(folder.file("out"));
  };
  const std::string adapter = fixture("llama-lora.gguf");
  const std::string without = logits({}), with = logits({"--lora", adapter});
  EXPECT_NE(with, without);
  EXPECT_EQ(with, logits({"--lora", adapter + ":1"}));
  const std::string half = logits({"--lora", adapter + ":0.5"});
  EXPECT_NE(half, with);
  EXPECT_NE(half, without);
  const Finished wrong = run_program(
      {"run", fixture("Tiny-Llama-3.1-8B-Instruct.gguf"), "-p", "x", "--lora", adapter + ":half"});
  EXPECT_EQ(wrong.exit_code, 2);
}

}  // namespace
}  // namespace cairn::cli::convert_test
