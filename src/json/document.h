// JSON text as it was written: order of members, the spelling of numbers, and where each value
// begins, so that errors can say where. Knows no schemas. Thread-safe:
// constant once read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/reader.h"

namespace cairn::json {

class Document {
 public:
  enum class Kind : uint8_t { null, boolean, number, string, array, object };
  struct Member {
    std::string key;
    uint32_t value;
    size_t offset;  // Of the key.
  };
  struct Value {
    Kind kind = Kind::null;
    size_t offset = 0;
    size_t size = 0;                   // Bytes of its spelling.
    std::string text = {};             // A string's content.
    std::vector<uint32_t> items = {};  // An array's.
    std::vector<Member> members = {};  // An object's, in order.
  };

  // Errors: those of the reader.
  static Result<Document> read(std::string_view name, std::string_view source,
                               const Limits& limits);

  uint32_t root() const { return 0; }
  const Value& value(uint32_t number) const { return values_[number]; }
  std::string_view spelling(uint32_t number) const {
    return std::string_view(source_).substr(values_[number].offset, values_[number].size);
  }
  const std::string& source() const { return source_; }
  // A member of an object, or null; also of what is no object.
  const Member* find(uint32_t object, std::string_view key) const;
  bool is_true(uint32_t number) const { return spelling(number) == "true"; }

  // JSON text of the value without blanks.
  std::string compact(uint32_t number) const;

 private:
  std::string source_;
  std::vector<Value> values_;
};

}  // namespace cairn::json
