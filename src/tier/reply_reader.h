// Replies of a Redis server (RESP2), from bytes as they come. What a tier may answer to the few
// commands that it is asked is a text, an error, a number, bytes or nothing, and a list of these
// where one was asked for; all else is refused, and so is what is longer than was asked for, before
// it is kept. Thread-safe: one object, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace cairn::tier {

struct Reply {
  enum class Kind : uint8_t {
    text,
    error,
    number,
    bytes,
    nothing,
    list,
    lost,  // Nobody sent it (tier/servers.h).
  };

  Kind kind = Kind::nothing;
  std::string text;  // Of texts and errors, and why it is lost.
  int64_t number = 0;
  std::vector<std::byte> bytes;
  std::vector<Reply> items;

  bool operator==(const Reply&) const = default;
};

// Of a reply that is not what was asked for: what the server says.
Error refusal(const Reply& reply);

class ReplyReader {
 public:
  // Of the line of a text, an error, a number or a length.
  static constexpr size_t kLineBytesMax = 4096;
  static constexpr size_t kDepthMax = 4;  // Of lists in lists.
  // Of all bytes, texts and errors in the lists of a reply together.
  static constexpr size_t kListBytesMax = size_t(16) << 20;

  // Begins another reply. Bytes may be so many at most, in a list each text and error too, and the
  // items of all its lists together so many; zero: a list is refused.
  void begin(size_t bytes_max, size_t items_max = 0);
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
  Status take_count(std::string_view digits);
  Status take_room(uint64_t bytes);
  void end_one();

  // A list of which items are still to come.
  struct OpenList {
    Reply reply;
    size_t left = 0;
  };

  Stage stage_ = Stage::ended;
  bool has_lists_ = false;  // They are wanted.
  size_t bytes_max_ = 0, length_ = 0;
  size_t items_left_ = 0, list_bytes_left_ = 0;
  std::string line_;  // Up to its end, and that of a payload.
  Reply reply_;
  std::vector<OpenList> lists_;  // Each in the one before it.
};

}  // namespace cairn::tier
