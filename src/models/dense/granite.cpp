// Granite 3 (IBM, 2024): Llama's shape, where embeddings, residuals, scores and logits have
// multipliers; with experts in some sizes, and one beside them that every token uses.
#include "models/common/decoder.h"

namespace cairn::models {

namespace granite {

struct Config : RotaryConfig<RopeStyle::adjacent> {
  MixtureConfig mixture;
  float embedding_scale = 1, residual_scale = 1, logit_scale = 1;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(mixture, read_mixture(meta, {.score = RouterScore::softmax_chosen}));
    CAIRN_TRY(embedding_scale, meta.real_or("embedding_scale", 1.0f));
    CAIRN_TRY(residual_scale, meta.real_or("residual_scale", 1.0f));
    CAIRN_TRY(logit_scale, meta.real_or("logit_scale", 1.0f));
    CAIRN_TRY(attention_scale, meta.real_or("attention.scale", attention_scale));
    return Ok{};
  }
};

struct Layer : NormedAttention<Vector> {
  Vector mlp_norm;
  blocks::GatedMlp mlp;  // The shared expert where there are experts.
  blocks::Experts experts;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const MixtureConfig& mixture = c.mixture;
    attention_parameters(p, c, layer);
    p.vector("ffn_norm.weight", mlp_norm, {c.size.width});
    if (mixture.expert_count == 0) return mlp.parameters(p, c.size.width, c.mlp_width);
    experts.parameters(p, c.size.width, mixture.expert_width, mixture.expert_count);
    if (mixture.shared_width > 0) mlp.parameters(p, c.size.width, mixture.shared_width, "_shexp");
  }
};

class Granite final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    const RopeSpec rope = with_factors(c_.rope, rope_factors_);
    Tensor x = g.embed(embedding_and_head_.embedding, c_.embedding_scale);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.attn_norm);
      x = g.add(x, rotary_attention(g, layer, h, l.attn, rope), c_.residual_scale);
      x = g.add(x, feed_forward(g, l, norm(g, x, l.mlp_norm)), c_.residual_scale);
    }
    return g.scale(logits(g, x), 1.0f / c_.logit_scale);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.optional_vector("rope_freqs.weight", rope_factors_, {int64_t(c_.rope.frequencies.size())});
  }

  Tensor feed_forward(Graph& g, const Layer& l, Tensor m) const {
    if (c_.mixture.expert_count == 0) return blocks::gated_mlp(g, m, l.mlp, Activation::silu);
    const Tensor routed = blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu);
    if (c_.mixture.shared_width == 0) return routed;
    return g.add(routed, blocks::gated_mlp(g, m, l.mlp, Activation::silu));
  }

  Vector rope_factors_;
};

}  // namespace granite

extern const Architecture arch_granite;
constinit const Architecture arch_granite = architecture<granite::Granite>("granite");

}  // namespace cairn::models
