// How far two texts agree, and two timelines. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/ids.h"
#include "memory/sequence.h"

namespace cairn::memory {

// The number of tokens at which two texts begin alike. Whole runs are compared as bytes, which is
// many times faster than token by token.
inline int32_t shared_tokens(std::span<const Token> a, std::span<const Token> b) {
  constexpr size_t kRun = 256;
  const size_t end = std::min(a.size(), b.size());
  size_t index = 0;
  while (index + kRun <= end &&
         std::memcmp(a.data() + index, b.data() + index, kRun * sizeof(Token)) == 0) {
    index += kRun;
  }
  while (index < end && a[index] == b[index]) ++index;
  return int32_t(index);
}

// What one can use of the other: nothing where another variant has made it.
inline int32_t shared_tokens(const Sequence& a, const Sequence& b) {
  return a.variant() == b.variant() ? shared_tokens(a.tokens(), b.tokens()) : 0;
}

}  // namespace cairn::memory
