// From GGUF metadata to tokenizers: the bridge itself on a file written here, and the 10 foreign
// vocabularies of the shared fixtures with every id and piece that is expected of them.
#include "engine/vocabulary_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "tests/test_name.h"
#include "tokenize/tokenizer.h"
#include "unicode/unicode.h"

namespace cairn::vocabulary_source_test {
namespace {

using tokenize::EncodeOptions;
using tokenize::Tokenizer;

std::vector<int32_t> ids_of(const std::vector<Token>& tokens) {
  std::vector<int32_t> ids;
  for (const Token token : tokens) ids.push_back(index_of(token));
  return ids;
}

std::string hex_of(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

// The fixture of bert-bge comes from tools for GGUF, which lose letters of Hangul and vowel signs
// of Devanagari, and cut at U+0085. What is promised are the ids of the original tokenizer, and
// where those differ they stand in bert-bge.json, by the string's place (bert_bge.py made them).
bool loses_letters(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const unicode::Character character = unicode::first_character(rest);
    const char32_t code = character.code;
    if ((code >= 0xAC00 && code <= 0xD7A3) || (code >= 0x900 && code <= 0x97F) || code == 0x85) {
      return true;
    }
    rest.remove_prefix(std::max<size_t>(character.length, 1));
  }
  return false;
}

// The fixture's strings, with the original tokenizer's ids where it differs.
nlohmann::json corrected(nlohmann::json strings) {
  const auto original =
      nlohmann::json::parse(std::ifstream(CAIRN_SOURCE "/tests/tokenize/cases/bert-bge.json"));
  EXPECT_EQ(original.size(), 27u);
  for (const auto& [place, ids] : original.items()) {
    auto& entry = strings.at(std::stoul(place));
    EXPECT_TRUE(loses_letters(entry.at("text").get<std::string>())) << place;
    EXPECT_NE(entry.at("plain"), ids) << place;
    auto with_special = ids;
    with_special.insert(with_special.begin(), entry.at("add_special").front());
    with_special.push_back(entry.at("add_special").back());
    entry["plain"] = entry["parse_special"] = ids;
    entry["add_special"] = entry["both"] = with_special;
  }
  return strings;
}

class SharedVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(SharedVocabulary, MatchesEveryStringAndPiece) {
  const std::string stem = std::string(CAIRN_FIXTURES "/shared/tokenizers/") + GetParam();
  if (!std::filesystem::exists(stem + ".gguf")) GTEST_SKIP() << stem << " is not there";
  auto file = gguf::File::open(stem + ".gguf");
  ASSERT_TRUE(file) << file.error().message;
  auto source = vocabulary_source(*file);
  ASSERT_TRUE(source) << source.error().message;
  auto built = Tokenizer::build(*source);
  ASSERT_TRUE(built) << built.error().message;
  const Tokenizer& tokenizer = **built;
  auto expected = nlohmann::json::parse(std::ifstream(stem + ".json"));
  if (GetParam() == std::string_view("bert-bge")) {
    expected["strings"] = corrected(expected.at("strings"));
  }

  const std::pair<const char*, EncodeOptions> modes[] = {
      {"plain", {}},
      {"add_special", {.add_special = true}},
      {"parse_special", {.parse_special = true}},
      {"both", {.add_special = true, .parse_special = true}},
  };
  size_t checked_count = 0;
  for (const auto* list : {"strings", "official"}) {
    for (const auto& entry : expected.at(list)) {
      const auto string = entry.at("text").get<std::string>();
      for (const auto& [mode, options] : modes) {
        if (!entry.contains(mode)) continue;
        EXPECT_EQ(ids_of(tokenizer.encode(string, options)),
                  entry.at(mode).get<std::vector<int32_t>>())
            << mode << ": " << entry.at("text").dump();
        ++checked_count;
      }
    }
  }
  for (const auto& [id, hex] : expected.at("pieces_hex").items()) {
    EXPECT_EQ(hex_of(tokenizer.piece(Token(std::stoi(id)))), hex.get<std::string>()) << id;
    ++checked_count;
  }
  EXPECT_GT(checked_count, 3600u);
}

INSTANTIATE_TEST_SUITE_P(All, SharedVocabulary,
                         testing::Values("bert-bge", "deepseek-llm", "falcon", "gemma-4", "gpt-2",
                                         "llama-bpe", "llama-spm", "phi-3", "qwen2", "qwen35"),
                         [](const auto& each) { return test::test_name(each.param); });

TEST(VocabularySource, ReadsTheGoldenModels) {
  auto file = gguf::File::open(CAIRN_FIXTURES "/golden/qwen3.gguf");
  ASSERT_TRUE(file) << file.error().message;
  auto source = vocabulary_source(*file);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->model, "gpt2");
  EXPECT_EQ(source->pre, "gpt-2");
  EXPECT_EQ(source->tokens.size(), 384u);
  EXPECT_EQ(source->types.size(), 384u);
  EXPECT_GT(source->merges.size(), 100u);
  EXPECT_EQ(source->bos, 0);
  EXPECT_EQ(source->eos, 1);
  EXPECT_EQ(source->pad, 2);
  EXPECT_FALSE(source->unk.has_value());
  auto tokenizer = Tokenizer::build(*source);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const std::string text = "The cache of the engine\nis exact.";
  std::string back;
  for (const Token token : (*tokenizer)->encode(text)) back += (*tokenizer)->piece(token);
  EXPECT_EQ(back, text);
}

}  // namespace
}  // namespace cairn::vocabulary_source_test
