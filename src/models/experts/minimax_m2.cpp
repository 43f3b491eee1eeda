// MiniMax M2 (2025): experts in every layer, scored each by itself and chosen with a bias. The norm
// of queries, and that of keys, is over all heads together; a part of each head rotates.
#include "models/common/decoder.h"

namespace cairn::models {

namespace minimax_m2 {

struct Config : RotaryConfig<RopeStyle::halves> {
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(mixture, read_mixture(meta, {.score = RouterScore::sigmoid, .normalize = true}));
    return expect_experts(meta, mixture);
  }
};

struct Layer : NormedAttention<Vector>, NormedExperts<Vector> {
  blocks::QkNorms qk_norms;
  Vector selection_bias;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const blocks::QkvWidths widths = c.attention(layer).widths();
    attention_parameters(p, c, layer);
    qk_norms.parameters(p, widths.q, widths.k);
    expert_parameters(p, c, c.mixture);
    p.vector("exp_probs_b.bias", selection_bias, {c.mixture.expert_count});
  }
};

class MiniMaxM2 final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv normed = norm(g, qkv, l.qk_norms);
      x = g.add(x, attend(g, layer, rotate(g, normed, c_.rope), l.attn));
      const Tensor m = norm(g, x, l.mlp_norm);
      RouterSpec router = c_.mixture.router;
      router.selection_bias = l.selection_bias;
      x = g.add(x, blocks::mixture(g, m, l.experts, router, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace minimax_m2

extern const Architecture arch_minimax_m2;
constinit const Architecture arch_minimax_m2 = architecture<minimax_m2::MiniMaxM2>("minimax-m2");

}  // namespace cairn::models
