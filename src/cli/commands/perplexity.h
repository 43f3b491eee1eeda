// `cairn perplexity`: how surprised a model is by a text, and how far its probabilities are from
// those of another model. As llama.cpp counts it: the text in chunks of one context, each from its
// beginning, of which the second half counts.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

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
  bool has_comparison = false;
  Comparison comparison;
};

Result<PerplexityReport> measure_perplexity(const PerplexityOptions& options);

std::string report_text(const PerplexityReport& report);
std::string report_json(const PerplexityReport& report);

}  // namespace cairn::cli
