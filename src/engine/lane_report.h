// What a lane says and keeps of its items: what reading a prompt takes, before it is read and
// behind it, and the drafts of an answer. Thread-safe: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "memory/memory.h"

namespace cairn {

struct PromptReport {
  int32_t prompt_tokens = 0;    // Without left_out_tokens.
  int32_t reused_tokens = 0;    // Found in the cache.
  int32_t computed_tokens = 0;  // prompt_tokens - reused_tokens.
  int32_t left_out_tokens = 0;  // Dropped by the context policy, after the first kept ones.
  int32_t left_out_turns = 0;   // Whole turns among them.
  bool from_cache = false;      // An entry of the prefix cache had a longer prefix.
  bool from_store = false;      // It was read from the disk into the cache.
  // Where the sequence was resumed, and what limited it: as memory::ResumePlan says, or "adapters"
  // if only other adapters had a longer prefix, or "outputs" if all its logits are read.
  memory::ResumePlan plan;
};

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
