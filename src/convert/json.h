// JSON files of model directories as a tree: objects keep the order of the file, numbers too large
// for 64 bits become reals (the files have them where they mean "no limit"). Knows nothing of what
// the values mean. Trusts nothing: depth and size are limited, a key that comes twice is refused.
// Thread-safe: constant once parsed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::convert {

constexpr size_t kJsonBytesMax = size_t(256) << 20;
constexpr int kJsonDepthMax = 64;
// A value takes 128 bytes here, and two in a file are enough for one. The largest tokenizers have a
// quarter of this.
constexpr size_t kJsonValuesMax = size_t(1) << 23;

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, real, string, array, object };

  struct Member;

  Json() = default;
  static Json boolean(bool value);
  static Json integer(int64_t value);
  static Json real(double value);
  static Json text(std::string value);
  static Json array(std::vector<Json> items);
  static Result<Json> object(std::vector<Member> members);

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
  const std::vector<Json>& items() const { return items_; }
  const std::vector<Member>& members() const { return members_; }

  // Null where it is no object or has no such key.
  const Json* find(std::string_view key) const;
  // The same, and null where the value is null.
  const Json* find_set(std::string_view key) const;
  // The text under a key; nothing where it is not one.
  std::optional<std::string_view> text_at(std::string_view key) const;
  bool is_true_at(std::string_view key) const;

  // Adds a member or replaces its value. REQUIRES: an object.
  void set(std::string_view key, Json value);

  // For messages: a short form of the value.
  std::string describe() const;

 private:
  Kind kind_ = Kind::null;
  bool boolean_ = false;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
  std::vector<Json> items_;
  std::vector<Member> members_;
  std::vector<uint32_t> index_;  // Members in the order of their keys; empty where few.
};

struct Json::Member {
  std::string key;
  Json value;
};

// Errors: invalid_data (broken JSON; a key that comes twice), no_room (the limits above).
Result<Json> parse_json(std::string_view text);
// Errors name the file; not_found, io besides.
Result<Json> read_json_file(const std::string& path);

}  // namespace cairn::convert
