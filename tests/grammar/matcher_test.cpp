// Masks against trying every token; rewinding; what hostile grammars cost; grammars put together.
#include "grammar/matcher.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "tests/grammar/toy_vocabulary.h"

namespace cairn::grammar::matcher_test {
namespace {

const std::vector<std::string> kWords = {"the",
                                         " the",
                                         "\"",
                                         "\",",
                                         "\":",
                                         "\": \"",
                                         "{\"",
                                         "\"}",
                                         "}}",
                                         "]]",
                                         "[[",
                                         "true",
                                         "null",
                                         "1234",
                                         "0.5",
                                         "ab",
                                         "abc",
                                         "abcd",
                                         "aa",
                                         "aaa",
                                         "aaaaaaaaaaaaaaaaaaaaaaaa",
                                         "\n",
                                         "\n  ",
                                         "  ",
                                         "é",
                                         "\xC3",
                                         "\xA9"
                                         "a",
                                         "😀",
                                         "\\u",
                                         "\\\"",
                                         "x1",
                                         "name",
                                         "\"name\":",
                                         "abcabcabcabcabcabcabc",
                                         "ab",
                                         "aaaaaaaaaaaaaaaaaaaaaaaa"};

const char* const kGrammars[] = {
    "root ::= \"a\"{3,60} \"b\" | \"abc\"{10,40}",
    "root ::= ([a-c] | \"abc\"){5,300} (\"aa\"? \"b\"?){2,90} \"\\n\"",
    "root ::= item (\",\" item)*\nitem ::= [a-z]+ | \"[\" root? \"]\" | \"é\" | "
    "[^a-z\\[\\],]{1,20}",
    "root ::= \"{\" pair{1,30} \"}\"\npair ::= \"\\\"\" [^\"]{0,25} \"\\\"\" \":\" (root | [0-9]+) "
    "\"\\n\"?",
    // Counts that are written out: chains of states that short tokens cannot tell apart.
    "root ::= ([a-c] [ab]{1,30} \"c\"?){1,2} [^a]{0,40} \"\\n\" | \"ab\"{18,20} \"x1\"",
    "root ::= \"name\" [a-z]{2,25} (root | [0-9]{1,60}) \"\\n\"",
    "root ::= <think> !</think>* </think> [a-c]* | \"a\" !<[97]> \"the\"{20,30}",
};

// The mask says what trying says, for states along random walks; the walks also rewind.
void check_masks(Matcher& matcher, const tokenize::Tokenizer& tokenizer, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<State> path = {matcher.start()};
  for (int step = 0; step < 60; ++step) {
    const State state = path.back();
    const TokenMask mask = must(matcher.mask(state));
    const std::vector<uint64_t> kept(mask.begin(), mask.end());
    std::vector<std::pair<Token, State>> ways;
    for (int32_t token = 0; size_t(token) < tokenizer.token_count(); ++token) {
      const auto next = matcher.advance(state, Token(token));
      ASSERT_EQ(bool(next), allows(kept, token))
          << tokenizer.piece(Token(token)) << " step " << step;
      if (next) ways.emplace_back(Token(token), must(Result<State>(next)));
    }
    for (size_t bit = tokenizer.token_count(); bit < kept.size() * 64; ++bit) {
      ASSERT_FALSE(allows(kept, int32_t(bit)));
    }
    ASSERT_TRUE(!ways.empty());
    if (matcher.is_finished(state)) {
      path = {matcher.start()};
    } else if (random() % 8 == 0) {
      path.resize(1 + random() % path.size());
    } else {
      path.push_back(ways[random() % ways.size()].second);
    }
  }
}

TEST(Matcher, MasksAreWhatTryingSays) {
  const auto tokenizer = toy_tokenizer(kWords);
  const auto trie = TokenTrie::build(*tokenizer);
  std::vector<Grammar> grammars;
  for (const char* source : kGrammars) grammars.push_back(must(compile_gbnf(source)));
  grammars.push_back(must(compile_schema(
      R"({"properties":{"name":{"type":"string","maxLength":30},
          "x1":{"type":"number","minimum":0.5},
          "y":{"anyOf":[{"type":"null"},{"$ref":"#"}]}},"required":["x1"],
          "additionalProperties":{"type":"array","items":{"enum":["the","é",1234]}}})")));
  grammars.push_back(must(compile_regex("(a|b|ab)*a(a|b){9}[^x]{2,70}")));
  for (const Grammar& grammar : grammars) {
    const auto matcher = must(Matcher::build(grammar, trie));
    for (uint32_t seed = 0; seed < 3; ++seed) check_masks(*matcher, *tokenizer, seed);
  }
}

TEST(Matcher, StatesStayWhatTheyWere) {
  const auto tokenizer = toy_tokenizer(kWords);
  const auto matcher =
      must(Matcher::build(must(compile_schema("{}")), TokenTrie::build(*tokenizer)));
  std::vector<State> states = {matcher->start()};
  std::vector<std::vector<uint64_t>> masks;
  const std::string text = R"({"a": [1, "two", {"b": null}], "c": {"d": [[true]]}})";
  for (const char c : text) {
    const TokenMask mask = must(matcher->mask(states.back()));
    masks.emplace_back(mask.begin(), mask.end());
    states.push_back(must(matcher->advance(states.back(), Token(uint8_t(c)))));
  }
  EXPECT_TRUE(matcher->is_finished(states.back()));
  for (size_t i = text.size(); i-- > 0;) {
    const TokenMask mask = must(matcher->mask(states[i]));
    EXPECT_TRUE(std::equal(mask.begin(), mask.end(), masks[i].begin()));
    EXPECT_EQ(must(matcher->advance(states[i], Token(uint8_t(text[i])))), states[i + 1]);
  }
}

TEST(Matcher, ForgettingWhatWasLookedAtChangesNothing) {
  const auto tokenizer = toy_tokenizer(kWords);
  const auto matcher =
      must(Matcher::build(must(compile_schema("{}")), TokenTrie::build(*tokenizer)));
  // Nesting is new at each step, so that memory fills.
  std::vector<State> states = {matcher->start()};
  size_t largest = 0;
  bool has_shrunk = false;
  while (!has_shrunk && states.size() < 200'000) {
    states.push_back(must(matcher->advance(states.back(), Token('['))));
    must(matcher->mask(states.back()));
    has_shrunk = matcher->byte_size() < largest / 2;
    largest = std::max(largest, matcher->byte_size());
  }
  EXPECT_TRUE(has_shrunk);
  EXPECT_LT(largest, 80u << 20);
  EXPECT_EQ(must(matcher->advance(states[100], Token('['))), states[101]);
  State state = states.back();
  for (size_t i = 1; i < states.size(); ++i) state = must(matcher->advance(state, Token(']')));
  EXPECT_TRUE(matcher->is_finished(state));
}

TEST(Matcher, EndTokensWhereTheTextIsComplete) {
  const auto matcher = matcher_of(compile_gbnf("root ::= \"a\" \"b\"?"));
  const Token end = Token(258);
  const State a = must(matcher->advance(matcher->start(), Token('a')));
  EXPECT_FALSE(matcher->advance(matcher->start(), end));
  EXPECT_EQ(must(matcher->advance(a, end)), a);
  EXPECT_TRUE(allows(must(matcher->mask(a)), 258));
  EXPECT_FALSE(allows(must(matcher->mask(matcher->start())), 258));
  EXPECT_FALSE(allows(must(matcher->mask(a)), 256));
  EXPECT_FALSE(matcher->is_finished(a));
  EXPECT_FALSE(matcher->advance(a, Token(259)));
  EXPECT_FALSE(matcher->advance(a, Token(-1)));
}

TEST(Matcher, AmbiguityHasALimit) {
  // After k characters, a counter may stand anywhere between k / 2 and k, in each of two counters.
  const auto matcher =
      matcher_of(compile_gbnf("root ::= ((\"a\" | \"aa\"){1,5000} \"b\"?){1,5000}"));
  State state = matcher->start();
  ErrorCode code = ErrorCode::io;
  for (int i = 0; i < 5000; ++i) {
    const auto next = matcher->advance(state, Token('a'));
    if (!next) {
      code = next.error().code;
      break;
    }
    state = must(Result<State>(next));
  }
  EXPECT_EQ(code, ErrorCode::no_room);
}

TEST(Builder, GrammarsArePutTogether) {
  Builder b;
  const Node arguments =
      must(b.schema(R"({"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]})"));
  const Node call =
      b.sequence({b.text("<call>"), b.json_text("f"), b.blanks(), arguments, b.text("</call>")});
  const Node other = must(b.gbnf("root ::= [0-9]+"));
  const Node third = must(b.regex("q[a-c]*"));
  expect_fits(
      b.finish(b.sequence({b.text_until("=>"), b.repeat(b.choice({call, other, third}), 1, 2)})),
      {"so =>12", "=>qab<call>\"f\" {\"x\":1}</call>", "= = =>1", "==>q"},
      {"so 12", "=>", "=>1=>2", "=><call>\"f\"{}</call>", "a=>1qq1q"});
  Builder texts;
  expect_fits(texts.finish(texts.sequence({texts.any_text(), texts.optional(texts.text("!"))})),
              {"", "é\n!", "!!"}, {"\xff"});
}

TEST(Builder, TextUntilAnEndThatRepeatsItself) {
  Builder b;
  expect_fits(b.finish(b.text_until("aabaac")), {"aabaac", "aabaabaac", "xaaabaac", "é aabaac"},
              {"aabaa", "aabaacx", "aabaab"});
}

// Against looking: every text of three characters, of which one has two bytes.
TEST(Builder, TextWithoutOthersIsExact) {
  constexpr std::string_view kLetters[] = {"a", "b", "é"};
  const std::vector<std::vector<std::string>> cases = {
      {"ab"}, {"aab", "aé", "bb"}, {"abab", "ba"}, {"é", "aaa"}, {"aa", "aabé"}};
  for (const std::vector<std::string>& never : cases) {
    Builder b;
    const auto matcher = matcher_of(b.finish(b.text_without(never)));
    ASSERT_NE(matcher, nullptr);
    for (int length = 0; length <= 6; ++length) {
      const int count = int(std::lround(std::pow(3, length)));
      for (int number = 0; number < count; ++number) {
        std::string text;
        for (int i = 0, rest = number; i < length; ++i, rest /= 3) text += kLetters[rest % 3];
        const bool holds = std::any_of(never.begin(), never.end(), [&](const std::string& part) {
          return text.find(part) != std::string::npos;
        });
        ASSERT_EQ(fit(*matcher, text), holds ? Fit::no : Fit::whole) << text;
      }
    }
  }
}

TEST(Builder, CharactersAreTakenOutOfPatternsAndSchemas) {
  Builder pattern;
  const Node text = must(pattern.pattern("^([<-@]|a<b|cd)+$", {{'<', '<'}}));
  expect_fits(pattern.finish(pattern.sequence({pattern.text("<"), text})), {"<=", "<cd>", "<@@"},
              {"<", "<<", "<a<b", "<cd<"});
  Builder schema;
  const Node json =
      must(schema.schema(R"({"type":"array","items":{"type":"string"}})", {{'<', '<'}}));
  expect_fits(schema.finish(json), {R"(["a>"])", R"(["\u003c"])"}, {R"(["<"])"});
}

TEST(Hostile, SourcesAreRefusedInTimeOrWork) {
  std::string chain = "root ::= r0\n", late, nested_rules = "root ::= r0\n",
              alternatives = "root ::= \"a\"";
  for (int i = 0; i < 5000; ++i) chain += fmt::format("r{} ::= \"a\" r{}\n", i, i + 1);
  for (int i = 0; i < 4000; ++i) late += fmt::format("r{} ::= r{} \"a\"\n", i, i + 1);
  for (int i = 0; i < 30; ++i) nested_rules += fmt::format("r{} ::= r{} r{}\n", i, i + 1, i + 1);
  nested_rules += "r30 ::= \"a\"\n";
  for (int i = 0; i < 20'000; ++i) alternatives += "|\"a\"";
  const std::pair<std::string, bool> cases[] = {
      {"root ::= " + std::string(60'000, '('), false},
      {"root ::= " + std::string(60'000, '(') + "\"a\"" + std::string(60'000, ')'), false},
      {chain, false},
      {"root ::= r0\n" + late + "r4000 ::= \"a\"\n", true},
      {"root ::= r0\n" + late + "r4000 ::= r0\n", false},
      {nested_rules, true},
      {alternatives, false},
      {"root ::= (((\"a\"*)*)*)", true},
      {"root ::= \"a\"" + std::string(60'000, '*'), false},
      {"root ::= \"a\"{1,1000000000}", false},
      {"root ::= \"a\"{99999999999999999999}", false},
      {"root ::= (((((\"a\"{1000}){1000}){1000}){1000}){1000}){1000}", true},
      {"root ::= \"" + std::string(300'000, 'a') + "\"", false},
      {"root ::= " + std::string(250'000, '.'), false},
      {"root ::= " + std::string(10'000, '.'), true},
      {std::string("root ::= \"\0\"", 12), true},
  };
  for (const auto& [source, is_fine] : cases) {
    const auto begin = std::chrono::steady_clock::now();
    const auto grammar = compile_gbnf(source);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(bool(grammar), is_fine) << source.substr(0, 60) << ": " << message_of(grammar);
    // Half a second on a machine that does nothing else and without sanitizers.
    EXPECT_LT(seconds.count(), 20) << source.substr(0, 60);
    EXPECT_LT(message_of(grammar).size(), 300u);
  }
}

TEST(Hostile, SchemasAndRegexes) {
  std::string deep, anys = "{\"allOf\":[", values = "{\"enum\":[0";
  for (int i = 0; i < 10'000; ++i) deep += "{\"items\":";
  for (int i = 0; i < 40; ++i) {
    anys +=
        fmt::format("{}{{\"anyOf\":[{{\"minimum\":{}}},{{\"maximum\":{}}}]}}", i ? "," : "", i, i);
  }
  for (int i = 1; i < 70'000; ++i) values += ",1";
  EXPECT_EQ(compile_schema(deep).error().code, ErrorCode::no_room);
  EXPECT_EQ(compile_schema(anys + "]}").error().code, ErrorCode::no_room);
  EXPECT_EQ(compile_schema(values + "]}").error().code, ErrorCode::no_room);
  EXPECT_EQ(compile_schema(std::string(1 << 20, ' ')).error().code, ErrorCode::no_room);
  EXPECT_FALSE(compile_schema(R"({"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}})"));
  EXPECT_FALSE(compile_schema(R"({"allOf":[{"$ref":"#"},{"anyOf":[{"$ref":"#"}]}]})"));
  EXPECT_EQ(compile_regex("(" + std::string(70'000, 'a') + ")").error().code, ErrorCode::no_room);
  EXPECT_EQ(compile_regex(std::string(300, '(')).error().code, ErrorCode::no_room);
  EXPECT_EQ(compile_regex("a{1,99999}").error().code, ErrorCode::no_room);
  EXPECT_TRUE(compile_regex("((a|b){0,1000}c){0,1000}"));
}

}  // namespace
}  // namespace cairn::grammar::matcher_test
