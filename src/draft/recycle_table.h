// What followed each token when it was last computed or said (after Token Recycling: Luo et al.,
// 2408.08696, whose lists of successors make trees; a chain needs the best one alone). Knows no
// sequences. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace cairn::draft {

class RecycleTable {
 public:
  struct Successor {
    Token token = Token(-1);  // Less than 0: nothing is known.
    int32_t confirmed = 0;    // By how many more it was right than wrong of late, at most 7.
  };

  // Behind `token`, `next` was said, or was the likeliest in a row that was computed. Tokens that
  // are none teach nothing.
  void learn(Token token, Token next);
  Successor best(Token token) const;

  void forget() { successors_ = {}; }
  // Grows to the largest token that was learned, by 8 bytes each.
  size_t bytes() const { return sizeof(*this) + successors_.capacity() * sizeof(Successor); }

 private:
  std::vector<Successor> successors_;
};

}  // namespace cairn::draft
