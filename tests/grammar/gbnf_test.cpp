// GBNF: what fits, what does not, and what is no grammar.
#include "grammar/gbnf.h"

#include "tests/grammar/toy_vocabulary.h"

namespace cairn::grammar::gbnf_test {
namespace {

TEST(Gbnf, TextsClassesAndEscapes) {
  expect_fits(
      compile_gbnf("root ::= \"a\\n\\\"\\x41\\u00e9\\U0001F600\\\\\" [a-c\\]\\-x] [^0-9] ."),
      {"a\n\"Aé😀\\b-!", "a\n\"Aé😀\\]é\n", "a\n\"Aé😀\\-a😀"},
      {"a\n\"Aé😀\\b-", "a\n\"Aé😀\\d-!", "a\n\"Aé😀\\b5!", "a\n\"Aé😀\\b-!!"});
}

TEST(Gbnf, ClassesEndInBracketsAndMayBeOpenEnded) {
  expect_fits(compile_gbnf("root ::= [a-]+ [^]"), {"-a-x", "a]"}, {"b", "a"});
}

TEST(Gbnf, RepetitionsAreOfTheLastElement) {
  expect_fits(compile_gbnf("root ::= \"ab\"* \"c\"+ \"d\"? (\"e\" | \"f\"){2} [x]{1,3} [y]{2,}"),
              {"ceexyy", "ababcccdefxxxyyyyy"},
              {"abacefxyy", "cexyy", "ceexxxxyy", "ceexy", "eexyy"});
  expect_fits(compile_gbnf("root ::= \"a\"{0} \"b\"{ 1 , 2 }"), {"b", "bb"}, {"", "ab", "bbb"});
}

TEST(Gbnf, RulesLinesAndComments) {
  expect_fits(
      compile_gbnf("# a list\nroot ::= (\"- \" item)+ # items\n\nitem ::=\n  [^\\n]+ end |\n"
                   "  \"none\" (\n \"!\"\n )\nend ::= \"\\n\"\r\n"),
      {"- x\n", "- x\n- none!"}, {"- x", "x\n", ""});
}

TEST(Gbnf, RecursionNestsAsDeepAsTheText) {
  const auto matcher = matcher_of(compile_gbnf("root ::= \"(\" root \")\" | \"x\""));
  const std::string deep = std::string(5000, '(') + "x" + std::string(5000, ')');
  EXPECT_EQ(fit(*matcher, deep), Fit::whole);
  EXPECT_EQ(fit(*matcher, deep.substr(1)), Fit::no);
  EXPECT_EQ(fit(*matcher, deep.substr(0, 9000)), Fit::begins);
}

TEST(Gbnf, RightRecursionCostsNoStack) {
  const auto matcher = matcher_of(compile_gbnf("root ::= [a-z] root | \".\""));
  State state = matcher->start();
  for (int i = 0; i < 10; ++i) state = must(matcher->advance(state, std::string(100, 'a')));
  const size_t before = matcher->byte_size();
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(must(matcher->advance(state, std::string(100, 'b'))), state);
  }
  EXPECT_EQ(matcher->byte_size(), before);
}

TEST(Gbnf, ThousandsOfRoundsAreCountedNotWrittenOut) {
  auto grammar = compile_gbnf("root ::= ([a-z] [0-9]){9000,10000} \"!\"");
  ASSERT_TRUE(grammar);
  EXPECT_LT((*grammar).byte_size(), 4096u);
  const auto matcher = matcher_of(std::move(grammar));
  const auto text = [](int rounds) {
    std::string result;
    for (int i = 0; i < rounds; ++i) result += "a1";
    return result + "!";
  };
  EXPECT_EQ(fit(*matcher, text(8999)), Fit::no);
  EXPECT_EQ(fit(*matcher, text(9000)), Fit::whole);
  EXPECT_EQ(fit(*matcher, text(10000)), Fit::whole);
  EXPECT_EQ(fit(*matcher, text(10001)), Fit::no);
}

TEST(Gbnf, EmptyRoundsDoNotMultiply) {
  expect_fits(compile_gbnf("root ::= (([a-c]? [d-f]?){300,5000} \"x\"){2,400}"),
              {"xx", "abcxadx", "x" + std::string(600, 'a') + "x"}, {"x", "abc", "gx"});
}

TEST(Gbnf, Tokens) {
  const auto matcher =
      matcher_of(compile_gbnf("root ::= <think> !</think>* </think> \"a\" <[98]>"));
  const Token think = Token(256), end_think = Token(257), end = Token(258);
  const State start = matcher->start();
  EXPECT_FALSE(matcher->advance(start, Token('a')));
  const State inside = must(matcher->advance(start, think));
  EXPECT_TRUE(matcher->advance(inside, Token('q')));
  EXPECT_TRUE(matcher->advance(inside, think));
  EXPECT_FALSE(matcher->advance(inside, end));
  EXPECT_FALSE(allows(must(matcher->mask(inside)), index_of(end)));
  EXPECT_TRUE(allows(must(matcher->mask(inside)), index_of(end_think)));
  const State behind = must(matcher->advance(inside, end_think));
  const State last = must(matcher->advance(behind, Token('a')));
  EXPECT_FALSE(matcher->is_complete(last));
  EXPECT_TRUE(matcher->is_finished(must(matcher->advance(last, Token(98)))));
}

TEST(Gbnf, TokensThatAreNot) {
  for (const char* source : {"root ::= <nothing>", "root ::= <[5000000]>"}) {
    auto grammar = compile_gbnf(source);
    ASSERT_TRUE(grammar) << source;
    EXPECT_FALSE(Matcher::build(*grammar, TokenTrie::build(*toy_tokenizer()))) << source;
  }
}

TEST(Gbnf, ErrorsSayWhereAndWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"root ::= \"a", "line 1, column 10: this text is never closed"},
      {"root ::= [a", "line 1, column 10: this class is never closed"},
      {"root ::= (\"a\"", "line 1, column 10: this parenthesis is never closed"},
      {"root ::= \"a\")", "line 1, column 13: expected the end of the line, found \")\""},
      {"root ::= x\n", "line 1, column 10: rule \"x\" is called and not defined"},
      {"a ::= \"a\"", "expected a rule named \"root\""},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule \"root\" is there twice"},
      {"root = \"a\"", "line 1, column 6: expected \"::=\", found \"=\""},
      {"root ::= * \"a\"", "column 10: expected something before \"*\""},
      {"root ::= \"a\"{3,2}", "column 13: expected a maximum not below the minimum"},
      {"root ::= \"a\"{x}", "expected a count such as {2}, {2,} or {2,5}"},
      {"root ::= [z-a]", "column 11: expected a range's last character"},
      {"root ::= \"\\q\"", "column 11: expected an escape"},
      {"root ::= \"\\x4\"", "column 11: expected 2 hexadecimal digits"},
      {"root ::= \"\\uD800\"", "column 11: expected a character, found U+D800"},
      {"root ::= \"\\U00110000\"", "expected a character, found U+110000"},
      {"root ::= \"\xff\"", "column 11: expected UTF-8, found \"\\xff\""},
      {"root ::= <[x]>", "expected a token's number, found \"[x]\""},
      {"root ::= <[1>", "expected a token's number"},
      {"root ::= <a", "this token is never closed"},
      {"root ::= \"a\" root2 ::= \"b\"", "expected the end of the line, found \"r\""},
      {"", "expected a rule named \"root\", found none"},
  };
  for (const auto& [source, reason] : cases) {
    const auto grammar = compile_gbnf(source);
    ASSERT_FALSE(grammar) << source;
    EXPECT_EQ(grammar.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(grammar.error().message.find(reason), std::string::npos)
        << source << ": " << grammar.error().message;
  }
}

TEST(Gbnf, LeftRecursionIsRefusedByName) {
  for (const char* source :
       {"root ::= sum\nsum ::= sum \"+\" [0-9] | [0-9]",
        "root ::= sum\nsum ::= \"\" [a]? sum \"b\" | \"c\"",
        "root ::= sum\nsum ::= b \"x\" | \"y\"\nb ::= ([q]*) sum",
        "root ::= sum\nsum ::= (b | \"q\"){3,400} \"x\"\nb ::= [0-9]{0,9000} sum | \"z\""}) {
    const auto grammar = compile_gbnf(source);
    ASSERT_FALSE(grammar) << source;
    EXPECT_NE(grammar.error().message.find("left recursion"), std::string::npos);
    EXPECT_TRUE(grammar.error().message.find("\"sum\"") != std::string::npos ||
                grammar.error().message.find("\"b\"") != std::string::npos);
  }
}

TEST(Gbnf, WhatCanNeverEndIsRefusedOrLeftOut) {
  EXPECT_NE(message_of(compile_gbnf("root ::= \"a\" root")).find("can never end"),
            std::string::npos);
  EXPECT_NE(message_of(compile_gbnf("root ::= []")).find("can never end"), std::string::npos);
  // The second alternative leads nowhere, so that its beginning is not allowed either.
  const auto matcher =
      matcher_of(compile_gbnf("root ::= \"ab\" | \"ac\" loop\nloop ::= \"x\" loop"));
  EXPECT_EQ(fit(*matcher, "a"), Fit::begins);
  EXPECT_EQ(fit(*matcher, "ac"), Fit::no);
}

}  // namespace
}  // namespace cairn::grammar::gbnf_test
