// Phi-3.5 MoE (Abdin et al., 2024): experts in every layer, weighed by SparseMixer (Liu et al.,
// 2024); norms are around the mean; every matrix outside the experts has a bias.
#include "models/common/decoder.h"
#include "models/common/long_rope.h"

namespace cairn::models {

namespace phimoe {

struct Config : RotaryConfig<RopeStyle::halves> {
  MixtureConfig mixture;

  Status read(const gguf::Metadata& meta) {
    CAIRN_TRY(RotaryConfig::read(meta));
    CAIRN_TRY(windows, read_same_windows(meta, size.layer_count));
    CAIRN_TRY(mixture, read_mixture(meta, {.score = RouterScore::sparse_mixer}));
    return expect_experts(meta, mixture);
  }
};

using Norm = blocks::LayerNorm;

struct Layer : NormedAttention<Norm>, NormedExperts<Norm> {
  void parameters(Parameters& p, const Config& c, int32_t layer) {
    attention_parameters(p, c, layer);
    expert_parameters(p, c, c.mixture);
  }
};

class PhiMoe final : public CentredDecoder<Config, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    const RopeSpec rope = long_rope_.scaled(c_.rope, c_.reads_long_texts());
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      x = g.add(x, rotary_attention(g, layer, norm(g, x, l.attn_norm), l.attn, rope));
      const Tensor m = norm(g, x, l.mlp_norm);
      x = g.add(x, blocks::mixture(g, m, l.experts, c_.mixture.router, Activation::silu));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    CentredDecoder::global_parameters(p);
    long_rope_.parameters(p, int64_t(c_.rope.frequencies.size()));
  }

  LongRope long_rope_;
};

}  // namespace phimoe

extern const Architecture arch_phimoe;
constinit const Architecture arch_phimoe = architecture<phimoe::PhiMoe>("phimoe");

}  // namespace cairn::models
