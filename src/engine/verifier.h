// Checks on a loaded model that the cache changes no bit: random programs of what conversations do
// to the memory, by themselves and through generators and the prefix cache, and after each
// operation the next logits are compared, bit for bit, with those of a new sequence that reads the
// same tokens at once. Long programs fork one long text, so that windows, chunks and the runs of
// attention are crossed. Uses the engine's memory and releases all of it, the prefix cache's too.
// Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn {

struct VerifyOptions {
  int32_t program_count = 8;
  int32_t operation_count = 24;  // Of each program.
  static constexpr int32_t kProgramTokens = 160;
  // The longest sequence, at most a token less than the context; all but the last kProgramTokens of
  // it is a text that is read once for each program. 0: kProgramTokens, or fewer where the context
  // is shorter.
  int32_t sequence_tokens_max = 0;
  uint64_t seed = 1;  // The same seed gives the same programs.
  // Called after each operation; returning false stops with the error `cancelled`.
  std::function<bool(int32_t done, int32_t total)> on_progress;
};

struct VerifyRow {
  std::string_view operation;
  int64_t count = 0;
  int64_t computed_tokens = 0;  // By the operations themselves, not by the checks.
  int64_t reused_tokens = 0;
  int64_t recurrence_steps = 0;
  int64_t differing_bits = 0;
};

struct VerifyReport {
  std::vector<VerifyRow> rows;
  std::string first_difference;  // Which operation of which program; empty: none.

  int64_t differing_bits() const;
};

// Errors: memory_full where the memory budget is too small for the programs; invalid_argument where
// the context is; cancelled.
Result<VerifyReport> verify(Engine& engine, const VerifyOptions& options);

}  // namespace cairn
