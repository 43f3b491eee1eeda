// What `cairn tune skip` found for a model, kept beside it: which layers it can do without best,
// for each number of them. NAME.gguf has it in NAME.skip.json, with the model's identity, so that a
// file is never used for another model. Thread-safe: values and functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/engine_options.h"

namespace cairn::session {

// The best set of so many layers, and how far the model's probabilities are from all of it.
struct SkipStep {
  std::vector<int32_t> layers;  // Ascending.
  double divergence = 0;        // Kullback-Leibler, in nats: mean over the text's tokens.
  double same_top = 0;          // Share of tokens with the same favourite.
};

struct SkipFile {
  std::string model;            // gguf::File::identity(), in hex.
  int64_t token_count = 0;      // That were measured.
  std::vector<SkipStep> steps;  // Of 1, 2, … layers.
  std::vector<int32_t> layers;  // Those that "tuned" means; none where no step was good enough.
};

std::string skip_file_path(std::string_view model_path);
std::string skip_file_text(const SkipFile& file);
// Errors: invalid_data, with the place.
Result<SkipFile> read_skip_file(std::string_view path, std::string_view text);

// A list of layers ("4-7,12"), or "tuned" or "tuned:N", which are looked up beside the model when
// it is loaded. Errors: invalid_argument, with the option's name.
Status set_skipped_layers(std::string_view option, std::string_view text, EngineOptions& options);

}  // namespace cairn::session
