// The table of sampling parameters: ranges, defaults, words.
#include "sample/params.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace cairn::sample {
namespace {

TEST(SamplingParams, DefaultsAreInRangeAndNamedOnce) {
  const SamplingParams defaults;
  std::set<std::string_view> names;
  for (const SamplingField& field : sampling_fields()) {
    EXPECT_TRUE((field.real == nullptr) != (field.count == nullptr)) << field.option;
    EXPECT_TRUE(names.insert(field.option).second) << field.option;
    EXPECT_FALSE(field.doc.empty()) << field.option;
    SamplingParams params;
    EXPECT_TRUE(set(params, field, field.count != nullptr ? get(defaults, field) : field.max));
  }
  EXPECT_EQ(defaults.temperature, 0.8f);
  EXPECT_EQ(defaults.top_k, 40);
  EXPECT_EQ(defaults.top_p, 0.95f);
  EXPECT_EQ(defaults.min_p, 0.05f);
}

TEST(SamplingParams, SettingRefusesWhatIsOutOfRange) {
  for (const SamplingField& field : sampling_fields()) {
    for (const double bad : {field.min - 1, field.max + 1, std::nan("")}) {
      SamplingParams params;
      const double before = get(params, field);
      const Status status = set(params, field, bad);
      ASSERT_FALSE(status) << field.option << " " << bad;
      EXPECT_NE(status.error().message.find(field.option), std::string::npos);
      EXPECT_EQ(get(params, field), before);
    }
  }
}

TEST(SamplingParams, CountsAreWhole) {
  for (const SamplingField& field : sampling_fields()) {
    SamplingParams params;
    EXPECT_EQ(bool(set(params, field, 0.5)), field.count == nullptr) << field.option;
  }
}

}  // namespace
}  // namespace cairn::sample
