// The feed-forward part of a layer where the first layers have a plain block and all others
// experts, which may be chosen with a bias, beside those that every token uses.
#pragma once

#include "graph/blocks/experts.h"
#include "graph/blocks/mlp.h"
#include "models/common/mixture.h"

namespace cairn::models {

struct SparseBlock {
  Vector selection_bias;
  blocks::GatedMlp mlp;  // Of a layer without experts, or the shared experts, taken together.
  blocks::Experts experts;

  void parameters(Parameters& p, int32_t layer, int32_t width, int32_t mlp_width,
                  const MixtureConfig& mixture) {
    if (!mixture.is_in(layer)) {
      mlp.parameters(p, width, mlp_width);
      return;
    }
    experts.parameters(p, width, mixture.expert_width, mixture.expert_count);
    p.optional_vector("exp_probs_b.bias", selection_bias, {mixture.expert_count});
    if (mixture.shared_width > 0) mlp.parameters(p, width, mixture.shared_width, "_shexp");
  }

  // x and what the block makes of h, its norm.
  Tensor add_to(Graph& g, int32_t layer, Tensor x, Tensor h, const MixtureConfig& mixture) const {
    if (mixture.is_in(layer)) {
      RouterSpec router = mixture.router;
      router.selection_bias = selection_bias;
      x = g.add(x, blocks::mixture(g, h, experts, router, Activation::silu));
      if (mixture.shared_width == 0) return x;
    }
    return g.add(x, blocks::gated_mlp(g, h, mlp, Activation::silu));
  }
};

}  // namespace cairn::models
