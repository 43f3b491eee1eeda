// The length of the common prefix of two token lists, and of two sequences. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/ids.h"
#include "memory/sequence.h"

namespace cairn::memory {

// The length of the common prefix. Whole blocks are compared as bytes, which is many times faster
// than token by token.
inline int32_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
  constexpr size_t kBlock = 256;
  const size_t end = std::min(a.size(), b.size());
  size_t index = 0;
  while (index + kBlock <= end &&
         std::memcmp(a.data() + index, b.data() + index, kBlock * sizeof(Token)) == 0) {
    index += kBlock;
  }
  while (index < end && a[index] == b[index]) ++index;
  return int32_t(index);
}

// The prefix that one can take from the other: nothing if another variant computed it.
inline int32_t common_prefix(const Sequence& a, const Sequence& b) {
  return a.variant() == b.variant() ? common_prefix(a.tokens(), b.tokens()) : 0;
}

}  // namespace cairn::memory
