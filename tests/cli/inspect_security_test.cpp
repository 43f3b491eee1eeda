// What `cairn inspect --security` finds in honest, odd and broken files; and --expect-sha256.
#include "cli/reports/inspect_security.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/run_program.h"
#include "tests/gguf/raw_file.h"

namespace cairn::cli::inspect_security_test {
namespace {

using gguf::ValueType;
using gguf::raw::array_field;
using gguf::raw::Bytes;
using gguf::raw::RawFile;
using gguf::raw::text_field;
using nlohmann::json;

constexpr char kNano[] = CAIRN_SOURCE "/assets/nano.gguf";

json report_of(const RawFile& raw) {
  const ScratchFolder folder;
  const std::string path = folder.file("x.gguf");
  const std::vector<std::byte> bytes = raw.build();
  write_to(path, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  auto file = gguf::File::open(path, gguf::OpenMode::inspect);
  EXPECT_TRUE(file) << file.error().message;
  const std::string text = security_report(*file, path, false);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
  return json::parse(security_report(*file, path, true));
}

Bytes tokens_field(const std::vector<std::string>& pieces) {
  Bytes tokens;
  tokens.text("tokenizer.ggml.tokens").put(uint32_t(ValueType::array));
  tokens.put(uint32_t(ValueType::string)).put(uint64_t(pieces.size()));
  for (const std::string& piece : pieces) tokens.text(piece);
  return tokens;
}

bool mentions(const json& lines, const std::string& text) {
  for (const json& line : lines) {
    if (line.get<std::string>().find(text) != std::string::npos) return true;
  }
  return false;
}

TEST(InspectSecurity, AnHonestFileHasItsDigestAndNothingElse) {
  auto file = gguf::File::open(kNano, gguf::OpenMode::inspect);
  ASSERT_TRUE(file);
  const json report = json::parse(security_report(*file, kNano, true));
  const std::string digest = run_command({"sha256sum", kNano}).out.substr(0, 64);
  ASSERT_EQ(report["digests"].size(), 1u);
  EXPECT_EQ(report["digests"][0]["sha256"], digest);
  EXPECT_EQ(report["refused"], json::array());
  EXPECT_FALSE(mentions(report["unusual"], "special")) << report["unusual"];
  ASSERT_EQ(report["templates"].size(), 1u);
  EXPECT_GT(report["token_kinds"]["control"], 0);
  const Finished run = run_program({"inspect", "--security", kNano});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find(digest), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(report["templates"][0]["text"].get<std::string>()), std::string::npos);
}

TEST(InspectSecurity, WhatIsUnusualIsNamed) {
  const json report = report_of(
      {.fields = {
           text_field("general.architecture", "llama"), text_field("general.name", "\x1b[2J"),
           text_field("llama.nonesuch", "x"), text_field("evil.key", "x"),
           text_field("tokenizer.ggml.model", "gpt2"),
           tokens_field({"a", "<|im_start|>", "\x1b]52;", "b"}),
           array_field<int32_t>("tokenizer.ggml.token_type", ValueType::i32, {1, 1, 1, 9})}});
  const json& unusual = report["unusual"];
  EXPECT_TRUE(mentions(unusual, "evil.key")) << unusual;
  EXPECT_TRUE(mentions(unusual, "llama.nonesuch")) << unusual;
  EXPECT_TRUE(mentions(unusual, "general.name")) << unusual;
  EXPECT_TRUE(mentions(unusual, "1 \"<|im_start|>\"")) << unusual;
  EXPECT_TRUE(mentions(unusual, "(type 9)")) << unusual;
  EXPECT_TRUE(mentions(unusual, "escape characters")) << unusual;
}

TEST(InspectSecurity, WhatWouldBeRefusedIsTold) {
  const json broken = report_of({.fields = {text_field("general.architecture", "llama"),
                                            text_field("tokenizer.chat_template", "{% if %}"),
                                            text_field("tokenizer.ggml.model", "none")},
                                 .tensors = {{.name = "w", .dims = {32}, .offset = 1 << 20}}});
  EXPECT_TRUE(mentions(broken["refused"], "w: ")) << broken;
  EXPECT_TRUE(mentions(broken["refused"], "template line 1")) << broken;
}

TEST(ExpectSha256, AnotherFileIsRefusedByEveryCommand) {
  const std::string digest = run_command({"sha256sum", kNano}).out.substr(0, 64);
  const std::string other(64, 'a');
  const std::vector<std::vector<std::string>> commands = {{"run", kNano, "-p", "Hello"},
                                                          {"inspect", kNano},
                                                          {"tokenize", kNano},
                                                          {"verify", kNano, "--help"},
                                                          {"logits", kNano, "--help"}};
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {"--expect-sha256", digest});
    const Finished right = run_program(words, "Hello");
    EXPECT_EQ(right.exit_code, 0) << command[0] << right.err;
    if (command.back() == "--help") continue;
    words.back() = other;
    const Finished wrong = run_program(words, "Hello");
    EXPECT_NE(wrong.exit_code, 0) << command[0];
    EXPECT_EQ(wrong.out, "") << command[0];
    EXPECT_NE(wrong.err.find(digest), std::string::npos) << wrong.err;
    EXPECT_NE(wrong.err.find(other), std::string::npos) << wrong.err;
  }
  EXPECT_NE(run_program({"run", "-p", "Hello", "--expect-sha256", digest}).exit_code, 0)
      << "the built-in model is no file";
  EXPECT_NE(run_program({"run", kNano, "-p", "Hello", "--expect-sha256", "12"}).exit_code, 0);
}

}  // namespace
}  // namespace cairn::cli::inspect_security_test
