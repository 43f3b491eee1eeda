// Nomic Embed (Nussbaum et al., 2024): BERT with rotated positions, a gated feed-forward block and
// no biases but those of its norms.
#include "models/common/encoder.h"

namespace cairn::models {

namespace nomic_bert {

struct Layer {
  blocks::Projections attn;
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::GatedMlp mlp;

  void parameters(Parameters& p, const EncoderConfig& c, int32_t layer) {
    attn.parameters(p, c.size.width, c.attention(layer));
    attn_norm.parameters(p, "attn_output_norm", c.size.width);
    mlp.parameters(p, c.size.width, c.mlp_width);
    mlp_norm.parameters(p, "layer_output_norm", c.size.width);
  }
};

class NomicBert final : public Encoder<RotaryConfig<RopeStyle::halves, EncoderConfig>, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = norm(g, embeddings_.embed(g), norm_);
    for (const auto& [layer, l] : layers()) {
      const Tensor mixed = rotary_attention(g, layer, x, l.attn, c_.rope);
      x = norm(g, g.add(x, mixed), l.attn_norm);
      const Tensor fed = blocks::gated_mlp(g, x, l.mlp, Activation::silu);
      x = norm(g, g.add(x, fed), l.mlp_norm);
    }
    return end(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    norm_.parameters(p, "token_embd_norm", c_.size.width);
  }

  blocks::LayerNorm norm_;
};

}  // namespace nomic_bert

extern const Architecture arch_nomic_bert;
constinit const Architecture arch_nomic_bert = architecture<nomic_bert::NomicBert>("nomic-bert");

}  // namespace cairn::models
