// The only parser of JSON text (RFC 8259): checks UTF-8 and surrogate pairs, and limits everything
// that untrusted text can make large. It is a pull parser: one event after another, in the order of
// the text, with an explicit stack instead of recursion. Numbers come as they are spelled. A byte
// order mark in front is skipped. Knows nothing of what the values mean. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cairn::json {

struct Limits {
  size_t bytes = size_t(32) << 20;
  size_t depth = 64;                // Containers in each other.
  size_t values = size_t(1) << 20;  // Of the whole text.
  size_t members = 65'536;          // Of one object.
  size_t string_bytes = SIZE_MAX;   // Of one string or key, its escapes undone.
  // A key that comes twice in an object is an error unless this is set.
  bool may_repeat_keys = false;
};

enum class Event : uint8_t {
  null,
  boolean,
  number,
  string,
  key,  // The value of this name is what comes next.
  begin_object,
  end_object,
  begin_array,
  end_array,
  end,  // Of the text.
};

class Reader {
 public:
  // `name`: what errors begin with. REQUIRES: name and text outlive the reader.
  Reader(std::string_view name, std::string_view text, const Limits& limits);

  // Errors, with name, line and column: invalid_data (this is no JSON, a key that comes twice);
  // no_room (over a limit). REQUIRES: neither an error nor `end` came before.
  Result<Event> next();

  // Of the last event.
  size_t offset() const { return offset_; }
  std::string_view spelling() const { return source_.substr(offset_, at_ - offset_); }
  bool boolean() const { return source_[offset_] == 't'; }
  // The content of a string or key. It may be moved away.
  std::string& text() { return text_; }

  // An error about the last event, in the form of the reader's own.
  Error refuse(ErrorCode code, std::string_view what) const;

 private:
  struct Open {
    bool is_object;
    size_t item_count = 0;
    size_t first_key = 0, first_byte = 0;  // In keys_ and key_bytes_.
  };
  struct Key {
    size_t begin, size;  // In key_bytes_.
    size_t offset;       // In the source.
  };

  char peek() const { return at_ < source_.size() ? source_[at_] : '\0'; }
  void skip_blanks();
  bool skip_digits();
  Error expected(std::string_view what) const;
  Error no_room(size_t offset, std::string_view what, size_t limit) const;
  Result<Event> next_in_container();
  Result<Event> next_key();
  Result<Event> close();
  Status check_keys();
  Result<Event> next_value();
  Status read_number();
  Status read_string();
  Status read_escape();

  std::string_view name_;
  std::string_view source_;
  Limits limits_;
  size_t at_ = 0, offset_ = 0;
  std::string text_;
  std::vector<Open> open_;
  std::vector<Key> keys_;  // Of all open objects, the innermost's last.
  std::string key_bytes_;
  size_t value_count_ = 0;
  bool has_begun_ = false, has_key_ = false;
};

// The number as 64 bits: nothing where it has a fraction, an exponent or more bits.
// REQUIRES of both: a number's spelling.
std::optional<int64_t> integer_of(std::string_view spelling);
// The nearest double; infinite where it is beyond all of them.
double real_of(std::string_view spelling);

// Whether all of `text` is JSON within the limits, and each number within the range of doubles.
bool is_json(std::string_view text, const Limits& limits);

// The content of a JSON string as it is written: quotes, backslashes and control characters
// escaped, all else as it is. Text may be escaped piece by piece.
void append_escaped(std::string_view text, std::string& out);
std::string escaped(std::string_view text);
std::string quoted(std::string_view text);

}  // namespace cairn::json
