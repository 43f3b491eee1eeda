// Names and sizes of the value types, and values in words.
#include "gguf/value.h"

#include <gtest/gtest.h>

namespace cairn::gguf::value_test {
namespace {

Value text_value(std::string_view text) {
  return {.type = ValueType::string,
          .element = ValueType::string,
          .count = 1,
          .bytes = std::as_bytes(std::span(text))};
}

TEST(Value, TypesHaveTheFormatsNumbersNamesAndSizes) {
  // The GGUF specification's enumeration.
  EXPECT_EQ(uint32_t(ValueType::u8), 0u);
  EXPECT_EQ(uint32_t(ValueType::f32), 6u);
  EXPECT_EQ(uint32_t(ValueType::string), 8u);
  EXPECT_EQ(uint32_t(ValueType::array), 9u);
  EXPECT_EQ(uint32_t(ValueType::f64), 12u);
  EXPECT_EQ(name_of(ValueType::boolean), "bool");
  EXPECT_EQ(name_of(ValueType::f64), "f64");
  EXPECT_EQ(size_of(ValueType::boolean), 1u);
  EXPECT_EQ(size_of(ValueType::i64), 8u);
  EXPECT_EQ(size_of(ValueType::string), 0u);
  size_t integer_count = 0;
  for (uint32_t type = 0; type < kValueTypeCount; ++type) {
    integer_count += is_integer(ValueType(type)) ? 1 : 0;
  }
  EXPECT_EQ(integer_count, 8u);
  EXPECT_FALSE(is_integer(ValueType::boolean));
  EXPECT_FALSE(is_integer(ValueType::array));
}

TEST(Value, ScalarsReadAsTheirSortOnly) {
  const Value text = text_value("7");
  EXPECT_FALSE(integer_in(text).has_value());
  EXPECT_FALSE(unsigned_in(text).has_value());
  EXPECT_FALSE(real_in(text).has_value());
  EXPECT_FALSE(boolean_in(text).has_value());
  EXPECT_EQ(string_in(text), "7");
  const int8_t minus = -1;
  const Value number{.type = ValueType::i8,
                     .element = ValueType::i8,
                     .count = 1,
                     .bytes = std::as_bytes(std::span(&minus, 1))};
  EXPECT_EQ(integer_in(number), -1);
  EXPECT_FALSE(unsigned_in(number).has_value());
  EXPECT_FALSE(real_in(number).has_value());
  EXPECT_FALSE(string_in(number).has_value());
}

TEST(Value, DescriptionsAreOneHarmlessLine) {
  EXPECT_EQ(describe(text_value("a\n\t\x1b[2J")), "string \"a\\n\\t\\x1b[2J\"");
  EXPECT_EQ(describe(text_value(std::string(50, 'x'))),
            fmt::format("string \"{}…\" (50 bytes)", std::string(40, 'x')));
  EXPECT_EQ(describe(text_value("")), "string \"\"");
}

}  // namespace
}  // namespace cairn::gguf::value_test
