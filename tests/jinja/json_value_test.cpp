// JSON into values: what it accepts, what it refuses and the limits.
#include "jinja/values/json_value.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::jinja::json_value_test {
namespace {

using jinja::DictObject;
using jinja::Kind;

TEST(JsonValue, EveryKindOfValue) {
  auto parsed = parse_json(R"( {"a":[1,-2,2.5,1e2,true,null,"\u00e9\ud83d\ude00\n"],"":{}} )");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const DictObject& dict = (*parsed).as<DictObject>();
  const std::vector<jinja::Value>& items = dict.find("a")->items();
  EXPECT_EQ(items[0].as_integer(), 1);
  EXPECT_EQ(items[1].as_integer(), -2);
  EXPECT_EQ(items[2].as_real(), 2.5);
  EXPECT_TRUE(items[3].is(Kind::real));
  EXPECT_TRUE(items[4].as_boolean());
  EXPECT_TRUE(items[5].is(Kind::none));
  EXPECT_EQ(items[6].text(), "é😀\n");
  EXPECT_FALSE(items[6].marked().is_trusted());
  EXPECT_TRUE(items[0].is_users());
  EXPECT_TRUE(dict.find("")->is(Kind::dict));
}

TEST(JsonValue, RefusesWhatIsBroken) {
  for (const char* json : {"", "{", "[1,]", "{\"a\":1,\"a\":2}", "1e999", "18446744073709551615",
                           "123456789012345678901234567890", "\"\\ud800\"", "\"\xff\"", "[1] 2",
                           "nul", "NaN", "{1:2}", "\"a\nb\""}) {
    auto parsed = parse_json(json);
    ASSERT_FALSE(parsed) << json;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_data) << json;
    EXPECT_TRUE(parsed.error().message.starts_with("JSON")) << parsed.error().message;
  }
}

TEST(JsonValue, PlacesOfErrorsAreLinesAndColumns) {
  auto parsed = parse_json("{\n  \"a\": nope\n}");
  ASSERT_FALSE(parsed);
  EXPECT_TRUE(parsed.error().message.starts_with("JSON: line 2, column 8: "))
      << parsed.error().message;
}

TEST(JsonValue, NestingAndMembersAreBounded) {
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(parse_json(deep));
  auto deeper = parse_json("[" + deep + "]");
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().code, ErrorCode::no_room);
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  std::string wide = "{";
  for (int i = 0; i <= 65'536; ++i) wide += (i ? ",\"" : "\"") + std::to_string(i) + "\":0";
  auto members = parse_json(wide + "}");
  ASSERT_FALSE(members);
  EXPECT_EQ(members.error().code, ErrorCode::no_room);
}

}  // namespace
}  // namespace cairn::jinja::json_value_test
