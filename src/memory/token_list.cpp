// Appending in place or to a copy.
#include "memory/token_list.h"

#include <algorithm>

namespace cairn::memory {

void TokenList::append(std::span<const Token> tokens) {
  const size_t size = size_t(size_);
  const bool is_alone = buffer_.use_count() == 1;
  // A buffer that others read must not move.
  const bool fits = buffer_->capacity() - size >= tokens.size();
  if (!is_alone && (buffer_->size() != size || !fits)) {
    auto buffer = std::make_shared<std::vector<Token>>();
    buffer->reserve(std::max(capacity_, size + tokens.size()));
    buffer->assign(buffer_->begin(), buffer_->begin() + size_);
    buffer_ = std::move(buffer);
  }
  buffer_->resize(size);
  buffer_->insert(buffer_->end(), tokens.begin(), tokens.end());
  size_ += int32_t(tokens.size());
}

}  // namespace cairn::memory
