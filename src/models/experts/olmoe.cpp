// OLMoE (Muennighoff et al., 2024): experts in every layer, whose weights are left as they are; the
// norm of queries, and that of keys, is over all heads together.
#include "models/common/decoder.h"

namespace cairn::models {

namespace olmoe {

struct Config : RotaryConfig<RopeStyle::halves> {
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(mixture, read_mixture(meta, {}));
    return expect_experts(meta, mixture);
  }
};

struct Layer : NormedAttention<Vector>, NormedExperts<Vector> {
  blocks::QkNorms qk_norms;

  void parameters(Parameters& p, const Config& c, int32_t layer) {
    const blocks::QkvWidths widths = c.attention(layer).widths();
    attention_parameters(p, c, layer);
    qk_norms.parameters(p, widths.q, widths.k);
    expert_parameters(p, c, c.mixture);
  }
};

class Olmoe final : public Decoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv normed = norm(g, qkv, l.qk_norms);
      x = g.add(x, attend(g, layer, rotate(g, normed, c_.rope), l.attn));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace olmoe

extern const Architecture arch_olmoe;
constinit const Architecture arch_olmoe = architecture<olmoe::Olmoe>("olmoe");

}  // namespace cairn::models
