// Falcon (Almazrouei et al., 2023): attention and feed-forward read the stream side by side and are
// added together, from one norm or, in the size of 40B, from two; keys and values have few heads.
#include "models/common/decoder.h"

namespace cairn::models {

namespace falcon {

struct Layer {
  blocks::LayerNorm norm;            // Of both, or of the feed-forward block alone.
  Vector attn_norm, attn_norm_bias;  // Of attention, where it has one of its own.
  blocks::Projections attn;
  blocks::PlainMlp mlp;

  void parameters(Parameters& p, const DecoderConfig& c, int32_t layer) {
    norm.parameters(p, "attn_norm", c.size.width);
    p.optional_vector("attn_norm_2.weight", attn_norm, {c.size.width});
    p.optional_vector("attn_norm_2.bias", attn_norm_bias, {c.size.width});
    attn.parameters(p, c.size.width, c.attention(layer));
    mlp.parameters(p, c.size.width, c.mlp_width);
  }
};

class Falcon final : public CentredDecoder<RotaryConfig<RopeStyle::halves>, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const Tensor m = norm(g, x, l.norm);
      const Tensor h = l.attn_norm.exists()
                           ? g.layer_norm(x, l.attn_norm, l.attn_norm_bias, c_.norm_epsilon)
                           : m;
      x = g.add(x, rotary_attention(g, layer, h, l.attn, c_.rope));
      x = g.add(x, blocks::plain_mlp(g, m, l.mlp, Activation::gelu_erf));
    }
    return logits(g, x);
  }
};

}  // namespace falcon

extern const Architecture arch_falcon;
constinit const Architecture arch_falcon = architecture<falcon::Falcon>("falcon");

}  // namespace cairn::models
