// JSON as a tree: objects keep the order in which their members came. For reading and for writing.
// Numbers that are no 64-bit integers keep their spelling, so that they are written as they were
// read. Knows nothing of what the values mean. Thread-safe: constant once made.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "json/reader.h"

namespace cairn::json {

class Value {
 public:
  enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };

  struct Member;

  Value();
  template <std::same_as<bool> T>
  Value(T value) : content_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T value) { set_integer(value < 0, uint64_t(value)); }
  template <std::floating_point T>
  Value(T value) : content_(Real{.value = value, .spelling = {}}) {}
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  template <class T>
  Value(const std::vector<T>& items) : content_(std::vector<Value>(items.begin(), items.end())) {}
  // {{"name", 1}, {"other", "x"}}. REQUIRES: no key twice.
  Value(std::initializer_list<Member> members);
  static Value array();
  static Value object();
  // Of many members: faster than one after the other. REQUIRES: no key twice.
  static Value object(std::vector<Member> members);

  Kind kind() const { return Kind(content_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_object() const { return kind() == Kind::object; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::real; }

  std::optional<bool> as_boolean() const;
  std::optional<int64_t> as_integer() const;  // Also a real that is a whole number.
  std::optional<double> as_real() const;      // Any number.
  std::optional<std::string_view> as_text() const;
  // Empty where it is something else.
  const std::vector<Value>& items() const;
  const std::vector<Member>& members() const;

  // Null where it is no object or has no such key.
  const Value* find(std::string_view key) const;
  // The same, and null where the value is null.
  const Value* find_set(std::string_view key) const;
  // The text under a key; nothing where it is not one.
  std::optional<std::string_view> text_at(std::string_view key) const;
  bool is_true_at(std::string_view key) const;

  // The member of this name, made where it is missing. REQUIRES: an object, or null, which becomes
  // one.
  Value& operator[](std::string_view key);
  void set(std::string_view key, Value value);
  // REQUIRES: an array, or null, which becomes one.
  void push_back(Value value);

  // For messages: "null", "boolean", "number", "string", "array" or "object".
  std::string_view type_name() const;
  // For messages: a short form of the value.
  std::string describe() const;

 private:
  friend class ValueBuilder;
  friend class Writer;
  struct Real {
    double value;
    std::string spelling;  // As it was read; empty where it was not.
  };
  // What copies and destroys members is where they are complete.
  struct Object {
    Object();
    Object(const Object& other);
    Object(Object&& other) noexcept;
    Object& operator=(const Object& other);
    Object& operator=(Object&& other) noexcept;
    ~Object();

    std::vector<Member> members;
    std::vector<uint32_t> index;  // Members in the order of their keys; empty where few.

    void make_index();
    const Value* find(std::string_view key) const;
  };

  void set_integer(bool is_negative, uint64_t bits);

  // In the order of Kind.
  std::variant<std::monostate, bool, int64_t, Real, std::string, std::vector<Value>, Object>
      content_;
};

struct Value::Member {
  std::string key;
  Value value;
};

// Keys may not repeat, whatever the limits say. Errors: those of the reader; invalid_data for a
// number beyond the range of doubles. All begin with the name.
Result<Value> read_value(std::string_view name, std::string_view text, const Limits& limits);

struct TextStyle {
  int indent = -1;        // Spaces for each level, members and items on lines of their own.
  bool is_ascii = false;  // All other characters as \u escapes.
};
// JSON text of the value. Bytes that are no UTF-8 become U+FFFD; reals that are not finite, null.
std::string to_text(const Value& value, const TextStyle& style = {});

}  // namespace cairn::json
