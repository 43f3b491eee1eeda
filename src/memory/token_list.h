// The tokens of a sequence. Copies share one buffer: appending at the end of what the buffer holds
// writes in place, which no other list sees; appending anywhere else copies the tokens into a new
// buffer. Spans stay valid until the list that gave them changes. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace cairn::memory {

class TokenList {
 public:
  TokenList() = default;
  // `capacity`: appending up to so many allocates nothing until copies part.
  explicit TokenList(size_t capacity)
      : buffer_(std::make_shared<std::vector<Token>>()), capacity_(capacity) {
    buffer_->reserve(capacity);
  }

  int32_t size() const { return size_; }
  std::span<const Token> view() const {
    return buffer_ == nullptr ? std::span<const Token>() : std::span(*buffer_).first(size_t(size_));
  }

  void truncate(int32_t size) { size_ = size; }
  void append(std::span<const Token> tokens);

 private:
  std::shared_ptr<std::vector<Token>> buffer_;  // May be longer than this list.
  int32_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace cairn::memory
