// Metadata values as views into the file: a type, and the bytes that hold it. Nothing is copied.
// Invariant: a Value was checked by the reader: its bytes are there, strings end inside them,
// arrays hold exactly `count` elements. Views live as long as the file's bytes.
// Thread-safe: constant data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "gguf/cursor.h"

namespace cairn::gguf {

// The numbers of the format.
enum class ValueType : uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64,
};

constexpr uint32_t kValueTypeCount = 13;

std::string_view name_of(ValueType type);  // "u8", …, "bool", "string", "array".
bool is_integer(ValueType type);
// Bytes of one value; 0 for strings and arrays, whose size is in the file.
size_t size_of(ValueType type);

struct Value {
  ValueType type;
  ValueType element;  // Of an array; otherwise the type again.
  uint64_t count;     // Elements of an array; otherwise 1.
  // A number's bytes; a string's text; an array's elements as they lie in the file (strings with
  // their lengths).
  std::span<const std::byte> bytes;

  bool is_array() const { return type == ValueType::array; }
};

// The strings of an array, one after another: they have no index in the file.
class Strings {
 public:
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const std::string_view*;
    using reference = std::string_view;

    Iterator() = default;
    explicit Iterator(const std::byte* at) : at_(at) {}
    std::string_view operator*() const {
      return {reinterpret_cast<const char*>(at_) + sizeof(uint64_t), size_t(load<uint64_t>(at_))};
    }
    Iterator& operator++() {
      at_ += sizeof(uint64_t) + size_t(load<uint64_t>(at_));
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const std::byte* at_ = nullptr;
  };

  Strings() = default;
  // REQUIRES: an array of strings.
  explicit Strings(const Value& array);

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  Iterator begin() const { return Iterator(bytes_.data()); }
  Iterator end() const { return Iterator(bytes_.data() + bytes_.size()); }

 private:
  std::span<const std::byte> bytes_;
  size_t count_ = 0;
};

// The numbers of an array, whatever their width in the file; booleans are 0 and 1.
class Integers {
 public:
  Integers() = default;
  // REQUIRES: an array of integers or booleans.
  explicit Integers(const Value& array);

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  // A u64 above the largest i64 reads as that.
  int64_t operator[](size_t index) const;

 private:
  ValueType element_ = ValueType::i32;
  const std::byte* bytes_ = nullptr;
  size_t count_ = 0;
};

// The same for f32 and f64 (rounded to f32).
class Reals {
 public:
  Reals() = default;
  // REQUIRES: an array of f32 or f64.
  explicit Reals(const Value& array);

  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  float operator[](size_t index) const;

 private:
  ValueType element_ = ValueType::f32;
  const std::byte* bytes_ = nullptr;
  size_t count_ = 0;
};

// A scalar as a number, if it is one of that sort: integers of any width (u64 above the largest
// i64 gives nothing), f32 and f64, booleans, strings.
std::optional<int64_t> integer_in(const Value& value);
std::optional<uint64_t> unsigned_in(const Value& value);
std::optional<double> real_in(const Value& value);
std::optional<bool> boolean_in(const Value& value);
std::optional<std::string_view> string_in(const Value& value);

// For error messages: `u32 7`, `string "abc"`, `array of 32 i32`. Control characters are visible,
// long texts are cut.
std::string describe(const Value& value);

}  // namespace cairn::gguf
