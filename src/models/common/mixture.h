// What the metadata of models with experts have in common: how many there are, how the router
// scores and weighs them, which layers have none, and the experts that every token uses.
#pragma once

#include "gguf/metadata.h"
#include "graph/graph.h"

namespace cairn::models {

struct MixtureConfig {
  RouterSpec router;  // Without a layer's biases.
  int32_t expert_count = 0, expert_width = 0;
  int32_t shared_width = 0;       // Of the experts that every token uses, taken together; or 0.
  int32_t dense_layer_count = 0;  // The first layers, which have a plain block instead.

  bool is_in(int32_t layer) const { return expert_count > 0 && layer >= dense_layer_count; }
};

// What a router does where the file does not say it.
struct RouterDefaults {
  RouterScore score = RouterScore::softmax_all;
  bool normalize = false;
};

// All counts 0 where the file has no experts. Errors: unsupported for scores that are unknown.
Result<MixtureConfig> read_mixture(const gguf::Metadata& meta, const RouterDefaults& defaults);

// For models in which experts are not a choice. Errors: invalid_data.
Status expect_experts(const gguf::Metadata& meta, const MixtureConfig& mixture);

}  // namespace cairn::models
