// Gated delta nets and gated attention with a mixture of experts behind each layer, and one expert
// that every token uses: Qwen3-Next and Qwen 3.5, which differ in how their files order the heads
// and rates. The layer loop of both.
#pragma once

#include <utility>
#include <vector>

#include "models/decoder.h"
#include "models/delta_hybrid.h"

namespace cairn::models {

struct DeltaHybridMoeConfig : DeltaHybridConfig {
  ExpertsConfig experts;
};

struct DeltaHybridMoeLayer {
  Vector mixer_norm, mlp_norm;
  DeltaHybridMixer mixer;
  blocks::Experts experts;
  blocks::SharedExpert shared;
};

class DeltaHybridMoe : public Decoder<DeltaHybridMoeConfig, DeltaHybridMoeLayer> {
 public:
  using Decoder::Decoder;

  std::vector<State> layer_states(int32_t layer) const override { return {c_.state(layer)}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const DeltaHybridMoeLayer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.mixer_norm, c_.norm_epsilon);
      x = g.add(x, l.mixer.mix(g, layer, h, c_));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      const Tensor routed = blocks::mixture(g, m, l.experts, c_.experts.router, Activation::silu);
      x = g.add(x, g.add(routed, blocks::shared_expert(g, m, l.shared, Activation::silu)));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, DeltaHybridMoeLayer& l) override {
    p.vector("attn_norm.weight", l.mixer_norm, {c_.size.width});
    l.mixer.parameters(p, layer, c_);
    p.vector("post_attention_norm.weight", l.mlp_norm, {c_.size.width});
    l.experts.parameters(p, c_.size.width, c_.experts.expert_width, c_.experts.expert_count);
    l.shared.parameters(p, c_.size.width, c_.experts.shared_expert_width);
  }

 protected:
  static Result<DeltaHybridMoeConfig> read_common(const gguf::Metadata& meta) {
    CAIRN_TRY(DeltaHybridConfig common, read_delta_hybrid(meta));
    CAIRN_TRY(ExpertsConfig experts, read_delta_hybrid_experts(meta));
    return DeltaHybridMoeConfig{std::move(common), experts};
  }
};

}  // namespace cairn::models
