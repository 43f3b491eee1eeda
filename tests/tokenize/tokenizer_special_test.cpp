// Where special tokens are seen, and where not.
#include "tokenize/tokenizer_special.h"

#include <gtest/gtest.h>

#include "tests/tokenize/small_vocabularies.h"

namespace cairn::tokenize::tokenizer_special_test {
namespace {

class Specials : public testing::Test {
 protected:
  Specials()
      : vocabulary_(
            std::move(Vocabulary::build(small_.source, Vocabulary::Spelling::byte_level)).value()),
        matcher_(vocabulary_, false) {}

  // Texts as they are, tokens as their ids.
  std::vector<std::string> split(std::string_view text, std::vector<Region> regions) {
    std::vector<Fragment> fragments;
    matcher_.split(text, regions, fragments);
    std::vector<std::string> out;
    for (const Fragment& fragment : fragments) {
      out.push_back(fragment.token == kNoToken
                        ? std::string(text.substr(fragment.begin, fragment.end - fragment.begin))
                        : std::to_string(fragment.token));
    }
    return out;
  }
  std::vector<std::string> split(std::string_view text, Trust trust) {
    return split(text, std::vector<Region>{{text.size(), trust}});
  }

  SmallVocabulary small_ = byte_level_vocabulary();
  Vocabulary vocabulary_;
  SpecialMatcher matcher_;
};

using Texts = std::vector<std::string>;

TEST_F(Specials, TrustDecides) {
  const std::string_view text = "a<|start|>b<tool>c<|call_me|>";
  EXPECT_EQ(split(text, Trust::full), (Texts{"a", "264", "b", "266", "c", "267"}));
  EXPECT_EQ(split(text, Trust::plain), (Texts{"a<|start|>b", "266", "c", "267"}));
  EXPECT_EQ(split(text, Trust::user), (Texts{"a<|start|>b", "266", "c<|call_me|>"}));
}

TEST_F(Specials, TheLongestAtTheLeftmostPlaceIsTaken) {
  EXPECT_EQ(split("<|start|>longer", Trust::full), (Texts{"268", "er"}));
  EXPECT_EQ(split("<|start|>lon", Trust::full), (Texts{"264", "lon"}));
  EXPECT_EQ(split("<<|start|><", Trust::full), (Texts{"<", "264", "<"}));
  EXPECT_EQ(split("<|start|><|im_end|>", Trust::full), (Texts{"264", "265"}));
  EXPECT_EQ(split("<|star", Trust::full), (Texts{"<|star"}));
}

TEST_F(Specials, AllOfItMustBeTrusted) {
  const std::string_view text = "x<|start|>longy";
  for (size_t split_at = 1; split_at < text.size(); ++split_at) {
    const std::vector<Region> regions = {{split_at, Trust::full}, {text.size(), Trust::user}};
    Texts expected = {"x<|start|>longy"};
    if (split_at >= 10) expected = {"x", "264", "longy"};
    if (split_at >= 14) expected = {"x", "268", "y"};
    EXPECT_EQ(split(text, regions), expected) << split_at;
    const std::vector<Region> reverse = {{split_at, Trust::user}, {text.size(), Trust::full}};
    expected = split_at <= 1 ? Texts{"x", "268", "y"} : Texts{"x<|start|>longy"};
    EXPECT_EQ(split(text, reverse), expected) << split_at;
  }
}

TEST_F(Specials, Phi3SwallowsSpaces) {
  const SpecialMatcher matcher(vocabulary_, true);
  const std::string_view text = "a <|im_end|> \n b";
  const Region whole{text.size(), Trust::full};
  std::vector<Fragment> fragments;
  matcher.split(text, std::span(&whole, 1), fragments);
  ASSERT_EQ(fragments.size(), 3u);
  EXPECT_EQ(text.substr(fragments[0].begin, fragments[0].end - fragments[0].begin), "a ");
  EXPECT_EQ(fragments[1].token, 265);
  EXPECT_EQ(text.substr(fragments[2].begin, fragments[2].end - fragments[2].begin), "b");
}

}  // namespace
}  // namespace cairn::tokenize::tokenizer_special_test
