// AFM (Arcee, 2025): Llama's shape with plain feed-forward blocks and the square of relu.
#include "models/common/decoder.h"

namespace cairn::models {

namespace arcee {

class Arcee final : public Decoder<RotaryConfig<RopeStyle::adjacent>, RmsLayer<blocks::PlainMlp>> {
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

}  // namespace arcee

extern const Architecture arch_arcee;
constinit const Architecture arch_arcee = architecture<arcee::Arcee>("arcee");

}  // namespace cairn::models
