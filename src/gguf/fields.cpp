// Finding keys, and turning a value into the type that is asked for.
#include "gguf/fields.h"

#include <utility>

#include "gguf/rules.h"

namespace cairn::gguf {
namespace {

Error mismatch(std::string_view key, std::string_view expected, const Value& value) {
  return fail(ErrorCode::invalid_data, "{}: expected {}, found {}", shown(key), expected,
              describe(value));
}

template <class T>
Result<T> or_mismatch(std::string_view key, std::string_view expected, const Value& value,
                      const std::optional<T>& found) {
  if (found) return *found;
  return mismatch(key, expected, value);
}

bool is_array_of_integers(const Value& value) {
  return value.is_array() && (is_integer(value.element) || value.element == ValueType::boolean);
}

}  // namespace

template <>
Result<bool> convert(std::string_view key, const Value& value) {
  return or_mismatch(key, "bool", value, boolean_in(value));
}

template <>
Result<int64_t> convert(std::string_view key, const Value& value) {
  return or_mismatch(key, "an integer of 64 bits with sign", value, integer_in(value));
}

template <>
Result<uint64_t> convert(std::string_view key, const Value& value) {
  return or_mismatch(key, "an integer of 64 bits, not negative", value, unsigned_in(value));
}

template <>
Result<int32_t> convert(std::string_view key, const Value& value) {
  const std::optional<int64_t> number = integer_in(value);
  if (number && std::in_range<int32_t>(*number)) return int32_t(*number);
  return mismatch(key, "an integer of 32 bits with sign", value);
}

template <>
Result<uint32_t> convert(std::string_view key, const Value& value) {
  const std::optional<int64_t> number = integer_in(value);
  if (number && std::in_range<uint32_t>(*number)) return uint32_t(*number);
  return mismatch(key, "an integer of 32 bits, not negative", value);
}

template <>
Result<float> convert(std::string_view key, const Value& value) {
  const std::optional<double> number = real_in(value);
  if (number) return float(*number);
  return mismatch(key, "f32", value);
}

template <>
Result<std::string_view> convert(std::string_view key, const Value& value) {
  return or_mismatch(key, "string", value, string_in(value));
}

template <>
Result<Strings> convert(std::string_view key, const Value& value) {
  if (value.is_array() && value.element == ValueType::string) return Strings(value);
  return mismatch(key, "an array of strings", value);
}

template <>
Result<Integers> convert(std::string_view key, const Value& value) {
  if (is_array_of_integers(value)) return Integers(value);
  return mismatch(key, "an array of integers", value);
}

template <>
Result<Reals> convert(std::string_view key, const Value& value) {
  if (value.is_array() && (value.element == ValueType::f32 || value.element == ValueType::f64)) {
    return Reals(value);
  }
  return mismatch(key, "an array of f32", value);
}

Fields::Fields(std::vector<Field> fields)
    : fields_(std::move(fields)),
      index_(fields_.size(), [&](uint32_t field) { return fields_[field].key; }) {}

const Value* Fields::find(std::string_view key) const {
  const uint32_t field = index_.find(key, [&](uint32_t at) { return fields_[at].key; });
  return field == kNoIndex ? nullptr : &fields_[field].value;
}

const std::string_view* Fields::repeated_key() const {
  const uint32_t field = index_.repeated([&](uint32_t at) { return fields_[at].key; });
  return field == kNoIndex ? nullptr : &fields_[field].key;
}

template <class T>
Result<T> Fields::get(std::string_view key) const {
  if (const Value* value = find(key)) return convert<T>(key, *value);
  return fail(ErrorCode::not_found, "{}: expected in the metadata, found nothing", shown(key));
}

template Result<bool> Fields::get(std::string_view) const;
template Result<int32_t> Fields::get(std::string_view) const;
template Result<uint32_t> Fields::get(std::string_view) const;
template Result<int64_t> Fields::get(std::string_view) const;
template Result<uint64_t> Fields::get(std::string_view) const;
template Result<float> Fields::get(std::string_view) const;
template Result<std::string_view> Fields::get(std::string_view) const;
template Result<Strings> Fields::get(std::string_view) const;
template Result<Integers> Fields::get(std::string_view) const;
template Result<Reals> Fields::get(std::string_view) const;

}  // namespace cairn::gguf
