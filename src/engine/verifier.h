// Checks on a loaded model that the cache changes no bit: random programs of what conversations do
// to the memory, and after each operation the next logits are compared, bit for bit, with those of
// a new sequence that reads the same tokens at once. Uses the engine's memory and releases all of
// it. Thread rule: the engine's thread.
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
  int32_t sequence_tokens_max = 160;
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

// Errors: no_room where the memory budget is too small for the programs, cancelled.
Result<VerifyReport> verify(Engine& engine, const VerifyOptions& options);

}  // namespace cairn
