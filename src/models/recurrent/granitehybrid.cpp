// Granite 4 hybrid: most layers mix by Mamba-2, a few by attention without positions; behind each a
// gated feed-forward block or a mixture of experts with a shared one. Embeddings, residuals, scores
// and logits have multipliers.
#include "graph/blocks/mamba2.h"
#include "models/common/decoder.h"

namespace cairn::models {

namespace granitehybrid {

struct Config : RotaryConfig<RopeStyle::adjacent, HybridConfig> {
  blocks::Mamba2Shape mamba;
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  int32_t expert_count = 0, expert_used_count = 0, shared_expert_width = 0;
  bool has_positions = false;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(mamba, read_mamba2(meta));
    CAIRN_TRY(embedding_scale, meta.real_or("embedding_scale", 1.0f));
    CAIRN_TRY(residual_scale, meta.real_or("residual_scale", 1.0f));
    CAIRN_TRY(logit_scale, meta.real_or("logit_scale", 1.0f));
    CAIRN_TRY(attention_scale, meta.real_or("attention.scale", attention_scale));
    CAIRN_TRY(expert_count, meta.count_or("expert_count", 0));
    CAIRN_TRY(expert_used_count, meta.count_or("expert_used_count", 0));
    CAIRN_TRY(shared_expert_width, meta.count_or("expert_shared_feed_forward_length", 0));
    CAIRN_TRY(has_positions, meta.flag_or("rope.scaling.finetuned", false));
    return Ok{};
  }
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  blocks::Projections attn;
  blocks::Mamba2 mamba;
  blocks::GatedMlp mlp;  // The shared expert where there are experts.
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
    if (c.expert_count == 0) return mlp.parameters(p, width, c.mlp_width);
    experts.parameters(p, width, c.mlp_width, c.expert_count);
    if (c.shared_expert_width > 0) mlp.parameters(p, width, c.shared_expert_width, "_shexp");
  }
};

class GraniteHybrid final : public Decoder<Config, Layer> {
 public:
  std::vector<State> layer_states(int32_t layer) const override {
    return {c_.is_attention(layer) ? c_.attention(layer).state() : c_.mamba.state()};
  }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding, c_.embedding_scale);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.mixer_norm);
      const Tensor mixed = c_.is_attention(layer)
                               ? attention(g, layer, l, h)
                               : blocks::mamba2(g, layer, h, l.mamba, c_.mamba, c_.norm_epsilon);
      x = g.add(x, mixed, c_.residual_scale);
      x = g.add(x, feed_forward(g, l, norm(g, x, l.mlp_norm)), c_.residual_scale);
    }
    return g.scale(logits(g, x), 1.0f / c_.logit_scale);
  }

 private:
  Tensor attention(Graph& g, int32_t layer, const Layer& l, Tensor h) const {
    const blocks::Qkv qkv = project(g, layer, h, l.attn);
    return attend(g, layer, c_.has_positions ? rotate(g, qkv, c_.rope) : qkv, l.attn);
  }

  Tensor feed_forward(Graph& g, const Layer& l, Tensor m) const {
    if (c_.expert_count == 0) return blocks::gated_mlp(g, m, l.mlp, Activation::silu);
    const RouterSpec router{.expert_used_count = c_.expert_used_count,
                            .score = RouterScore::softmax_chosen};
    const Tensor routed = blocks::mixture(g, m, l.experts, router, Activation::silu);
    if (c_.shared_expert_width == 0) return routed;
    return g.add(routed, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
  }
};

}  // namespace granitehybrid

extern const Architecture arch_granitehybrid;
constinit const Architecture arch_granitehybrid =
    architecture<granitehybrid::GraniteHybrid>("granitehybrid");

}  // namespace cairn::models
