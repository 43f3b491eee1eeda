// One successor for each token; who is contradicted as often as confirmed goes.
#include "draft/recycle_table.h"

#include <algorithm>

namespace cairn::draft {

namespace {

// No vocabulary is larger; what claims to be teaches nothing.
constexpr int32_t kTokensMax = 1 << 22;
constexpr int32_t kConfirmedMost = 7;

}  // namespace

void RecycleTable::learn(Token token, Token next) {
  const int32_t id = index_of(token);
  if (id < 0 || id >= kTokensMax || index_of(next) < 0) return;
  if (size_t(id) >= successors_.size()) successors_.resize(size_t(id) + 1);
  Successor& known = successors_[size_t(id)];
  if (known.token == next) {
    known.confirmed = std::min(known.confirmed + 1, kConfirmedMost);
  } else if (known.confirmed > 0) {
    --known.confirmed;
  } else {
    known.token = next;
  }
}

RecycleTable::Successor RecycleTable::best(Token token) const {
  const int32_t id = index_of(token);
  if (id < 0 || size_t(id) >= successors_.size()) return {};
  return successors_[size_t(id)];
}

}  // namespace cairn::draft
