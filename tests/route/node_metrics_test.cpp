// Texts of metrics, and those that say what cannot be.
#include "route/node_metrics.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::route::node_metrics_test {
namespace {

TEST(NodeMetrics, AGaugeIsTheSumOverItsLabels) {
  const std::string text =
      "# HELP waiting Requests {model=\"x\"} 7\n# TYPE waiting gauge\n"
      "waiting{model=\"a\"} 2\nwaiting{model=\"b\",kind=\"c\"} 3.0\r\nwaiting_more{model=\"a\"} "
      "50\n"
      "not_waiting{model=\"a\"} 70\nwaiting 11\nrunning{model=\"a\"} 900";
  EXPECT_EQ(gauge_sum(text, "waiting"), 16);
  EXPECT_EQ(gauge_sum(text, "running"), 900);
  EXPECT_EQ(gauge_sum(text, "none"), 0);
  EXPECT_EQ(gauge_sum("", "waiting"), 0);
}

// The text form has a time behind a value, and labels with all characters in them.
TEST(NodeMetrics, AValueStandsBehindItsLabels) {
  EXPECT_EQ(gauge_sum("waiting{model=\"a\"} 2 1395066363000\n", "waiting"), 2);
  EXPECT_EQ(gauge_sum("waiting 3 1395066363000\n", "waiting"), 3);
  EXPECT_EQ(gauge_sum("waiting{model=\"a} 90\"} 2\n", "waiting"), 2);
  EXPECT_EQ(gauge_sum("waiting{model=\"a\\\"} 90\\\\\"}\t 2\n", "waiting"), 2);
  EXPECT_EQ(gauge_sum("waiting{model=\"a\"}2\n", "waiting"), 2);
}

// The others count on.
TEST(NodeMetrics, WhatIsNoNumberOfRequestsIsNone) {
  for (const char* wrong : {"nan", "NaN", "-nan", "nan(1)", "inf", "+Inf", "-inf", "1e999", "-1",
                            "-1e300", "1e5x", "0x10", "", "x", "} 5"}) {
    const std::string text = "waiting{model=\"a\"} " + std::string(wrong) +
                             "\nwaiting{model=\"b\"} 4\nwaiting{model=\"c\" 5\nwaiting{";
    EXPECT_EQ(gauge_sum(text, "waiting"), 4) << wrong;
  }
}

TEST(NodeMetrics, ThereAreNotSoMany) {
  EXPECT_EQ(gauge_sum("waiting 1e300\nwaiting 1e300\n", "waiting"), kNodeRequestsMax);
  EXPECT_EQ(gauge_sum("waiting 600000\nwaiting 600000\n", "waiting"), kNodeRequestsMax);
}

}  // namespace
}  // namespace cairn::route::node_metrics_test
