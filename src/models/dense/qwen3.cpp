// Qwen 3 (Yang et al., 2025): a dense decoder. Each query and key head is normalised before
// rotation.
#include "models/common/decoder.h"

namespace cairn::models {

namespace qwen3 {

struct Layer : RmsLayer<blocks::GatedMlp> {
  blocks::QkNorms qk_norms;

  void parameters(Parameters& p, const DecoderConfig& c, int32_t layer) {
    attention_parameters(p, c, layer);
    qk_norms.parameters(p, c.key_dim, c.key_dim);
    mlp_parameters(p, c);
  }
};

class Qwen3 final : public Decoder<RotaryConfig<RopeStyle::halves>, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      const blocks::Qkv normed = norm(g, qkv, l.qk_norms, c_.key_dim);
      x = g.add(x, attend(g, layer, rotate(g, normed, c_.rope), l.attn));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace qwen3

extern const Architecture arch_qwen3;
constinit const Architecture arch_qwen3 = architecture<qwen3::Qwen3>("qwen3");

}  // namespace cairn::models
