// Rates start at what drafters claim, become what is true, and follow what changes.
#include "draft/calibration.h"

#include <gtest/gtest.h>

#include "base/random_stream.h"

namespace cairn::draft::calibration_test {
namespace {

TEST(Calibration, NothingKnownIsWhatIsExpected) {
  const Calibration calibration(Calibration::kSequence);
  EXPECT_EQ(calibration.chance(0, .3f, .3f), .3f);
  EXPECT_EQ(calibration.chance(5, .3f, .6f), .6f);
  EXPECT_GT(calibration.chance(0, 0, 0), 0);
  EXPECT_LT(calibration.chance(0, 1, 1), 1);
}

TEST(Calibration, BecomesTheRateWhateverIsClaimed) {
  for (const float rate : {.1f, .5f, .9f}) {
    Calibration calibration(Calibration::kShared);
    RandomStream random(3, 0, 0);
    for (int i = 0; i < 4000; ++i) calibration.count(0, 1, 1, random.unit() < rate);
    EXPECT_NEAR(calibration.chance(0, 1, 1), rate, .06f);
  }
}

TEST(Calibration, ALieIsForgottenAltogether) {
  Calibration calibration(Calibration::kSequence);
  for (int i = 0; i < 200; ++i) calibration.count(0, 1, 1, false);
  EXPECT_LT(calibration.chance(0, 1, 1), .01f);
  for (int i = 0; i < 20; ++i) calibration.count(0, 1, 1, true);
  EXPECT_GT(calibration.chance(0, 1, 1), .9f);
}

TEST(Calibration, DepthsAndClaimsAreCountedApart) {
  Calibration calibration(Calibration::kSequence);
  for (int i = 0; i < 100; ++i) calibration.count(0, .5f, .5f, false);
  EXPECT_EQ(calibration.chance(1, .5f, .5f), .5f);
  EXPECT_EQ(calibration.chance(0, .7f, .7f), .7f);
  EXPECT_LT(calibration.chance(0, .46f, .46f), .05f);
  // The last row has all depths beyond it.
  calibration.count(64, .5f, .5f, false);
  EXPECT_LT(calibration.chance(1 << 20, .5f, .5f), .5f);
}

TEST(Calibrations, ReferencesStayValidAndNamesAreTheKey) {
  Calibrations calibrations;
  Calibration& first = calibrations.of("a");
  for (char name = 'b'; name < 'z'; ++name) calibrations.of(std::string(1, name));
  first.count(0, .5f, .5f, true);
  EXPECT_GT(calibrations.of("a").chance(0, .5f, .5f), .5f);
  EXPECT_EQ(calibrations.of("b").chance(0, .5f, .5f), .5f);
}

}  // namespace
}  // namespace cairn::draft::calibration_test
