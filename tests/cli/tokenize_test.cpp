// `cairn tokenize`: what stands in its lines and in its JSON.
#include "cli/commands/tokenize.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/tokenize/small_vocabularies.h"

namespace cairn::cli::tokenize_test {
namespace {

std::string tokenize_report(const tokenize::Tokenizer& tokenizer, std::string_view text,
                            const TokenizeOptions& options) {
  std::string report;
  report_tokens(tokenizer, text, options, [&](std::string_view part) { report += part; });
  return report;
}

TEST(Tokenize, LinesShowIdsAndPieces) {
  const auto tokenizer = tokenize::build(tokenize::byte_level_vocabulary());
  EXPECT_EQ(tokenize_report(*tokenizer, "the the\n\x1B\xFF\t", {}),
            "257  the\n258   the\n 10  \\n\n 27  \\x1b\n255  \\xff\n  9  \\t\n");
  EXPECT_EQ(tokenize_report(*tokenizer, "", {}), "");
}

TEST(Tokenize, OptionsReachTheTokenizer) {
  tokenize::SmallVocabulary small = tokenize::byte_level_vocabulary();
  small.source.add_bos = true;
  const auto tokenizer = tokenize::build(small);
  EXPECT_EQ(tokenize_report(*tokenizer, "<|im_end|>", {.add_special = true, .parse_special = true}),
            "264  <|start|>\n265  <|im_end|>\n");
}

TEST(Tokenize, JsonIsWholeAndAscii) {
  const auto tokenizer = tokenize::build(tokenize::byte_level_vocabulary());
  const std::string report = tokenize_report(*tokenizer, "th\u00E9\xC3", {.json = true});
  for (const char c : report) EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~'));
  const auto list = nlohmann::json::parse(report);
  EXPECT_EQ(list,
            nlohmann::json::parse(
                R"([{"id":256,"piece":"th"},{"id":263,"piece":"é"},{"id":195,"piece":[195]}])"));
  EXPECT_EQ(tokenize_report(*tokenizer, "", {.json = true}), "[]\n");
}

TEST(Tokenize, FailsWithoutAModel) {
  EXPECT_EQ(run_program({"tokenize", "/nonexistent/model.gguf"}).exit_code, 1);
}

TEST(Tokenize, ReadsAModelAndAFile) {
  const Finished done = run_program(
      {"tokenize", CAIRN_FIXTURES "/golden/qwen3.gguf", CAIRN_SOURCE "/.clang-format", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const auto list = nlohmann::json::parse(done.out);
  std::string text;
  for (const auto& token : list) {
    if (token.at("piece").is_string()) text += token.at("piece").get<std::string>();
  }
  EXPECT_NE(text.find("BasedOnStyle: Google\nColumnLimit: 100\n"), std::string::npos);
}

}  // namespace
}  // namespace cairn::cli::tokenize_test
