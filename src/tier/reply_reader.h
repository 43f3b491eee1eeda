// Replies of a Redis server (RESP2), from bytes as they come. What a tier may answer to the few
// commands that it is asked is a text, an error, a number, bytes or nothing; all else is refused,
// and so is what is longer than was asked for, before it is kept. Thread-safe: one object, one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace cairn::tier {

struct Reply {
  enum class Kind : uint8_t { text, error, number, bytes, nothing };

  Kind kind = Kind::nothing;
  std::string text;  // Of texts and errors.
  int64_t number = 0;
  std::vector<std::byte> bytes;

  bool operator==(const Reply&) const = default;
};

class ReplyReader {
 public:
  // Of the line of a text, an error, a number or a length.
  static constexpr size_t kLineBytesMax = 4096;

  // Begins another reply, whose bytes may be so many at most.
  void begin(size_t bytes_max);
  // Takes as many of the bytes as belong to this reply; how many. Errors: invalid_data; then
  // nothing that follows can be understood. REQUIRES: !has_ended().
  Result<size_t> take(std::span<const std::byte> bytes);
  bool has_ended() const { return stage_ == Stage::ended; }
  // REQUIRES: has_ended().
  Reply result() { return std::move(reply_); }

 private:
  enum class Stage : uint8_t { line, payload, end_of_payload, ended };
  Status take_line();
  Status take_length(std::string_view digits);

  Stage stage_ = Stage::ended;
  size_t bytes_max_ = 0, length_ = 0;
  std::string line_;  // Up to its end, and that of a payload.
  Reply reply_;
};

}  // namespace cairn::tier
