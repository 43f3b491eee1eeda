// `cairn embed`: texts from the command line and from files, the forms of its output, scores, and
// what it refuses.
#include "cli/commands/embed.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/models/embedding_case.h"

namespace cairn::cli::embed_test {
namespace {

using test::embedding_path;

std::string model(const std::string& name) {
  return embedding_path(name, ".gguf");
}

std::vector<float> numbers_in(std::string line) {
  std::istringstream stream(std::move(line));
  std::vector<float> numbers;
  for (float number = 0; stream >> number;) numbers.push_back(number);
  return numbers;
}

std::string embedded(EmbedArguments arguments) {
  arguments.engine.thread_count = 1;
  arguments.engine.memory_budget = size_t(16) << 20;
  arguments.engine.key_type = arguments.engine.value_type = KvType::f32;
  const ScratchFolder folder;
  std::FILE* file = std::fopen(folder.file("out").c_str(), "wb");
  terminal::TextOut out(file);
  const Status printed = print_embeddings(arguments, out);
  EXPECT_TRUE(printed) << (printed ? "" : printed.error().message);
  std::fclose(file);
  return contents_of(folder.file("out"));
}

TEST(Embed, AVectorALineOfLengthOne) {
  const auto run = run_program({"embed", model("bert"), "the weather", "the way"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::istringstream lines(run.out);
  int32_t line_count = 0;
  for (std::string line; std::getline(lines, line); ++line_count) {
    const std::vector<float> vector = numbers_in(line);
    ASSERT_EQ(vector.size(), 64u);
    double squares = 0;
    for (const float value : vector) squares += double(value) * double(value);
    EXPECT_NEAR(squares, 1.0, 1e-6);
  }
  EXPECT_EQ(line_count, 2);
}

TEST(Embed, JsonAsOpenAiHasIt) {
  const ScratchFolder folder;
  write_to(folder.file("texts"), "the weather\n\nthe way\r\n");
  const auto run =
      run_program({"embed", model("nomic_bert"), "--json", "-f", folder.file("texts")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["object"], "list");
  ASSERT_EQ(json["data"].size(), 2u);
  EXPECT_EQ(json["data"][1]["object"], "embedding");
  EXPECT_EQ(json["data"][1]["index"], 1);
  EXPECT_EQ(json["data"][1]["embedding"].size(), 64u);
  EXPECT_EQ(json["usage"]["prompt_tokens"], 8);  // Two words each, between [CLS] and [SEP].
  const std::string same = embedded({.model_path = model("nomic_bert"), .texts = {"the way"}});
  EXPECT_EQ(json["data"][1]["embedding"].get<std::vector<float>>(), numbers_in(same));
}

TEST(Embed, ATokenALineWithoutPooling) {
  EmbedArguments arguments{
      .model_path = model("bert"), .texts = {"the weather", "way"}, .pooling = "none"};
  const std::string text = embedded(arguments);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4 + 1 + 3);
  arguments.json = true;
  const auto json = nlohmann::json::parse(embedded(arguments));
  EXPECT_EQ(json["data"][1]["embedding"].size(), 3u);
  EXPECT_EQ(json["data"][1]["embedding"][2].size(), 64u);
}

TEST(Embed, TheTableShowsEqualTextsAsEqual) {
  const std::string table = embedded({.model_path = model("bert"),
                                      .texts = {"the way", "the weather", "the way"},
                                      .similarity = true});
  EXPECT_NE(table.find("    1   1.00█"), std::string::npos) << table;
  EXPECT_NE(table.find("1.00█  the way\n"), std::string::npos) << table;
}

TEST(Embed, ScoresStandBeforeTheirTexts) {
  EmbedArguments arguments{.model_path = model("roberta_scores"),
                           .texts = {"stones?", "a way", "small heaps of stones"},
                           .pooling = "rank"};
  const std::string text = embedded(arguments);
  arguments.json = true;
  const auto results = nlohmann::json::parse(embedded(arguments))["results"];
  ASSERT_EQ(results.size(), 2u);
  const bool first_is_better = results[0]["relevance_score"] >= results[1]["relevance_score"];
  EXPECT_EQ(text.find("a way") < text.find("small heaps"), first_is_better) << text;
  const std::string second = text.substr(first_is_better ? text.find('\n') + 1 : 0);
  EXPECT_EQ(numbers_in(second.substr(0, second.find('\t')))[0],
            results[1]["relevance_score"].get<float>());
}

// More texts than are embedded at a time, and tokens as well.
TEST(Embed, ManyTextsAreTheSameOnesInTheirOrder) {
  const ScratchFolder folder;
  std::string lines;
  for (int i = 0; i < 2500; ++i) lines += i % 3 == 0 ? "the weather the way\n" : "way\n";
  write_to(folder.file("texts"), lines);
  const EmbedArguments arguments{.model_path = model("bert"), .texts_path = folder.file("texts")};
  std::istringstream found(embedded(arguments));
  const std::string first =
      embedded({.model_path = model("bert"), .texts = {"the weather the way"}});
  const std::string other = embedded({.model_path = model("bert"), .texts = {"way"}});
  int count = 0;
  for (std::string line; std::getline(found, line); ++count) {
    ASSERT_EQ(line + "\n", count % 3 == 0 ? first : other) << count;
  }
  EXPECT_EQ(count, 2500);
  write_to(folder.file("texts"), lines + lines);
  const auto refused =
      run_program({"embed", model("bert"), "--similarity", "-f", folder.file("texts")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.err, "cairn: embed: expected at most 4096 texts to compare, found 5000\n");
}

// A text behind some thousand others that cannot be embedded: nothing is printed before it is told.
TEST(Embed, MistakesAreToldBeforeAnythingIsPrinted) {
  std::string lines;
  for (int i = 0; i < 1500; ++i) lines += "way\n";
  const auto run =
      run_program({"embed", model("bert"), "-c", "3", "-f", "-"}, lines + "the weather\n");
  EXPECT_EQ(run.exit_code, 2) << run.err;
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "cairn: text 1501: expected at most 3 tokens, found 4\n");
}

TEST(Embed, WhatItRefuses) {
  const auto expect_error = [](const std::vector<std::string>& arguments, const std::string& part) {
    const auto run = run_program(arguments);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  };
  expect_error({"embed", model("roberta_scores"), "one"}, "does not say it");
  expect_error({"embed", model("roberta_scores"), "--pooling", "rank", "one"}, "found one text");
  expect_error({"embed", model("bert"), "--pooling", "max", "one"}, "found \"max\"");
  expect_error({"embed", model("bert"), "--json", "--similarity", "one"}, "found both");
  expect_error({"embed", model("bert"), "--pooling", "none", "--similarity", "a"},
               "found pooling none");
  expect_error({"embed", model("roberta_scores"), "--pooling", "rank", "", "one", "two"},
               "TEXT 1: expected at least a character, found none");
  expect_error(
      {"embed", model("roberta_scores"), "--pooling", "rank", "--normalize", "a", "one", "two"},
      "--normalize: expected vectors, found pooling rank");
  expect_error({"embed", model("bert"), "-c", "3", "the weather"},
               "text 1: expected at most 3 tokens, found 4");
  expect_error({"run", model("bert"), "-p", "Hello"}, "`cairn embed` shows");
  expect_error({"bench", model("bert")}, "`cairn embed` shows");
}

TEST(Embed, InspectSaysThePooling) {
  const auto run = run_program({"inspect", model("bert")});
  EXPECT_NE(run.out.find("cls (cairn embed)"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace cairn::cli::embed_test
