// Lines, columns and what errors quote of a stranger's text.
#include "unicode/place.h"

#include <gtest/gtest.h>

namespace cairn::unicode::place_test {
namespace {

TEST(Place, CountsLinesAndColumnsInBytes) {
  const std::string_view text = "ab\n\né\"c";
  const auto at = [&](size_t offset) {
    const Place place = place_of(text, offset);
    return std::pair(place.line, place.column);
  };
  EXPECT_EQ(at(0), std::pair(size_t(1), size_t(1)));
  EXPECT_EQ(at(2), std::pair(size_t(1), size_t(3)));
  EXPECT_EQ(at(3), std::pair(size_t(2), size_t(1)));
  EXPECT_EQ(at(6), std::pair(size_t(3), size_t(3)));
  EXPECT_EQ(at(1000), at(text.size()));
  EXPECT_EQ(
      fail_at(ErrorCode::invalid_data, "file", text, 4, "found {}", found_at(text, 4)).message,
      "file: line 3, column 1: found \"é\"");
}

TEST(Place, QuotesNothingThatHarms) {
  EXPECT_EQ(quote("a\nb\x1b"), "\"a\\nb\\x1b\"");
  EXPECT_EQ(quote(std::string(41, 'x')), "\"" + std::string(40, 'x') + "…\"");
  EXPECT_EQ(found_at("ab", 2), "the end");
  EXPECT_EQ(found_at("a\xff", 1), "\"\\xff\"");
}

}  // namespace
}  // namespace cairn::unicode::place_test
