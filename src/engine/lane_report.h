// What a lane says and keeps of its items: what reading a prompt takes, before it is read and
// behind it, and the drafts of an answer. Thread-safe: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace cairn {

// The resources of a step that computes all of a lane's pending tokens.
struct LaneDemand {
  int32_t rows = 0;         // Tokens to compute.
  int32_t outputs = 0;      // Rows of logits.
  int32_t replay_rows = 0;  // Recurrence steps before them; no weights are read for these.
  size_t new_bytes = 0;     // At most: pages and states taken for them.
};

// Drafts, and how far their walk has come.
struct LaneDrafts {
  std::vector<Token> next;        // For the next item.
  std::vector<Token> item;        // The last item's tokens; empty where it had no drafts.
  std::span<const Token> walked;  // Those of its drafts whose rows are there, while they are.
  int32_t walked_rows = 0;        // Accepted, and not part of the sequence yet.
};

}  // namespace cairn
