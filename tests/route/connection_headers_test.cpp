// Which headers go on, by their names alone.
#include "route/connection_headers.h"

#include <gtest/gtest.h>

namespace cairn::route::connection_headers_test {
namespace {

TEST(ConnectionHeaders, GoNoFurtherAndOthersDo) {
  constexpr std::string_view kAnew[] = {"x-request-id"};
  for (const std::string_view name : kConnectionHeaders) {
    EXPECT_FALSE(is_passed_on(name, kAnew, "")) << name;
    EXPECT_FALSE(is_passed_on(name, {}, "")) << name;
  }
  EXPECT_FALSE(is_passed_on("x-request-id", kAnew, ""));
  EXPECT_TRUE(is_passed_on("x-request-id", {}, ""));
  for (const std::string_view name : {"authorization", "x-of-node", "connections", "host"}) {
    EXPECT_TRUE(is_passed_on(name, kAnew, "")) << name;
  }
}

// RFC 9110, 7.6.1: names of headers, in letters of any size, with commas and blanks between them.
TEST(ConnectionHeaders, NameOthersThatGoNoFurther) {
  constexpr std::string_view kConnection = "close, X-Hop ,\tx-other,,";
  for (const std::string_view name : {"x-hop", "x-other"}) {
    EXPECT_FALSE(is_passed_on(name, {}, kConnection)) << name;
    EXPECT_TRUE(is_passed_on(name, {}, "close")) << name;
  }
  EXPECT_TRUE(is_passed_on("x-ho", {}, kConnection));
  EXPECT_TRUE(is_passed_on("x-hop-count", {}, kConnection));
}

}  // namespace
}  // namespace cairn::route::connection_headers_test
