// Unigram vocabularies and their table of replacements, by hand.
#include "tokenize/unigram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/tokenize/small_vocabularies.h"
#include "tokenize/detokenizer.h"

namespace cairn::tokenize::unigram_test {
namespace {

using Ids = std::vector<int32_t>;

// A double array by hand: units are placed where they are wanted, bytes as they lie in a file.
class SmallMap {
 public:
  // The unit at `at` becomes a node that `byte` reaches, whose children lie at at ^ offset.
  void node(uint32_t at, uint8_t byte, uint32_t offset, bool has_value = false) {
    unit(at) = byte | (has_value ? 1u << 8 : 0) | offset << 10;
  }
  void value(uint32_t at, std::string_view replacement) {
    unit(at) = uint32_t(strings_.size()) | 1u << 31;
    strings_.append(replacement).push_back('\0');
  }
  uint32_t& unit(uint32_t at) {
    // What is not placed carries a label of its own that no byte reaches it by.
    while (units_.size() <= at) units_.push_back(1u << 31);
    return units_[at];
  }
  std::string strings_;

  std::string bytes() const {
    const auto length = uint32_t(units_.size() * 4);
    std::string bytes(4 + length, '\0');
    std::memcpy(bytes.data(), &length, 4);
    std::memcpy(bytes.data() + 4, units_.data(), length);
    return bytes + strings_;
  }

 private:
  std::vector<uint32_t> units_;
};

// "A" becomes "a", "AB" becomes "<ab>", "\t" a space, "#" nothing.
SmallMap small_map() {
  SmallMap map;
  map.node(0, 0, 256);
  map.node(256 ^ 'A', 'A', 512, true);
  const uint32_t below_a = (256 ^ 'A') ^ 512;
  map.value(below_a, "a");
  map.node(below_a ^ 'B', 'B', 1024, true);
  map.value(below_a ^ 'B' ^ 1024, "<ab>");
  map.node(256 ^ '\t', '\t', 512, true);
  map.value(256 ^ '\t' ^ 512, " ");
  map.node(256 ^ '#', '#', 512, true);
  map.value(256 ^ '#' ^ 512, "");
  return map;
}

// 0 <unk>, 1 <s>, 2 </s>, then words with the logarithms of how often they come.
SmallVocabulary unigram_vocabulary() {
  SmallVocabulary small;
  small.source.model = "t5";
  small.add("<unk>", TokenType::unknown);
  small.add("<s>", TokenType::control);
  small.add("</s>", TokenType::control);
  const std::string space = "\u2581";
  small.add(space, TokenType::normal, -2);          // 3
  small.add("a", TokenType::normal, -3);            // 4
  small.add("b", TokenType::normal, -3);            // 5
  small.add("ab", TokenType::normal, -5);           // 6
  small.add(space + "a", TokenType::normal, -4);    // 7
  small.add("ba", TokenType::normal, -7);           // 8
  small.add("<ab>", TokenType::normal, -1);         // 9
  small.add("bbb", TokenType::unused, 0);           // 10
  small.add("<tool>", TokenType::user_defined, 0);  // 11
  small.add("\u00E9", TokenType::normal, -4);       // 12
  small.source.bos = 1;
  small.source.eos = 2;
  small.source.unk = 0;
  small.source.add_space_prefix = true;
  small.source.remove_extra_whitespaces = true;
  return small;
}

TEST(Unigram, TakesTheHighestSum) {
  const auto tokenizer = build(unigram_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("ab")), (Ids{3, 6}));  // -2 -5, not -4 -3: equal, the first.
  EXPECT_EQ(ids(tokenizer->encode("abab")), (Ids{3, 6, 6}));
  EXPECT_EQ(ids(tokenizer->encode("ba")), (Ids{3, 5, 4}));  // -6, not -7.
  EXPECT_EQ(ids(tokenizer->encode("bbb")), (Ids{3, 5, 5, 5}));
}

TEST(Unigram, AStretchOfTheUnknownIsOneToken) {
  const auto tokenizer = build(unigram_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("xyz")), (Ids{3, 0}));
  EXPECT_EQ(ids(tokenizer->encode("xa\u4E2D\u4E2Da")), (Ids{3, 0, 4, 0, 4}));
  EXPECT_EQ(ids(tokenizer->encode("a\xFF\xFE")), (Ids{7, 0}));
  EXPECT_EQ(ids(tokenizer->encode("x y")), (Ids{3, 0, 3, 0}));
}

TEST(Unigram, BytesStandForTheUnknownWhereAllAreThere) {
  SmallVocabulary small = unigram_vocabulary();
  for (int byte = 0; byte < 256; ++byte) {
    small.add(fmt::format("<0x{:02X}>", byte), TokenType::byte);  // From 13 on.
  }
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("xa\u00E8")), (Ids{3, 13 + 'x', 4, 13 + 0xC3, 13 + 0xA8}));
}

TEST(Unigram, Spaces) {
  SmallVocabulary small = unigram_vocabulary();
  EXPECT_EQ(ids(build(small)->encode("  a   b ")), (Ids{7, 3, 5}));
  EXPECT_EQ(ids(build(small)->encode("a\u2581b")), (Ids{7, 3, 5}));
  EXPECT_EQ(ids(build(small)->encode("   ")), Ids{});
  EXPECT_EQ(decode(*build(small), build(small)->encode("a ab"), {.is_whole_text = true}), "a ab");
  small.source.remove_extra_whitespaces = false;
  EXPECT_EQ(ids(build(small)->encode(" a  b ")), (Ids{3, 7, 3, 3, 5, 3}));
  small.source.add_space_prefix = false;
  EXPECT_EQ(ids(build(small)->encode("b a")), (Ids{5, 7}));
  // A token with a space inside is found, too.
  small.add("b\u2581a", TokenType::normal, -1);
  EXPECT_EQ(ids(build(small)->encode("b a")), (Ids{13}));
}

TEST(Unigram, SpecialTokens) {
  const auto tokenizer = build(unigram_vocabulary());
  EXPECT_EQ(ids(tokenizer->encode("a", {.add_special = true})), (Ids{7, 2}));
  EXPECT_EQ(ids(tokenizer->encode("a<tool>a")), (Ids{7, 11, 7}));
  EXPECT_EQ(ids(tokenizer->encode("a</s>a", {.parse_special = true})), (Ids{7, 2, 7}));
  for (const int32_t id : ids(tokenizer->encode("a</s>a"))) EXPECT_NE(id, 2);
}

TEST(Unigram, ReplacesTheLongestEntry) {
  SmallVocabulary small = unigram_vocabulary();
  small.source.precompiled_charsmap = small.keep(small_map().bytes());
  const auto tokenizer = build(small);
  EXPECT_EQ(ids(tokenizer->encode("A")), (Ids{7}));
  EXPECT_EQ(ids(tokenizer->encode("AB\tA#b")), (Ids{3, 9, 3, 6}));
  EXPECT_EQ(ids(tokenizer->encode("#\t#")), Ids{});
}

TEST(Unigram, NumbersAndAnUnknownTokenAreNeeded) {
  SmallVocabulary small = unigram_vocabulary();
  small.source.scores[5] = std::nanf("");
  auto built = Tokenizer::build(small.source);
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().message.find("scores"), std::string::npos);
  small = unigram_vocabulary();
  small.source.tokens.resize(2);
  small.source.types.resize(2);
  small.source.scores.resize(2);
  small.source.unk.reset();
  small.source.eos.reset();
  built = Tokenizer::build(small.source);
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().message.find("unknown_token_id"), std::string::npos);
}

TEST(Charsmap, RefusesWhatContradictsItself) {
  const auto refused = [](std::string_view bytes, std::string_view part) {
    const Result<Charsmap> map = Charsmap::build(bytes);
    ASSERT_FALSE(map) << part;
    EXPECT_EQ(map.error().code, ErrorCode::invalid_data);
    EXPECT_NE(map.error().message.find(part), std::string::npos) << map.error().message;
  };
  EXPECT_TRUE(Charsmap::build(""));
  EXPECT_TRUE(Charsmap::build(small_map().bytes()));
  refused("abc", "expected 4 bytes");
  refused(std::string("\xFF\xFF\xFF\x7F....", 8), "expected a table");
  refused(std::string("\x03\0\0\0....", 8), "expected a table");

  SmallMap circle = small_map();
  // Two units, each a child of the other.
  circle.node(256 ^ 'C', 'C', 0);
  circle.node(256 ^ 'C' ^ 'D', 'D', 'C' ^ 'D');
  refused(circle.bytes(), "circle");

  SmallMap open_end = small_map();
  open_end.strings_.pop_back();
  refused(open_end.bytes(), "replacement");

  SmallMap outside = small_map();
  outside.node(256 ^ '!', '!', 1u << 18, true);
  refused(outside.bytes(), "expected a value");

  SmallMap long_path;
  long_path.node(0, 0, 256);
  for (uint32_t depth = 0; depth < 300; ++depth) {
    long_path.node(256 * (depth + 1) ^ 'x', 'x', (256 * (depth + 1) ^ 'x') ^ (256 * (depth + 2)));
  }
  refused(long_path.bytes(), "at most 256 bytes");
}

// Whatever bits are flipped: refused, or used without harm.
TEST(Charsmap, SurvivesFlippedBits) {
  const std::string honest = small_map().bytes();
  std::mt19937 random(41);
  int built_count = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = honest;
    for (int flip = 0; flip < 3; ++flip) {
      const size_t at = random() % bytes.size();
      bytes[at] = char(uint8_t(bytes[at]) ^ 1u << random() % 8);
    }
    Result<Charsmap> map = Charsmap::build(bytes);
    if (!map) continue;
    ++built_count;
    for (const std::string_view text : {"AB", "A", "\t", "#", "zA", "\xFF\xFE", ""}) {
      const Charsmap::Match match = map->longest(text);
      EXPECT_LE(match.length, text.size());
      EXPECT_LE(match.replacement.size(), 1024u);
    }
  }
  EXPECT_GT(built_count, 100);
  EXPECT_LT(built_count, 2000);
}

}  // namespace
}  // namespace cairn::tokenize::unigram_test
