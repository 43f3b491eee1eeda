// Checks on a loaded model that drafts change nothing: random answers (prompts, samplers, forms)
// with drafters of every habit, and the engine's own, have the receipts of those without drafts,
// which hold each token and a digest of the logits it was chosen from; and what memory holds
// afterwards gives the same next logits. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace cairn::session {

struct DraftVerifyOptions {
  int32_t program_count = 8;  // Answers without drafts; each is made once more by each drafter.
  int32_t token_count = 48;   // Of an answer, at most.
  uint64_t seed = 1;          // The same seed gives the same answers.
  // Called after each answer; returning false stops with the error `cancelled`.
  std::function<bool(int32_t done, int32_t total)> on_progress;
};

struct DraftVerifyRow {
  std::string drafter;
  int64_t answers = 0, drafted = 0, accepted = 0;
  int64_t differing = 0;         // Answers.
  std::string first_difference;  // Empty: none.
};

// REQUIRES: the engine has a tokenizer. Errors: those of answers; cancelled.
Result<std::vector<DraftVerifyRow>> verify_drafts(Engine& engine,
                                                  const DraftVerifyOptions& options);

}  // namespace cairn::session
