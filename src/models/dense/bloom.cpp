// BLOOM (BigScience, 2022): instead of rotating, scores fall with distance, each head's at its own
// slope; the embeddings are normalised; norms are around the mean; every matrix has a bias.
#include "models/common/decoder.h"

namespace cairn::models {

namespace bloom {

class Bloom final : public CentredDecoder<SlopedConfig, CentredLayer<blocks::PlainMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = norm(g, g.embed(embedding_and_head_.embedding), embedding_norm_);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      x = g.add(x, attend(g, layer, qkv, l.attn));
      x = g.add(x, blocks::plain_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::gelu_tanh));
    }
    return logits(g, x);
  }

 private:
  void global_parameters(Parameters& p) override {
    embedding_norm_.parameters(p, "token_embd_norm", c_.size.width);
    CentredDecoder::global_parameters(p);
  }

  blocks::LayerNorm embedding_norm_;
};

}  // namespace bloom

extern const Architecture arch_bloom;
constinit const Architecture arch_bloom = architecture<bloom::Bloom>("bloom");

}  // namespace cairn::models
