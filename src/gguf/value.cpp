// Reading the bytes of a checked value, and saying in words what a value is.
#include "gguf/value.h"

#include <array>
#include <limits>

#include "base/check.h"
#include "base/text/byte_text.h"
#include "gguf/rules.h"

namespace cairn::gguf {
namespace {

struct TypeRow {
  std::string_view name;
  size_t bytes;
};

constexpr std::array<TypeRow, kValueTypeCount> kTypes{{
    {"u8", 1},
    {"i8", 1},
    {"u16", 2},
    {"i16", 2},
    {"u32", 4},
    {"i32", 4},
    {"f32", 4},
    {"bool", 1},
    {"string", 0},
    {"array", 0},
    {"u64", 8},
    {"i64", 8},
    {"f64", 8},
}};

constexpr size_t kShownCharacters = 40;

// REQUIRES: `type` is an integer or a boolean.
int64_t load_integer(ValueType type, const std::byte* at) {
  switch (type) {
    case ValueType::u8:
    case ValueType::boolean:
      return load<uint8_t>(at);
    case ValueType::i8:
      return load<int8_t>(at);
    case ValueType::u16:
      return load<uint16_t>(at);
    case ValueType::i16:
      return load<int16_t>(at);
    case ValueType::u32:
      return load<uint32_t>(at);
    case ValueType::i32:
      return load<int32_t>(at);
    case ValueType::i64:
      return load<int64_t>(at);
    default:
      break;
  }
  CHECK(type == ValueType::u64);
  const uint64_t value = load<uint64_t>(at);
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  return value > uint64_t(kLargest) ? kLargest : int64_t(value);
}

}  // namespace

std::string_view name_of(ValueType type) {
  CHECK(uint32_t(type) < kValueTypeCount);
  return kTypes[size_t(type)].name;
}

size_t size_of(ValueType type) {
  CHECK(uint32_t(type) < kValueTypeCount);
  return kTypes[size_t(type)].bytes;
}

bool is_integer(ValueType type) {
  return size_of(type) != 0 && type != ValueType::f32 && type != ValueType::f64 &&
         type != ValueType::boolean;
}

Strings::Strings(const Value& array) : bytes_(array.bytes), count_(size_t(array.count)) {
  CHECK(array.is_array() && array.element == ValueType::string);
}

Integers::Integers(const Value& array)
    : element_(array.element), bytes_(array.bytes.data()), count_(size_t(array.count)) {
  CHECK(array.is_array() && (is_integer(element_) || element_ == ValueType::boolean));
}

int64_t Integers::operator[](size_t index) const {
  DCHECK(index < count_);
  return load_integer(element_, bytes_ + index * size_of(element_));
}

Reals::Reals(const Value& array)
    : element_(array.element), bytes_(array.bytes.data()), count_(size_t(array.count)) {
  CHECK(array.is_array() && (element_ == ValueType::f32 || element_ == ValueType::f64));
}

float Reals::operator[](size_t index) const {
  DCHECK(index < count_);
  if (element_ == ValueType::f32) return load<float>(bytes_ + index * sizeof(float));
  return float(load<double>(bytes_ + index * sizeof(double)));
}

std::optional<int64_t> integer_in(const Value& value) {
  if (!is_integer(value.type)) return std::nullopt;
  if (value.type == ValueType::u64 && load<uint64_t>(value.bytes.data()) >> 63 != 0) {
    return std::nullopt;
  }
  return load_integer(value.type, value.bytes.data());
}

std::optional<uint64_t> unsigned_in(const Value& value) {
  if (value.type == ValueType::u64) return load<uint64_t>(value.bytes.data());
  const std::optional<int64_t> number = integer_in(value);
  if (!number || *number < 0) return std::nullopt;
  return uint64_t(*number);
}

std::optional<double> real_in(const Value& value) {
  if (value.type == ValueType::f32) return double(load<float>(value.bytes.data()));
  if (value.type == ValueType::f64) return load<double>(value.bytes.data());
  return std::nullopt;
}

std::optional<bool> boolean_in(const Value& value) {
  if (value.type != ValueType::boolean) return std::nullopt;
  return load<uint8_t>(value.bytes.data()) != 0;
}

std::optional<std::string_view> string_in(const Value& value) {
  if (value.type != ValueType::string) return std::nullopt;
  return as_text(value.bytes);
}

std::string describe(const Value& value) {
  const std::string_view name = name_of(value.type);
  if (value.is_array()) return fmt::format("array of {} {}", value.count, name_of(value.element));
  if (const auto text = string_in(value)) {
    const std::string line = shown(*text, kShownCharacters);
    if (text->size() <= kShownCharacters) return fmt::format("string \"{}\"", line);
    return fmt::format("string \"{}\" ({} bytes)", line, text->size());
  }
  if (const auto flag = boolean_in(value)) return fmt::format("bool {}", *flag);
  if (const auto number = real_in(value)) return fmt::format("{} {}", name, *number);
  if (const auto number = unsigned_in(value)) return fmt::format("{} {}", name, *number);
  return fmt::format("{} {}", name, *integer_in(value));
}

}  // namespace cairn::gguf
