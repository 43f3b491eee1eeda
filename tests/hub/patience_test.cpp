// How long it is waited for.
#include "hub/patience.h"

#include <gtest/gtest.h>

namespace cairn::hub::patience_test {
namespace {

using std::chrono::milliseconds;

TEST(Patience, WaitsDoubleUpToALimitAndEnd) {
  Patience patience(
      {.failures_max = 4, .wait_first = milliseconds(100), .wait_max = milliseconds(300)});
  EXPECT_EQ(patience.wait_after({}, 0), milliseconds(100));
  EXPECT_EQ(patience.wait_after({}, 0), milliseconds(200));
  EXPECT_EQ(patience.wait_after({}, 0), milliseconds(300));
  EXPECT_EQ(patience.wait_after({}, 0), milliseconds(300));
  EXPECT_EQ(patience.wait_after({}, 0), std::nullopt);
  patience.succeed();
  EXPECT_EQ(patience.wait_after({}, 0), milliseconds(100));
}

TEST(Patience, ServersSayHowLong) {
  const auto asked = [](const char* text) {
    Patience patience({});
    return patience.wait_after({.status = 429, .fields = {{"retry-after", text}}}, 1'000'000'000);
  };
  EXPECT_EQ(asked("7"), milliseconds(7000));
  EXPECT_EQ(asked("0"), milliseconds(500));
  EXPECT_EQ(asked("301"), std::nullopt);
  EXPECT_EQ(asked("99999999999999999999"),
            milliseconds(500));  // No number: as if nothing was said.
  EXPECT_EQ(asked("soon"), milliseconds(500));
  EXPECT_EQ(asked("Sun, 09 Sep 2001 01:46:45 GMT"), milliseconds(5000));
  EXPECT_EQ(asked("Sun, 09 Sep 2001 01:46:35 GMT"), milliseconds(500));  // Over already.
}

TEST(Patience, SomeAnswersPass) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(is_passing(status));
  for (const int status : {200, 206, 302, 400, 401, 403, 404, 410, 416, 501}) {
    EXPECT_FALSE(is_passing(status)) << status;
  }
}

}  // namespace
}  // namespace cairn::hub::patience_test
