// What each rule makes of texts that tell the rules apart. The words were taken from the original
// implementation (Hugging Face tokenizers, with the expressions of the published tokenizer.json
// files; for kimi-k2 a regular-expression engine that can subtract classes).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tokenize/pretokenizer.h"

namespace cairn::tokenize::pretokenizer_rules_test {
namespace {

struct Case {
  std::string_view name;
  std::string_view text;
  std::vector<std::string_view> words;
};

const std::vector<Case> kCases = {
    {"gpt-2",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'", "S", " 12345", " apples", ",", " ", " café", "_", "x", "86", "\n\n ",
      " end", " "}},
    {"gpt-2",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n ", " 1", ",", "234", ".", "5", " 漢字カナ", "123", "x", " '",
      "\u017Ft", " e", "\u0301", " \u00B2〇"}},
    {"llama-bpe",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "123", "45", " apples", ",", " ", " café", "_x", "86", "\n\n",
      " ", " end", " "}},
    {"llama-bpe",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",        " b",  "\r\n", " ",  " ",       "1",  ",",      "234", ".",
      "5", " 漢字カナ", "123", "x",    " '", "\u017Ft", " e", "\u0301", " ",   "\u00B2〇"}},
    {"qwen2",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"qwen2",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a",  "\t",      " b", "\r\n",   " ",         " ",      "1", ",", "2",
      "3",  "4",       ".",  "5",      " 漢字カナ", "1",      "2", "3", "x",
      " '", "\u017Ft", " e", "\u0301", " ",         "\u00B2", "〇"}},
    {"qwen35",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"qwen35",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",        " b", "\r\n", " ", " ", "1",  ",",       "2",        "3", "4",      ".",
      "5", " 漢字カナ", "1",  "2",    "3", "x", " '", "\u017Ft", " e\u0301", " ", "\u00B2", "〇"}},
    {"gpt-4o",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I'm", " HERE'S", " ", "123", "45", " apples", ",", " ", " café", "_x", "86", "\n\n", " ",
      " end", " "}},
    {"gpt-4o",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n", " ", " ", "1", ",", "234", ".", "5", " 漢字カナ", "123", "x", " '",
      "\u017Ft", " e\u0301", " ", "\u00B2〇"}},
    {"gpt-4o", "camelCase HTTPServer's ΑΒγ/\n", {"camel", "Case", " HTTPServer's", " ΑΒγ", "/\n"}},
    {"tekken",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"tekken",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",        " b", "\r\n", " ", " ", "1",  ",",       "2",        "3", "4",      ".",
      "5", " 漢字カナ", "1",  "2",    "3", "x", " '", "\u017Ft", " e\u0301", " ", "\u00B2", "〇"}},
    {"tekken",
     "camelCase HTTPServer's ΑΒγ/\n",
     {"camel", "Case", " HTTPServer", "'s", " ΑΒγ", "/\n"}},
    {"deepseek-v3",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "123", "45", " apples", ",", " ", " café", "_x", "86", "\n\n",
      " ", " end", " "}},
    {"deepseek-v3",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n", "  ", "1", ",", "234", ".", "5", " ", "漢字カナ", "123", "x", " '",
      "\u017Ft", " e\u0301", " ", "\u00B2〇"}},
    {"deepseek-coder",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'", "m",     " HERE", "'", "S", " ", "1",  "2",  "3", "4",    "5", " apples",
      ",", " ", " café", "_",     "x", "8", "6", "\n", "\n", " ", " end", " "}},
    {"deepseek-coder",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",       " b", "\r", "\n", "  ", "1",  ",",       "2",  "3",       "4",      ".", "5",
      " ", "漢字カナ", "1",  "2",  "3",  "x",  " '", "\u017Ft", " e", "\u0301 ", "\u00B2", "〇"}},
    {"deepseek-coder", "don't «x» 가나", {"don", "'", "t", " «", "x", "»", " ", "가나"}},
    {"starcoder",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I",       "'m", " HERE", "'",     "S", " ", "1", "2", "3",     "4",    "5",
      " apples", ",",  " ",     " café", "_", "x", "8", "6", "\n\n ", " end", " "}},
    {"starcoder",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n  ", "1",  ",",       "2",  "3",      "4", ".",      "5", " 漢字カナ",
      "1", "2",  "3",  "x",      " '", "\u017Ft", " e", "\u0301", " ", "\u00B2", "〇"}},
    {"falcon",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'", "m", " HERE", "'", "S", " ", "123", "45", " apples", ",", " ", " café", "_", "x",
      "86", "\n\n ", " end", " "}},
    {"falcon",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n ", " 1", ",", "234", ".", "5", " 漢字カナ", "123", "x", " ", "'",
      "\u017Ft", " e", "\u0301", " \u00B2〇"}},
    {"falcon", "a `b` 12345 +-= x", {"a", " ", "`", "b", "`", " ", "123", "45", " ", "+-=", " x"}},
    {"bloom",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I'm", " HERE'S", " 12345", " apples", ", ", " café_x86", "\n\n ", " end", " "}},
    {"bloom",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n ", " 1", ",", "234", ".", "5", " 漢字カナ123x", " '\u017Ft",
      " e\u0301", " \u00B2〇"}},
    {"bloom", " one, two。three|four", {" one", ",", " two", "。", "three", "|", "four"}},
    {"bailingmoe",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"bailingmoe",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a",  "\t",      " b", "\r\n",   " ",         " ",      "1", ",", "2",
      "3",  "4",       ".",  "5",      " 漢字カナ", "1",      "2", "3", "x",
      " '", "\u017Ft", " e", "\u0301", " ",         "\u00B2", "〇"}},
    {"seed-coder",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"seed-coder",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a",  "\t",      " b", "\r\n",   " ",         " ",      "1", ",", "2",
      "3",  "4",       ".",  "5",      " 漢字カナ", "1",      "2", "3", "x",
      " '", "\u017Ft", " e", "\u0301", " ",         "\u00B2", "〇"}},
    {"exaone-moe",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"exaone-moe",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",     " b", "\r\n",      " ", " ", "1", ",", "2",  "3",
      "4", ".",      "5",  " 漢字カナ", "1", "2", "3", "x", " '", "\u017Ft e\u0301",
      " ", "\u00B2", "〇"}},
    {"exaone-moe", "ab c\u0301d  e f1", {"ab c\u0301d", " ", " e f", "1"}},
    {"superbpe",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I'm HERE'S ", "12", "345", " apples,  café_x", "86", "\n\n  end "}},
    {"superbpe",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a\t b\r\n  ", "1", ",", "234", ".", "5", " 漢字カナ", "123", "x '\u017Ft e\u0301 ",
      "\u00B2〇"}},
    {"superbpe", "in 1234567 and 12\u00B2", {"in ", "1", "234", "567", " and ", "12\u00B2"}},
    {"tiny_aya",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I'm", " HERE'S", " ", "12", "345", " apples", ",", " ", " café", "_x", "86", "\n\n", " ",
      " end", " "}},
    {"tiny_aya",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b", "\r\n", "  ", "1", ",", "234", ".", "5", " 漢字カナ", "123", "x", " '",
      "\u017Ft", " e\u0301", " ", "\u00B2〇"}},
    {"tiny_aya",
     "1234567 12345x 64\u00B2 7",
     {"1", "234", "567", " ", "123", "45", "x", " ", "64\u00B2", " ", "7"}},
    {"jais-2",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "123", "45", " apples", ",", " ", " café", "_x", "86", "\n\n",
      " ", " end", " "}},
    {"jais-2",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",        " b",  "\r\n", " ",  " ",       "1",  ",",      "234", ".",
      "5", " 漢字カナ", "123", "x",    " '", "\u017Ft", " e", "\u0301", " ",   "\u00B2〇"}},
    {"jais-2", "a                         b", {"a", "                ", "        ", " b"}},
    {"laguna",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I", "'m", " HERE", "'S", " ", "1", "2",    "3", "4",    "5", " apples",
      ",", " ",  " café", "_x", "8", "6", "\n\n", " ", " end", " "}},
    {"laguna",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t", " b",      "\r", "\n",     " ",         " ",      "1", ",",
      "2", "3",  "4",       ".",  "5",      " 漢字カナ", "1",      "2", "3",
      "x", " '", "\u017Ft", " e", "\u0301", " ",         "\u00B2", "〇"}},
    {"kimi-k2",
     "I'm HERE'S 12345 apples,  café_x86\n\n  end ",
     {"I'm", " HERE'S", " ", "123", "45", " apples", ",", " ", " café", "_x", "86", "\n\n", " ",
      " end", " "}},
    {"kimi-k2",
     "a\t b\r\n  1,234.5 漢字カナ123x '\u017Ft e\u0301 \u00B2〇",
     {"a", "\t",   " b",   "\r\n", " ", " ",  "1",       ",",        "234", ".",       "5",
      " ", "漢字", "カナ", "123",  "x", " '", "\u017Ft", " e\u0301", " ",   "\u00B2〇"}},
    {"kimi-k2",
     "abc漢字def's 々〇 1〇2  漢",
     {"abc", "漢字", "def's", " ", "々〇", " ", "1〇2", " ", " ", "漢"}},
};

std::vector<std::string_view> words_of(const PretokenizerRule& rule, std::string_view text) {
  auto built = Pretokenizer::build(rule);
  CHECK(built);
  Pretokenizer::Session session(**built);
  std::vector<std::string_view> words;
  session.split(text, [&](std::string_view word) { words.push_back(word); });
  return words;
}

TEST(PretokenizerRules, CutAsTheOriginalsDo) {
  for (const Case& one : kCases) {
    const PretokenizerRule* rule = find_pretokenizer(one.name);
    ASSERT_NE(rule, nullptr) << one.name;
    EXPECT_EQ(words_of(*rule, one.text), one.words) << one.name << ": " << one.text;
  }
}

TEST(PretokenizerRules, NamesAreUniqueAndKnown) {
  std::set<std::string_view> names;
  for (const PretokenizerRule& rule : all_pretokenizers()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_EQ(find_pretokenizer(rule.name), &rule);
    EXPECT_FALSE(rule.stages.empty());
  }
  EXPECT_EQ(find_pretokenizer("llama-bpe2"), nullptr);
  EXPECT_EQ(find_pretokenizer(""), nullptr);
}

}  // namespace
}  // namespace cairn::tokenize::pretokenizer_rules_test
