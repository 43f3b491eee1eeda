// Refact (Small Magellanic Cloud AI, 2023): Llama's shape, but instead of rotating, scores fall
// with distance, each head's at its own slope.
#include "models/common/decoder.h"

namespace cairn::models {

namespace refact {

class Refact final : public Decoder<SlopedConfig, RmsLayer<blocks::GatedMlp>> {
 public:
  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(embedding_and_head_.embedding);
    for (const auto& [layer, l] : layers()) {
      const blocks::Qkv qkv = project(g, layer, norm(g, x, l.attn_norm), l.attn);
      x = g.add(x, attend(g, layer, qkv, l.attn));
      x = g.add(x, blocks::gated_mlp(g, norm(g, x, l.mlp_norm), l.mlp, Activation::silu));
    }
    return logits(g, x);
  }
};

}  // namespace refact

extern const Architecture arch_refact;
constinit const Architecture arch_refact = architecture<refact::Refact>("refact");

}  // namespace cairn::models
