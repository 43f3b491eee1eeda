// `cairn perplexity`: a text in a file, or the tokens of saved logits, as measure/perplexity.h has
// them. Thread rule: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/engine.h"
#include "measure/perplexity.h"

namespace cairn::cli {

struct PerplexityOptions {
  std::string model_path;
  std::string text_path;        // Not needed with kl_path, which has the tokens.
  int32_t context = 512;        // Tokens of a chunk.
  int32_t chunk_count_max = 0;  // 0: all.
  std::string save_path;        // Where to keep the log-probabilities; may be empty.
  bool parse_special = false;   // Text that spells special tokens means them.
  std::string kl_path;          // Whose log-probabilities to compare with; may be empty.
  bool json = false;
  EngineOptions engine;
};

struct PerplexityResult {
  measure::PerplexityReport report;
  // Where the options are of a program and name no other logits to compare with: of all the model,
  // on the same text.
  std::optional<measure::PerplexityReport> whole;
  std::string program;  // models::Program::text()
};

Result<PerplexityResult> perplexity(const PerplexityOptions& options);

}  // namespace cairn::cli
