// How rules are carried out: nothing lost, well-formed pieces, and long texts of every sort.
#include "tokenize/pretokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "tests/sanitized.h"
#include "tests/test_name.h"
#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize {

// How a rule shows in what gtest prints; found by the rule's own namespace.
static void PrintTo(const PretokenizerRule& rule, std::ostream* out) {
  *out << rule.name;
}

}  // namespace cairn::tokenize

namespace cairn::tokenize::pretokenizer_test {
namespace {

class EveryRule : public testing::TestWithParam<PretokenizerRule> {};
class EveryDistinctRule : public EveryRule {};

// Many names stand for the same stages; the first of each.
std::vector<PretokenizerRule> distinct_rules() {
  std::vector<PretokenizerRule> rules;
  for (const PretokenizerRule& rule : all_pretokenizers()) {
    const auto is_same = [&](const PretokenizerRule& other) {
      return other.stages.data() == rule.stages.data();
    };
    if (std::none_of(rules.begin(), rules.end(), is_same)) rules.push_back(rule);
  }
  return rules;
}

std::string name_of(const testing::TestParamInfo<PretokenizerRule>& instance) {
  return test::test_name(instance.param.name);
}

TEST_P(EveryRule, KeepsTheTextAndItsCharacters) {
  auto built = Pretokenizer::build(GetParam());
  ASSERT_TRUE(built) << built.error().message;
  Pretokenizer::Session session(**built);
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    const std::string text = random_text(random, random() % 60, true);
    const char* expected = text.data();
    session.split(text, [&](std::string_view word) {
      EXPECT_FALSE(word.empty());
      EXPECT_EQ(word.data(), expected);
      EXPECT_EQ(unicode::valid_utf8_bytes(word), word.size());
      expected = word.data() + word.size();
    });
    EXPECT_EQ(expected, text.data() + text.size());
  }
}

// What sends a backtracking engine into squares or out of stack: the square of a MiB would not end
// within the time that a test has.
TEST_P(EveryDistinctRule, EndsOnLongTexts) {
  auto built = Pretokenizer::build(GetParam());
  ASSERT_TRUE(built) << built.error().message;
  Pretokenizer::Session session(**built);
  const std::pair<std::string, size_t> units[] = {
      {" ", 20},       {"a", 20},      {"1", 20},  {"\n", 16},     {"\t", 16},
      {"A", 16},       {"aB", 16},     {"!", 16},  {"a ", 16},     {" \n", 16},
      {"e\u0301", 16}, {"\u6F22", 16}, {"'s", 16}, {"\u0301", 16}, {"1a", 16},
  };
  constexpr size_t kShorter = test::kIsSanitized ? 2 : 0;
  for (const auto& [unit, size_log2] : units) {
    for (const char* end : {"", "x"}) {
      std::string text;
      while (text.size() < size_t{1} << (size_log2 - kShorter)) text += unit;
      text += end;
      size_t bytes = 0;
      session.split(text, [&](std::string_view word) { bytes += word.size(); });
      EXPECT_EQ(bytes, text.size());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Names, EveryRule,
                         testing::ValuesIn(all_pretokenizers().begin(), all_pretokenizers().end()),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Names, EveryDistinctRule, testing::ValuesIn(distinct_rules()), name_of);

TEST(Pretokenizer, SpacesAreUnicodesWhiteSpace) {
  const PretokenizerStage stage{PretokenizerStage::Kind::expression, R"(\s)"};
  auto built = Pretokenizer::build({"test", std::span(&stage, 1)});
  ASSERT_TRUE(built) << built.error().message;
  Pretokenizer::Session session(**built);
  const std::u32string_view spaces =
      U"\t\n\v\f\r \u0085\u00A0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
      U"\u200A\u2028\u2029\u202F\u205F\u3000";
  for (char32_t code = 1; code < 0xD800; ++code) {
    std::string text = "x";
    unicode::append_utf8(code, text);
    size_t word_count = 0;
    session.split(text, [&](std::string_view) { ++word_count; });
    EXPECT_EQ(word_count, spaces.find(code) == spaces.npos ? 1u : 2u) << std::hex << int(code);
  }
}

TEST(Pretokenizer, SaysWhatIsWrongWithAnExpression) {
  const PretokenizerStage stage{PretokenizerStage::Kind::expression, "[a"};
  auto built = Pretokenizer::build({"broken", std::span(&stage, 1)});
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().message.find("broken"), std::string::npos);
}

}  // namespace
}  // namespace cairn::tokenize::pretokenizer_test
