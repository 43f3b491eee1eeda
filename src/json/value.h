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
  Value(T value) : kind_(Kind::boolean), boolean_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T value) { set_integer(value < 0, uint64_t(value)); }
  template <std::floating_point T>
  Value(T value) : kind_(Kind::real), real_(value) {}
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  template <class T>
  Value(const std::vector<T>& items) : kind_(Kind::array), items_(items.begin(), items.end()) {}
  // {{"name", 1}, {"other", "x"}}. REQUIRES: no key twice.
  Value(std::initializer_list<Member> members);
  static Value array();
  static Value object();
  // Of many members: faster than one after the other. REQUIRES: no key twice.
  static Value object(std::vector<Member> members);

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::null; }
  bool is_object() const { return kind_ == Kind::object; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_number() const { return kind_ == Kind::integer || kind_ == Kind::real; }

  std::optional<bool> as_boolean() const;
  std::optional<int64_t> as_integer() const;  // Also a real that is a whole number.
  std::optional<double> as_real() const;      // Any number.
  std::optional<std::string_view> as_text() const;
  // Empty where it is something else.
  const std::vector<Value>& items() const { return items_; }
  const std::vector<Member>& members() const { return members_; }

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
  void set_integer(bool is_negative, uint64_t bits);
  void make_index();

  Kind kind_ = Kind::null;
  bool boolean_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;  // Of a real: its spelling, where it has one.
  std::vector<Value> items_;
  std::vector<Member> members_;
  std::vector<uint32_t> index_;  // Members in the order of their keys; empty where few.
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
