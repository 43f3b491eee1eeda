// Typed access to metadata: what is accepted, and what the errors say. Also the names that it is
// found by (gguf/name_index.h).
#include "gguf/fields.h"

#include <gtest/gtest.h>

#include "tests/gguf/raw_file.h"

namespace cairn::gguf::raw::fields_test {
namespace {

class FieldsTest : public ::testing::Test {
 protected:
  // Opens a file with these fields; the bytes live as long as the test.
  const Fields& open(std::vector<Bytes> fields) {
    bytes_ = RawFile{.fields = std::move(fields)}.build();
    auto file = File::from_bytes(bytes_, "x");
    EXPECT_TRUE(file) << file.error().message;
    file_.emplace(std::move(file).value());
    return file_->fields();
  }

  template <class T>
  static std::string error(const Fields& fields, std::string_view key) {
    auto value = fields.get<T>(key);
    return value ? "found" : value.error().message;
  }

 private:
  std::vector<std::byte> bytes_;
  std::optional<File> file_;
};

TEST_F(FieldsTest, AnIntegerOfAnyWidthIsAcceptedWhereItFits) {
  const Fields& fields = open({number_field("u8", ValueType::u8, uint8_t(7)),
                               number_field("i8", ValueType::i8, int8_t(-7)),
                               number_field("u16", ValueType::u16, uint16_t(7)),
                               number_field("i16", ValueType::i16, int16_t(7)),
                               number_field("u32", ValueType::u32, UINT32_MAX),
                               number_field("i32", ValueType::i32, INT32_MIN),
                               number_field("u64", ValueType::u64, UINT64_MAX),
                               number_field("i64", ValueType::i64, INT64_MIN)});
  for (const char* key : {"u8", "u16", "i16"}) {
    auto as_u32 = fields.get<uint32_t>(key);
    auto as_i64 = fields.get<int64_t>(key);
    ASSERT_TRUE(as_u32 && as_i64) << key;
    EXPECT_EQ(*as_u32, 7u);
    EXPECT_EQ(*as_i64, 7);
  }
  EXPECT_EQ(error<uint32_t>(fields, "i8"),
            "i8: expected an integer of 32 bits, not negative, found i8 -7");
  EXPECT_EQ(error<int32_t>(fields, "u32"),
            "u32: expected an integer of 32 bits with sign, found u32 4294967295");
  EXPECT_EQ(error<uint64_t>(fields, "i32"),
            "i32: expected an integer of 64 bits, not negative, found i32 -2147483648");
  EXPECT_EQ(error<int64_t>(fields, "u64"),
            "u64: expected an integer of 64 bits with sign, found u64 18446744073709551615");
  auto largest = fields.get<uint64_t>("u64");
  auto smallest = fields.get<int64_t>("i64");
  ASSERT_TRUE(largest && smallest);
  EXPECT_EQ(*largest, UINT64_MAX);
  EXPECT_EQ(*smallest, INT64_MIN);
}

TEST_F(FieldsTest, ErrorsNameTheKeyTheExpectedTypeAndWhatWasFound) {
  const Fields& fields =
      open({text_field("text", "some words that are longer than forty characters, by far"),
            number_field("real", ValueType::f64, 0.5),
            number_field("flag", ValueType::boolean, uint8_t(1)),
            array_field<int32_t>("array", ValueType::i32, {1, 2, 3})});
  EXPECT_EQ(
      error<uint32_t>(fields, "text"),
      "text: expected an integer of 32 bits, not negative, found string \"some words that are "
      "longer than forty ch…\" (56 bytes)");
  EXPECT_EQ(error<bool>(fields, "real"), "real: expected bool, found f64 0.5");
  EXPECT_EQ(error<float>(fields, "flag"), "flag: expected f32, found bool true");
  EXPECT_EQ(error<std::string_view>(fields, "array"),
            "array: expected string, found array of 3 i32");
  EXPECT_EQ(error<Strings>(fields, "array"),
            "array: expected an array of strings, found array of 3 i32");
  EXPECT_EQ(error<Reals>(fields, "array"), "array: expected an array of f32, found array of 3 i32");
  EXPECT_EQ(error<Integers>(fields, "real"), "real: expected an array of integers, found f64 0.5");
  EXPECT_EQ(error<bool>(fields, "absent"), "absent: expected in the metadata, found nothing");
  auto absent = fields.get<bool>("absent");
  EXPECT_EQ(absent.error().code, ErrorCode::not_found);
  auto wrong = fields.get<bool>("real");
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_data);
}

TEST_F(FieldsTest, AFallbackStandsForAnAbsentKeyOnly) {
  const Fields& fields = open({number_field("real", ValueType::f32, 0.5f)});
  auto absent = fields.get_or<float>("absent", 2.0f);
  auto present = fields.get_or<float>("real", 2.0f);
  ASSERT_TRUE(absent && present);
  EXPECT_EQ(*absent, 2.0f);
  EXPECT_EQ(*present, 0.5f);
  EXPECT_FALSE(fields.get_or<bool>("real", true));
}

TEST_F(FieldsTest, ArraysAreViews) {
  Bytes strings;
  strings.text("strings").put(uint32_t(ValueType::array)).put(uint32_t(ValueType::string));
  strings.put(uint64_t(3)).text("").text("one").text(std::string_view("t\0wo", 4));
  const Fields& fields = open({strings, array_field<uint8_t>("flags", ValueType::boolean, {1, 0}),
                               array_field<uint64_t>("wide", ValueType::u64, {1, UINT64_MAX}),
                               array_field<int16_t>("narrow", ValueType::i16, {-1, 300}),
                               array_field<float>("reals", ValueType::f32, {0.5f, -1.0f}),
                               array_field<double>("doubles", ValueType::f64, {0.1})});
  auto texts = fields.get<Strings>("strings");
  ASSERT_TRUE(texts);
  EXPECT_EQ(texts->size(), 3u);
  EXPECT_EQ(std::vector<std::string_view>(texts->begin(), texts->end()),
            (std::vector<std::string_view>{"", "one", std::string_view("t\0wo", 4)}));
  auto flags = fields.get<Integers>("flags");
  auto wide = fields.get<Integers>("wide");
  auto narrow = fields.get<Integers>("narrow");
  auto reals = fields.get<Reals>("reals");
  auto doubles = fields.get<Reals>("doubles");
  ASSERT_TRUE(flags && wide && narrow && reals && doubles);
  EXPECT_EQ((*flags)[0], 1);
  EXPECT_EQ((*wide)[1], INT64_MAX);
  EXPECT_EQ((*narrow)[0], -1);
  EXPECT_EQ((*narrow)[1], 300);
  EXPECT_EQ((*reals)[1], -1.0f);
  EXPECT_EQ((*doubles)[0], 0.1f);
}

TEST_F(FieldsTest, EveryKeyIsFoundAndOrderIsTheFiles) {
  std::vector<Bytes> raw;
  for (uint32_t field = 0; field < 300; ++field) {
    raw.push_back(number_field(fmt::format("key.{}", field * 7919 % 1000), ValueType::u32, field));
  }
  const Fields& fields = open(std::move(raw));
  ASSERT_EQ(fields.all().size(), 300u);
  for (uint32_t field = 0; field < 300; ++field) {
    EXPECT_EQ(fields.find(fields.all()[field].key), &fields.all()[field].value);
    auto value = fields.get<uint32_t>(fmt::format("key.{}", field * 7919 % 1000));
    ASSERT_TRUE(value);
    EXPECT_EQ(*value, field);
  }
  EXPECT_EQ(fields.find("key."), nullptr);
  EXPECT_EQ(fields.find(""), nullptr);
  EXPECT_EQ(fields.repeated_key(), nullptr);
}

TEST(NameIndex, FindsTheFirstOfEqualNames) {
  const std::vector<std::string_view> names = {"b", "a", "b", "c", "a"};
  const auto name_of = [&](uint32_t at) { return names[at]; };
  const NameIndex index(names.size(), name_of);
  EXPECT_EQ(index.find("a", name_of), 1u);
  EXPECT_EQ(index.find("b", name_of), 0u);
  EXPECT_EQ(index.find("d", name_of), kNoIndex);
  EXPECT_EQ(index.repeated(name_of), 4u);
}

}  // namespace
}  // namespace cairn::gguf::raw::fields_test
