// Words with few mistakes find the name that was meant, others none.
#include "base/text/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::nearest_name_test {
namespace {

const std::vector<std::string> kKnown = {"run", "inspect", "bench", "quantize", "--top-k"};

TEST(NearestName, OneOrTwoMistakesAreForgiven) {
  EXPECT_EQ(nearest_name("run", kKnown), "run");
  EXPECT_EQ(nearest_name("rum", kKnown), "run");
  EXPECT_EQ(nearest_name("insepct", kKnown), "inspect");
  EXPECT_EQ(nearest_name("inspekt", kKnown), "inspect");
  EXPECT_EQ(nearest_name("quantise", kKnown), "quantize");
  EXPECT_EQ(nearest_name("quantie", kKnown), "quantize");
  EXPECT_EQ(nearest_name("--topk", kKnown), "--top-k");
}

TEST(NearestName, MoreIsAnotherWord) {
  EXPECT_EQ(nearest_name("kwantise", kKnown), "");
  EXPECT_EQ(nearest_name("quantizations", kKnown), "");
  EXPECT_EQ(nearest_name("", kKnown), "");
  EXPECT_EQ(nearest_name("run", {}), "");
}

// A short name has few letters to be told by: any word is made of it by a mistake or two.
TEST(NearestName, ShortNamesAllowFewMistakes) {
  const std::vector<std::string> known = {"-p", "-hf", "abcde"};
  EXPECT_EQ(nearest_name("-s", known), "");
  EXPECT_EQ(nearest_name("-hx", known), "-hf");
  EXPECT_EQ(nearest_name("abxye", known), "");
}

TEST(NearestName, TheNearestWinsAndOfEqualsTheFirst) {
  const std::vector<std::string> known = {"--stop", "--step", "--stem"};
  EXPECT_EQ(nearest_name("--stap", known), "--stop");
  EXPECT_EQ(nearest_name("--stek", known), "--step");
  EXPECT_EQ(nearest_name("--stems", known), "--stem");
}

}  // namespace
}  // namespace cairn::nearest_name_test
