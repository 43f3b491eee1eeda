// The JSON of model directories: order, numbers beyond 64 bits, and what is refused.
#include "convert/json.h"

#include <gtest/gtest.h>

#include <string>

namespace cairn::convert::json_test {
namespace {

TEST(Json, KeepsTheOrderOfKeysAndFindsThem) {
  std::string text = "{";
  for (int i = 99; i >= 0; --i) text += fmt::format("\"key{}\": {},", i, i);
  text += "\"last\": null}";
  Result<Json> json = parse_json(text);
  ASSERT_TRUE(json) << json.error().message;
  ASSERT_EQ(json->members().size(), 101u);
  EXPECT_EQ(json->members()[0].key, "key99");
  EXPECT_EQ(json->members()[99].key, "key0");
  for (int i = 0; i < 100; ++i) {
    const Json* value = json->find(fmt::format("key{}", i));
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(value->as_integer(), i);
  }
  EXPECT_EQ(json->find("key100"), nullptr);
  EXPECT_NE(json->find("last"), nullptr);
  EXPECT_EQ(json->find_set("last"), nullptr);
  json->set("key55", "other");
  json->set("new", true);
  EXPECT_EQ(json->text_at("key55"), "other");
  EXPECT_TRUE(json->is_true_at("new"));
  EXPECT_EQ(json->find("key54")->as_integer(), 54);
}

TEST(Json, ReadsNumbersBeyond64Bits) {
  // What tokenizer_config.json writes for "no limit".
  Result<Json> json = parse_json(R"({"model_max_length": 1000000000000000019884624838656})");
  ASSERT_TRUE(json) << json.error().message;
  const Json* value = json->find("model_max_length");
  EXPECT_EQ(value->kind(), Json::Kind::real);
  EXPECT_EQ(value->as_real(), 1e30);
  EXPECT_FALSE(value->as_integer());
}

TEST(Json, RefusesWhatIsBroken) {
  for (const char* text :
       {"", "{", R"({"a": 1,})", R"({"a": 1, "a": 2})", "[1e999]", "{} {}", "\"\\ud800\"", "nul"}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  const Result<Json> refused = parse_json(deep);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::no_room);
}

}  // namespace
}  // namespace cairn::convert::json_test
