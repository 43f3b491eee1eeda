// Phi-1, 1.5 and 2 (Li et al., 2023): attention and feed-forward read the same norm and are added
// together; a part of each head rotates; every matrix has a bias, the output too.
#include "models/common/decoder.h"

namespace cairn::models {

namespace phi2 {

struct Layer {
  blocks::LayerNorm norm;
  blocks::Projections attn;
  blocks::PlainMlp mlp;

  void parameters(Parameters& p, const DecoderConfig& c, int32_t layer) {
    norm.parameters(p, "attn_norm", c.size.width);
    attn.parameters(p, c.size.width, c.attention(layer));
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class Phi2 final : public CentredDecoder<RotaryConfig<RopeStyle::halves>, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor h = norm(g, x, l.norm);
      x = g.add(x, rotary_attention(g, layer, h, l.attn, c_.rope));
      x = g.add(x, blocks::plain_mlp(g, h, l.mlp, Activation::gelu_tanh));
    }
    return logits(g, x);
  }
};

}  // namespace phi2

extern const Architecture arch_phi2;
constinit const Architecture arch_phi2 = architecture<phi2::Phi2>("phi2");

}  // namespace cairn::models
