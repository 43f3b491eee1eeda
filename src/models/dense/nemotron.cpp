// Nemotron 3 and 4 and Minitron (NVIDIA, 2024): norms around the mean; a part of each head rotates;
// plain feed-forward blocks with the square of relu.
#include "models/common/decoder.h"

namespace cairn::models {

namespace nemotron {

class Nemotron final
    : public CentredDecoder<RotaryConfig<RopeStyle::halves>, CentredLayer<blocks::PlainMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      x = g.add(x, rotary_attention(g, layer, norm(g, x, l.attn_norm), l.attn, c_.rope));
      x = g.add(x, blocks::squared_relu_mlp(g, norm(g, x, l.mlp_norm), l.mlp));
    }
    return logits(g, x);
  }
};

}  // namespace nemotron

extern const Architecture arch_nemotron;
constinit const Architecture arch_nemotron = architecture<nemotron::Nemotron>("nemotron");

}  // namespace cairn::models
