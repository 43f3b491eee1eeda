// Gemma 1 (Gemma Team, 2024): Llama's shape, with embeddings scaled by the root of the width and
// gates of GELU.
#include "models/common/decoder.h"

namespace cairn::models {

namespace gemma {

class Gemma final : public Decoder<RotaryConfig<RopeStyle::halves>, RmsLayer<blocks::GatedMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding, blocks::root_of(c_.size.width));
    for (const auto& [layer, l] : layers()) {
      x = g.add(x, rotary_attention(g, layer, norm(g, x, l.attn_norm), l.attn, c_.rope));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::gelu_tanh));
    }
    return logits(g, x);
  }
};

}  // namespace gemma

extern const Architecture arch_gemma;
constinit const Architecture arch_gemma = architecture<gemma::Gemma>("gemma");

}  // namespace cairn::models
