// The two halves of most layers: attention after a norm, and a feed-forward block after a norm.
// Each lists its parameters in the order of files.
#pragma once

#include <fmt/core.h>

#include <string_view>

#include "graph/blocks/attention.h"
#include "graph/blocks/experts.h"
#include "graph/blocks/layer_norm.h"
#include "graph/blocks/mlp.h"
#include "models/common/config.h"
#include "models/common/mixture.h"

namespace cairn::models {

// `name` as in "attn_norm.weight"; a Vector is the gain of a norm of root mean squares.
inline void norm_parameters(Parameters& p, std::string_view name, Vector& gain, int32_t width) {
  p.vector(fmt::format("{}.weight", name), gain, {width});
}
inline void norm_parameters(Parameters& p, std::string_view name, blocks::LayerNorm& norm,
                            int32_t width) {
  norm.parameters(p, name, width);
}

template <class Norm>
struct NormedAttention {
  Norm attn_norm;
  blocks::Projections attn;

  template <class Config>
  void attention_parameters(Parameters& p, const Config& c, int32_t layer) {
    norm_parameters(p, "attn_norm", attn_norm, c.size.width);
    attn.parameters(p, c.size.width, c.attention(layer));
  }
};

// `Mlp` is one of graph/blocks/mlp.h.
template <class Norm, class Mlp>
struct NormedMlp {
  Norm mlp_norm;
  Mlp mlp;

  void mlp_parameters(Parameters& p, const DecoderConfig& c, std::string_view name = "ffn_norm") {
    norm_parameters(p, name, mlp_norm, c.size.width);
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

template <class Norm>
struct NormedExperts {
  Norm mlp_norm;
  blocks::Experts experts;

  void expert_parameters(Parameters& p, const DecoderConfig& c, const MixtureConfig& mixture,
                         std::string_view name = "ffn_norm") {
    norm_parameters(p, name, mlp_norm, c.size.width);
    experts.parameters(p, c.size.width, mixture.expert_width, mixture.expert_count);
  }
};

// A layer of Llama's shape, and one of GPT-2's.
template <class Norm, class Mlp>
struct PreNormLayer : NormedAttention<Norm>, NormedMlp<Norm, Mlp> {
  void parameters(Parameters& p, const DecoderConfig& c, int32_t layer) {
    this->attention_parameters(p, c, layer);
    this->mlp_parameters(p, c);
  }
};
template <class Mlp>
using RmsLayer = PreNormLayer<Vector, Mlp>;
template <class Mlp>
using CentredLayer = PreNormLayer<blocks::LayerNorm, Mlp>;

}  // namespace cairn::models
