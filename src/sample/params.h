// The parameters of sampling: one table of fields, from which the command line's options, its help,
// docs/sampling.md, the keys of model files and the checks of requests are made. Thread-safe:
// constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace cairn::sample {

// Added to a token's logit before anything else; -infinity bans it.
struct LogitBias {
  Token token = Token(-1);
  std::string text;  // If not empty: applies to each token of this text instead.
  float bias = 0;
};

struct SamplingParams {
  float temperature = 0.8f;  // 0 or less: always the likeliest token.
  int32_t top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.05f;
  float typical_p = 1;
  float top_n_sigma = -1;
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  float dynatemp_range = 0;
  float dynatemp_exponent = 1;
  int32_t repeat_last_count = 64;  // Here and below: -1 is the whole context.
  float repeat_penalty = 1;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  float dry_multiplier = 0;
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_last_count = 64;
  int32_t mirostat = 0;
  float mirostat_tau = 5;
  float mirostat_eta = 0.1f;
  float adaptive_target = -1;
  float adaptive_decay = 0.9f;
  int32_t min_keep = 0;
  int32_t probability_count = 0;  // How many likeliest tokens are to be reported.
  bool post_sampling_probs = false;
  bool ignore_eos = false;
  uint64_t seed = 0;  // Equal seeds choose equal tokens.
  // Names of stages, as sampler_order() makes them; mirostat has a chain of its own.
  std::vector<std::string_view> samplers = {
      "penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"};
  std::vector<LogitBias> logit_bias;
  std::vector<std::string> dry_breakers = {"\n", ":", "\"", "*"};
};

// A number or a switch among them; exactly one of the three members is set.
struct SamplingField {
  std::string_view option;    // "top-k": the command line's spelling.
  std::string_view name;      // "top_k": that of requests and reports.
  std::string_view file_key;  // Where a model file may suggest a value; may be empty.
  float SamplingParams::*real;
  int32_t SamplingParams::*count;
  bool SamplingParams::*flag;
  double min, max;
  std::string_view doc;
};

std::span<const SamplingField> sampling_fields();

double get(const SamplingParams& params, const SamplingField& field);  // A switch is 0 or 1.
// Errors: invalid_argument, naming the option, when the value is out of range or not a number.
Status set(SamplingParams& params, const SamplingField& field, double value);
// The value as a person would write it: 0.8, 40, on.
std::string show(const SamplingParams& params, const SamplingField& field);

// Parameters with a text value. Each call of `set` replaces the value before.
struct SamplingList {
  std::string_view option;
  std::string_view name;
  std::string_view file_key;
  std::string_view default_text;  // As one would write it.
  std::string_view doc;
  // Errors: invalid_argument, naming the option.
  Status (*set)(SamplingParams& params, std::span<const std::string> values);
};

std::span<const SamplingList> sampling_lists();

// The order of stages, from names separated by ";" or "," ("top_k;temperature", also with "-" for
// "_", or without) or from a letter for each ("kt"). Errors: invalid_argument, with all names.
Result<std::vector<std::string_view>> sampler_order(std::string_view text);
// The same from one name each; none means no stages at all.
Result<std::vector<std::string_view>> sampler_order(std::span<const std::string> names);

// "15043+1", "15043-inf", "15043=false" (banned) or, where no number stands first, "text=-2".
Result<LogitBias> parse_logit_bias(std::string_view text);
// Error (invalid_argument): a token that the model does not have.
Status check_logit_bias(const SamplingParams& params, int32_t vocabulary_count);

}  // namespace cairn::sample
