// BERT (Devlin et al., 2019) and RoBERTa: tokens, kinds of segments and learned positions are added
// and normalised; every block is followed by a norm of its sum with what went in; GELU between two
// matrices with biases. The table of positions of RoBERTa begins at its first real one in files.
#include "models/common/encoder.h"

namespace cairn::models {

namespace bert {

struct Layer {
  blocks::Projections attn;
  blocks::LayerNorm attn_norm, mlp_norm;
  blocks::PlainMlp mlp;

  void parameters(Parameters& p, const EncoderConfig& c, int32_t layer) {
    attn.parameters(p, c.size.width, c.attention(layer));
    attn_norm.parameters(p, "attn_output_norm", c.size.width);
    mlp.parameters(p, c.size.width, c.mlp_width);
    mlp_norm.parameters(p, "layer_output_norm", c.size.width);
  }
};

class Bert final : public Encoder<EncoderConfig, Layer> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = norm(g, g.add(embeddings_.embed(g), g.embed_positions(positions_)), norm_);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, x, l.attn);
      x = norm(g, g.add(x, attend(g, layer, qkv, l.attn)), l.attn_norm);
      const Tensor fed = blocks::plain_mlp(g, x, l.mlp, Activation::gelu_erf);
      x = norm(g, g.add(x, fed), l.mlp_norm);
    }
    return end(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    p.matrix("position_embd.weight", positions_, {c_.size.width, c_.size.context_length});
    norm_.parameters(p, "token_embd_norm", c_.size.width);
  }

  Weight positions_;
  blocks::LayerNorm norm_;
};

}  // namespace bert

extern const Architecture arch_bert;
constinit const Architecture arch_bert = architecture<bert::Bert>("bert");

}  // namespace cairn::models
