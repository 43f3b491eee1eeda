// Perplexity of a text, and the divergence from another model's probabilities, as llama.cpp
// computes them: the text in chunks of one context, each from its beginning, of which the second
// half counts. Knows tokens, not texts. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "measure/saved_logits.h"

namespace cairn::measure {

// A mean over tokens, with its standard error.
struct Estimate {
  double mean = 0;
  double error = 0;
};

// Of a list of values.
Estimate estimate(const std::vector<double>& values);

struct Comparison {
  double base_perplexity = 0;
  Estimate log_ratio;   // log(perplexity / base perplexity)
  Estimate divergence;  // Kullback-Leibler, of this model from the base, in nats.
  double divergence_median = 0, divergence_99 = 0, divergence_max = 0;
  Estimate same_top;           // Share of tokens at which both have the same favourite.
  double probability_rms = 0;  // Root mean square of the change of the text's own tokens.
};

struct PerplexityReport {
  int32_t chunk_count = 0;
  int64_t token_count = 0;  // That counted.
  double perplexity = 0;
  double error = 0;
  double tokens_per_second = 0;  // Of all that were computed, in steps of this measurement.
  bool has_comparison = false;
  Comparison comparison;
};

struct PerplexityWork {
  LogitsShape shape;
  std::span<const Token> tokens;      // shape.context * shape.chunk_count of them.
  const SavedLogits* base = nullptr;  // What to compare with: of the same tokens.
  LogitsWriter* writer = nullptr;     // Where to keep the log-probabilities.
  std::function<void(int64_t done_tokens, int64_t total_tokens)> on_progress;
};

// Of one text, chunk by chunk with both.
struct BothReports {
  PerplexityReport base;
  PerplexityReport other;  // Compared with the base.
};

// With the context of a chunk, and steps no longer than that.
EngineOptions fit_for_perplexity(EngineOptions options, int32_t context);

// REQUIRES: an engine with a vocabulary and room for a chunk. Errors: memory_full, io, invalid_data
// where the model's output is no number.
Result<PerplexityReport> measure_perplexity(Engine& engine, const PerplexityWork& work);
// Of another engine beside that: no more than a chunk's log-probabilities are kept. The work's
// `base` and `writer` do not count. REQUIRES: both have the same vocabulary.
Result<BothReports> compare_perplexity(Engine& base, Engine& other, const PerplexityWork& work);

// The log-probabilities of a work's tokens, kept, to compare several engines with.
Result<KeptLogits> keep_logits(Engine& engine, const PerplexityWork& work);
Result<PerplexityReport> measure_against(Engine& engine, const PerplexityWork& work,
                                         const KeptLogits& base);

}  // namespace cairn::measure
