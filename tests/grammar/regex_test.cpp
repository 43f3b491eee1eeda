// Regular expressions and lists of choices.
#include "grammar/regex.h"

#include "tests/grammar/toy_vocabulary.h"

namespace cairn::grammar::regex_test {
namespace {

TEST(Regex, WholeTextsFit) {
  expect_fits(compile_regex("^(foo|ba[rz])+\\d{2,3}$"), {"foo12", "barbazfoo999"},
              {"foo1", "foo1234", "xfoo12", "12", "foo12\n"});
  expect_fits(compile_regex("a.c|\\.|[^\\w\\s]"), {"abc", "a😀c", ".", "!", "é"},
              {"a\nc", "abcd", "x", " ", ""});
  expect_fits(compile_regex(""), {""}, {"a"});
}

TEST(Regex, EscapesAndClasses) {
  expect_fits(compile_regex("[\\d\\-\\]x-z]+\\t\\x41\\u00e9\\u{1F600}\\uD83D\\uDE00\\/\\{"),
              {"1-]y\tAé😀😀/{"}, {"w\tAé😀😀/{"});
  expect_fits(compile_regex("[\\S]\\D\\W\\S[^\\S]"), {"aa!b "},
              {" a!b ", "a1!b ", "aaab ", "aa!bb"});
  expect_fits(compile_regex("a{,3}x{2"), {"a{,3}x{2"}, {"aax"});
}

TEST(Regex, GroupsNamesAndLaziness) {
  expect_fits(compile_regex("(?:a|b)*?c+?(?P<n>d)?"
                            "?(?<m>e){1,2}?"),
              {"ce", "abccdee"}, {"c", "ceee"});
}

TEST(Regex, NestedStarsAreOne) {
  expect_fits(compile_regex("((a*)*)*b"), {"b", "aaab"}, {"a", "ba"});
  expect_fits(compile_regex("(a|aa|(b?)*)+c"), {"c", "aabac"}, {"d"});
}

TEST(Regex, DeterminizingThatWouldExplodeIsLeft) {
  // Deterministic, this has a million states.
  const auto matcher = matcher_of(compile_regex("(a|b)*a(a|b){20}"));
  EXPECT_EQ(fit(*matcher, "bba" + std::string(20, 'b')), Fit::whole);
  EXPECT_EQ(fit(*matcher, "bbb" + std::string(20, 'b')), Fit::begins);
  EXPECT_EQ(fit(*matcher, std::string(100, 'a')), Fit::whole);
}

TEST(Regex, ErrorsSayWhereAndWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"a(b", "column 2: this parenthesis is never closed"},
      {"ab)", "column 3: this parenthesis was never opened"},
      {"*a", "column 1: expected something before \"*\""},
      {"a**", "column 3: expected something before \"*\""},
      {"(*a)", "expected something before \"*\""},
      {"a{3,2}", "a maximum not below the minimum"},
      {"[b-a]", "the first not behind the last"},
      {"[a-\\d]", "expected a range of characters"},
      {"[a", "this class is never closed"},
      {"[a-", "this class is never closed"},
      {"\\", "expected a character behind"},
      {"\\x4", "expected hexadecimal digits"},
      {"\\uD800", "found U+D800"},
      {"\\u{110000}", "expected a character"},
      {"\xff", "expected UTF-8"},
  };
  for (const auto& [source, reason] : cases) {
    const auto grammar = compile_regex(source);
    ASSERT_FALSE(grammar) << source;
    EXPECT_EQ(grammar.error().code, ErrorCode::invalid_argument) << source;
    EXPECT_NE(grammar.error().message.find(reason), std::string::npos) << grammar.error().message;
  }
}

TEST(Regex, WhatCannotBeFollowedSaysSo) {
  for (const char* source : {"(?<=x)*", "(?=a)b", "(?i)a", "(a)\\1", "\\bword", "a^b", "(a$)b",
                             "a*+", "\\p{L}", "[]a]", "\\01"}) {
    const auto grammar = compile_regex(source);
    ASSERT_FALSE(grammar) << source;
    EXPECT_EQ(grammar.error().code, ErrorCode::unsupported) << grammar.error().message;
  }
}

TEST(Choices, OneOfThem) {
  const std::vector<std::string> choices = {"yes", "no", "not sure", "\xff\x00 bytes"};
  expect_fits(compile_choices(choices), choices, {"", "ye", "not", "nono"});
  EXPECT_FALSE(compile_choices({}));
}

TEST(Choices, TensOfThousands) {
  std::vector<std::string> choices;
  for (int i = 0; i < 35'000; ++i) choices.push_back(std::to_string(i * 7919 % 1'000'003));
  const auto matcher = matcher_of(compile_choices(choices));
  EXPECT_EQ(fit(*matcher, choices[12'345]), Fit::whole);
  EXPECT_EQ(fit(*matcher, choices[12'345] + "x"), Fit::no);
  choices.resize(70'000, "more");
  EXPECT_EQ(compile_choices(choices).error().code, ErrorCode::no_room);
}

}  // namespace
}  // namespace cairn::grammar::regex_test
