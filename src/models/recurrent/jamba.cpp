// Jamba (Lieber et al., 2024): most layers mix by Mamba with normalised time steps, B and C, a few
// by attention without positions. Behind each a gated feed-forward block or a mixture of experts: a
// file has a router where it is the latter. The router's softmax is not normalised again.
#include "graph/blocks/mamba1.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace jamba {

struct Config : HybridConfig {
  blocks::Mamba1Shape mamba;
  int32_t expert_count = 0, expert_used_count = 0;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(HybridConfig::read(meta));
    CAIRN_TRY(mamba, read_mamba1(meta));
    mamba.norms = blocks::StepNorms::with_gain;
    CAIRN_TRY(expert_count, meta.count_or("expert_count", 0));
    CAIRN_TRY(expert_used_count, meta.count_or("expert_used_count", 0));
    return Ok{};
  }
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Mamba1 mamba;
  blocks::GatedMlp mlp;
  blocks::Experts experts;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const int32_t width = c.size.width;
    p.vector("attn_norm.weight", mixer_norm, {width});
    if (c.is_attention(layer)) {
      attn.parameters(p, width, c.attention(layer));
    } else {
      mamba.parameters(p, width, c.mamba);
    }
    p.vector("ffn_norm.weight", mlp_norm, {width});
    if (c.expert_count > 0) {
      p.optional_matrix("ffn_gate_inp.weight", experts.router, {width, c.expert_count});
    }
    if (!experts.router.exists()) return mlp.parameters(p, width, c.mlp_width);
    experts.expert_parameters(p, width, c.mlp_width, c.expert_count);
  }
};

class Jamba final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.is_attention(layer) ? c_.attention(layer).state() : c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.mixer_norm);
      x = g.add(x, c_.is_attention(layer)
                       ? attend(g, layer, project(g, layer, h, l.attn), l.attn)
                       : blocks::mamba1(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon));
      x = g.add(x, feed_forward(g, l, norm(g, x, l.mlp_norm)));
    }
    return logits(g, x);
  }

 private:
  Tensor feed_forward(Graph& g, const Layer& l, Tensor m) const {
    if (!l.experts.router.exists()) return blocks::gated_mlp(g, m, l.mlp, Activation::silu);
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::softmax_all};
    return blocks::mixture(g, m, l.experts, router, Activation::silu);
  }
};

}  // namespace jamba

extern const Architecture arch_jamba;
constinit const Architecture arch_jamba = architecture<jamba::Jamba>("jamba");

}  // namespace cairn::models
