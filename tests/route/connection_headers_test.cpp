// Which headers go on, by their names alone.
#include "route/connection_headers.h"

#include <gtest/gtest.h>

namespace cairn::route::connection_headers_test {
namespace {

TEST(ConnectionHeaders, GoNoFurtherAndOthersDo) {
  constexpr std::string_view kAnew[] = {"x-request-id"};
  for (const std::string_view name : kConnectionHeaders) {
    EXPECT_FALSE(is_passed_on(name, kAnew)) << name;
    EXPECT_FALSE(is_passed_on(name, {})) << name;
  }
  EXPECT_FALSE(is_passed_on("x-request-id", kAnew));
  EXPECT_TRUE(is_passed_on("x-request-id", {}));
  for (const std::string_view name : {"authorization", "x-of-node", "connections", "host"}) {
    EXPECT_TRUE(is_passed_on(name, kAnew)) << name;
  }
}

}  // namespace
}  // namespace cairn::route::connection_headers_test
