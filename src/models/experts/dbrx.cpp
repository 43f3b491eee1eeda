// DBRX (Databricks, 2024): experts in every layer; norms are around the mean, without a bias;
// queries, keys and values are clamped.
#include "models/common/decoder.h"

namespace cairn::models {

namespace dbrx {

struct Config : RotaryConfig<RopeStyle::halves> {
  float clamp = 0;
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(clamp, meta.real("attention.clamp_kqv"));
    CAIRN_TRY(mixture, read_mixture(meta, {.score = RouterScore::softmax_chosen}));
    return expect_experts(meta, mixture);
  }
};

using Norm = blocks::LayerNorm;

struct Layer : NormedAttention<Norm>, NormedExperts<Norm> {
  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    expert_parameters(p, c, c.mixture, "attn_output_norm");
  }
};

class Dbrx final : public CentredDecoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv clamped = blocks::clamped(g, qkv, c_.clamp);
      x = g.add(x, attend(g, layer, rotate(g, clamped, c_.rope), l.attn));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace dbrx

extern const Architecture arch_dbrx;
constinit const Architecture arch_dbrx = architecture<dbrx::Dbrx>("dbrx");

}  // namespace cairn::models
