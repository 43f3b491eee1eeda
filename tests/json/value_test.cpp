// Trees: what they keep of a text, and how they are put together.
#include "json/value.h"

#include <gtest/gtest.h>

namespace cairn::json::value_test {
namespace {

Value must_read(std::string_view text) {
  auto value = read_value("JSON", text, {});
  EXPECT_TRUE(value) << value.error().message;
  return value ? std::move(value).value() : Value();
}

TEST(JsonValueTree, KeepsWhatItReads) {
  constexpr std::string_view kText =
      R"({"z":[1,-2,9007199254740993,18446744073709551616,1.50,1E2,-0.0],"a":{"":null},"t":true})";
  EXPECT_EQ(to_text(must_read(kText)), kText);
  const Value value = must_read(kText);
  EXPECT_EQ(value.members()[0].key, "z");
  const std::vector<Value>& numbers = value.find("z")->items();
  EXPECT_EQ(numbers[2].as_integer(), 9007199254740993);
  EXPECT_EQ(numbers[3].kind(), Value::Kind::real);
  EXPECT_EQ(numbers[3].as_real(), 0x1p64);
  EXPECT_FALSE(numbers[3].as_integer());
  EXPECT_EQ(numbers[5].as_integer(), 100);
  EXPECT_TRUE(value.is_true_at("t"));
  EXPECT_EQ(value.find("a")->find_set(""), nullptr);
  EXPECT_EQ(value.find("b"), nullptr);
  EXPECT_EQ(numbers[0].find("x"), nullptr);
}

TEST(JsonValueTree, RefusesWithItsName) {
  auto twice = read_value("tools", R"({"a":1,"a":2})", {.may_repeat_keys = true});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().message, "tools: line 1, column 8: the key \"a\" comes twice");
  auto large = read_value("tools", "[1e999]", {});
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().message,
            "tools: line 1, column 2: expected a number within the range of doubles, found 1e999");
}

TEST(JsonValueTree, IsPutTogether) {
  Value value;
  value["name"] = "x";
  value["list"].push_back(1);
  value["list"].push_back(Value());
  value["sizes"] = {{"small", size_t(3)}, {"flag", false}, {"share", 0.25}};
  value["seed"] = UINT64_MAX;
  value["empty"] = Value::array();
  value["none"] = Value::object();
  value["name"] = std::string_view("é\n");
  EXPECT_EQ(to_text(value),
            R"({"name":"é\n","list":[1,null],"sizes":{"small":3,"flag":false,"share":0.25},)"
            R"("seed":18446744073709551615,"empty":[],"none":{}})");
  EXPECT_EQ(to_text(value["sizes"], {.indent = 2}),
            "{\n  \"small\": 3,\n  \"flag\": false,\n  \"share\": 0.25\n}");
  EXPECT_EQ(value["list"].describe(), "an array of 2");
  EXPECT_EQ(value["list"].type_name(), "array");
}

}  // namespace
}  // namespace cairn::json::value_test
