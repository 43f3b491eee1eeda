// Text with the origin of every byte: the template (trusted) or the user. The
// tokenizer recognises special tokens only in trusted text (docs/chat-templates.md).
// Invariants: (1) switches_ ascends strictly and lies in (0, size). (2) A text of one origin, by
// far the most common, holds no list at all. Value type; not shared between threads while changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cairn::jinja {

// A stretch of one origin; bytes [begin, end) of the text.
struct OriginSpan {
  size_t begin;
  size_t end;
  bool trusted;

  friend bool operator==(const OriginSpan&, const OriginSpan&) = default;
};

class MarkedText {
 public:
  MarkedText() = default;
  MarkedText(std::string bytes, bool trusted) : bytes_(std::move(bytes)), first_(trusted) {}

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }

  // True where no byte is the user's; an empty text is trusted.
  bool is_trusted() const { return bytes_.empty() || (first_ && switches_.empty()); }
  bool is_trusted_at(size_t offset) const;

  void reserve(size_t size) { bytes_.reserve(size); }
  void append(std::string_view bytes, bool trusted);
  void append(const MarkedText& other) { append(other, 0, other.size()); }
  // Bytes [begin, end) of the other text, with their marks.
  void append(const MarkedText& other, size_t begin, size_t end);

  // Changes every byte in place; the marks stay.
  template <class Change>
  void change_bytes(Change change) {
    for (char& byte : bytes_) byte = change(byte);
  }

  MarkedText slice(size_t begin, size_t end) const;
  // Neighbouring spans differ in origin; together they cover the text.
  std::vector<OriginSpan> spans() const;

  std::string take_bytes() && { return std::move(bytes_); }
  // What the marks cost beside the bytes.
  size_t mark_bytes() const { return switches_.capacity() * sizeof(uint32_t); }

 private:
  friend class OriginWalk;
  void go_on_as(bool trusted);

  std::string bytes_;
  bool first_ = true;               // The origin of the first byte.
  std::vector<uint32_t> switches_;  // Offsets at which the origin changes.
};

// The origins of bytes that are asked for in ascending order: each costs next to nothing, however
// often the origin changes. The text must outlive it and not change.
class OriginWalk {
 public:
  explicit OriginWalk(const MarkedText& text) : text_(text) {}
  bool is_trusted_at(size_t offset);

 private:
  const MarkedText& text_;
  size_t next_ = 0;  // The first switch behind the last offset.
};

}  // namespace cairn::jinja
