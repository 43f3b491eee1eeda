// What the writer makes of trees.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "json/value.h"

namespace cairn::json::writer_test {
namespace {

// The same texts as nlohmann's writer made of the same trees.
TEST(JsonWriter, IsWrittenAsOthersWriteIt) {
  const std::string odd = "a\x7f\x01é😀\xff\xe2\x82z\xf0\x9f\x98\xed\xa0\x80\xe2\x82";
  nlohmann::ordered_json theirs = {{"odd", odd}, {"list", {1, {{"k", true}}, nullptr}}};
  Value ours = {{"odd", odd}};
  ours["list"].push_back(1);
  ours["list"].push_back({{"k", true}});
  ours["list"].push_back(Value());
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  EXPECT_EQ(to_text(ours), theirs.dump(-1, ' ', false, kReplace));
  EXPECT_EQ(to_text(ours, {.indent = 2, .is_ascii = true}), theirs.dump(2, ' ', true, kReplace));
  for (const double real : {0.0,      -0.0,       1.0,          0.1,
                            1.0 / 3,  123456.789, 1e14,         123456789012345.0,
                            1e15,     1e16,       1e100,        0.001,
                            0.0001,   0.00012,    1e-5,         1.5e-7,
                            5e-324,   -2.5e300,   double(0.8f), 1.7976931348623157e308,
                            HUGE_VAL, -HUGE_VAL}) {
    EXPECT_EQ(to_text(real), nlohmann::json(real).dump());
  }
}

}  // namespace
}  // namespace cairn::json::writer_test
