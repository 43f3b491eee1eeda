// The metadata of a file: keys with values, in the order of the file, found by key.
// Typed access accepts what files in the wild mix: any integer type where the value fits, f32 or
// f64 for a real. Everything else of another type is an error that names the key, the expected
// type and what was found. Knows nothing of what a key means (gguf/metadata.h).
// Thread-safe once built: constant data. Views live as long as the file's bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/name_index.h"
#include "gguf/value.h"

namespace cairn::gguf {

struct Field {
  std::string_view key;
  Value value;
};

class Fields {
 public:
  Fields() = default;
  explicit Fields(std::vector<Field> fields);

  std::span<const Field> all() const { return fields_; }
  // Null if the key is not there. Of equal keys (only a file opened for inspection can have them)
  // the first.
  const Value* find(std::string_view key) const;

  // T is one of: bool, int32_t, uint32_t, int64_t, uint64_t, float, std::string_view, Strings,
  // Integers (of integers or booleans), Reals.
  // Errors: not_found (no such key), invalid_data (another type, or a value that T cannot hold).
  template <class T>
  Result<T> get(std::string_view key) const;

  // The same, with a value for an absent key. A key of the wrong type is still an error.
  template <class T>
  Result<T> get_or(std::string_view key, T fallback) const {
    return find(key) == nullptr ? Result<T>(fallback) : get<T>(key);
  }

  // The key that stands twice, if one does; null if none.
  const std::string_view* repeated_key() const;

 private:
  std::vector<Field> fields_;
  NameIndex index_;
};

// The same conversion for a value at hand; `key` only names it in errors.
template <class T>
Result<T> convert(std::string_view key, const Value& value);

}  // namespace cairn::gguf
